# network.sh - sourced by the tests of this folder: two hosts of their own, made of network namespaces.
#
#     network_start DIR [MICROSECONDS MEGABITS]    namespaces rws-PID-a and rws-PID-b, with addresses 10.77.0.1 and .2,
#                          joined by a fast cable (veth), or by one with that delay and rate in each direction: netem
#                          where the kernel has it, else $cable, the program cable.c
#     network_cut          pulls the cable
#     network_ranks N PROGRAM ARGUMENT…    N ranks of $network_kind, half of them on either host
#     network_stop
#
# Needs root. $network_kind is mpich or openmpi; ranks on the two hosts meet by TCP only.

network_start() { # folder [delay rate]
    network_dir=$1 network_cable= network_wire=wire0
    network_a=rws-$$-a network_b=rws-$$-b
    mkdir -p "$network_dir" || return 1
    ip netns add "$network_a" 2>/dev/null && ip netns add "$network_b" || return 1
    if ! ip link add wire0 netns "$network_a" type veth peer name wire0 netns "$network_b"; then return 1; fi
    if [ "${2:-}" ] && ! { tc -n "$network_a" qdisc replace dev wire0 root netem delay "$2us" rate "$3mbit" limit 100000 &&
        tc -n "$network_b" qdisc replace dev wire0 root netem delay "$2us" rate "$3mbit" limit 100000; } 2>/dev/null; then
        ip -n "$network_a" link del wire0
        "$cable" "$network_a" "$network_b" "$2" "$3" >"$network_dir/cable" &
        network_cable=$!
        for _ in $(seq 50); do
            grep -q ready "$network_dir/cable" && break
            sleep 0.1
        done
        ip -n "$network_a" link set wire0 mtu 9000 && ip -n "$network_b" link set wire0 mtu 9000 || return 1
    fi
    ip -n "$network_a" addr add 10.77.0.1/24 dev wire0 && ip -n "$network_b" addr add 10.77.0.2/24 dev wire0 &&
        ip -n "$network_a" link set wire0 up && ip -n "$network_b" link set wire0 up &&
        ip -n "$network_a" link set lo up && ip -n "$network_b" link set lo up || return 1
    sleep 1 # until the link is there
    # What MPI uses in place of ssh: agent [options] HOST COMMAND…; each host has a name of its own, too.
    cat >"$network_dir/agent" <<END
#!/bin/sh
while :; do
    case \$1 in -*) shift ;; *) break ;; esac
done
case \$1 in 10.77.0.1) space=$network_a name=hosta ;; *) space=$network_b name=hostb ;; esac
shift
exec ip netns exec \$space unshare --uts sh -c "hostname \$name; \$*"
END
    chmod +x "$network_dir/agent"
}

network_cut() {
    ip -n "$network_b" link set wire0 down
}

network_ranks() { # n program arguments…
    count=$1
    shift
    case ${network_kind:-mpich} in
    mpich)
        ip netns exec "$network_a" unshare --uts sh -c 'hostname hosta; exec "$@"' sh env FI_PROVIDER=tcp FI_TCP_IFACE=wire0 UCX_TLS=tcp,self MPIR_CVAR_NOLOCAL=1 \
            mpirun.mpich -launcher ssh -launcher-exec "$network_dir/agent" -hosts 10.77.0.1,10.77.0.2 -ppn $((count / 2)) \
            -iface wire0 -n "$count" "$@" ;;
    openmpi)
        ip netns exec "$network_a" unshare --uts sh -c 'hostname hosta; exec "$@"' sh env OMPI_MCA_plm=rsh \
            mpirun.openmpi --mca plm_rsh_agent "$network_dir/agent" --mca btl self,tcp --mca btl_tcp_if_include 10.77.0.0/24 \
            --mca oob_tcp_if_include 10.77.0.0/24 --mca pml ob1 \
            --host "10.77.0.1:$((count / 2)),10.77.0.2:$((count / 2))" -n "$count" "$@" ;;
    esac
}

network_stop() {
    [ "${network_dir:-}" ] || return 0
    [ "$network_cable" ] && kill "$network_cable" 2>/dev/null
    # Launchers may wait for ever for a host that is gone.
    for pid in $(ip netns pids "$network_a" 2>/dev/null) $(ip netns pids "$network_b" 2>/dev/null); do
        kill -KILL "$pid" 2>/dev/null
    done
    ip netns del "$network_a" 2>/dev/null
    ip netns del "$network_b" 2>/dev/null
    network_dir=
}
