# mpi.sh - sourced by the tests of one run over several ranks, after tap.sh.
#
#     ranks KIND N PROGRAM ARGUMENT…     starts N ranks by openmpi or mpich, as root too; none: without MPI
#     kinds                              the MPIs for which this build has a part and whose launcher is installed
#
# Two ranks of Open MPI on a machine with fewer free cores are allowed (--oversubscribe), and are bound to no core.

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Nothing but this machine: no other network is looked for.
export OMPI_MCA_btl="${OMPI_MCA_btl:-self,vader,tcp}" OMPI_MCA_plm="${OMPI_MCA_plm:-isolated}"
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_base_warn_component_unused=0
export OMPI_MCA_orte_tmpdir_base="$work" HYDRA_IFACE="${HYDRA_IFACE:-lo}"

kinds() {
    for kind in openmpi mpich; do
        [ -f "$(dirname "$rws")/librws-$kind.so" ] && command -v mpirun.$kind >/dev/null && echo $kind
    done
}

ranks() { # kind n program arguments…
    kind=$1 number=$2
    shift 2
    case $kind in
    none) "$@" ;;
    *) mpirun.$kind -n "$number" "$@" ;;
    esac
}
