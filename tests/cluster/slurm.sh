# slurm.sh - sourced by the tests of this folder: a real Slurm on this machine, with all its state in a scratch folder.
#
#     slurm_start DIR    starts munged, slurmctld and slurmd as one node of this machine; 1 if that does not work
#     slurm_stop         ends them
#
# Needs root. The three processes are this script's own, on ports of their own and with a key of their own; a Slurm that
# is installed for other purposes is not touched. Slurm starts a task that was queued again only when its credential has
# expired: after 15 seconds here, after 2 minutes by default.

slurm_start() { # folder
    slurm_dir=$1
    mkdir -p "$slurm_dir/ctld" "$slurm_dir/d" "$slurm_dir/munge" || return 1
    chmod 700 "$slurm_dir/munge"
    dd if=/dev/urandom of="$slurm_dir/munge/key" bs=128 count=1 2>/dev/null
    chmod 600 "$slurm_dir/munge/key"
    slurm_host=$(hostname -s)
    slurm_socket=$slurm_dir/munge/socket
    port=$((20000 + $$ % 20000))
    cat >"$slurm_dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$slurm_host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=15,socket=$slurm_socket
CredType=cred/munge
StateSaveLocation=$slurm_dir/ctld
SlurmdSpoolDir=$slurm_dir/d
SlurmctldPidFile=$slurm_dir/ctld.pid
SlurmdPidFile=$slurm_dir/d.pid
SlurmctldLogFile=$slurm_dir/ctld.log
SlurmdLogFile=$slurm_dir/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=1
MinJobAge=300
KillWait=20
InactiveLimit=0
NodeName=$slurm_host NodeAddr=127.0.0.1 CPUs=${SLURM_CPUS:-2} State=UNKNOWN
PartitionName=all Nodes=$slurm_host Default=YES MaxTime=INFINITE State=UP
END
    export SLURM_CONF="$slurm_dir/slurm.conf"
    munged --force --key-file="$slurm_dir/munge/key" --socket="$slurm_socket" --pid-file="$slurm_dir/munge/pid" \
        --log-file="$slurm_dir/munge/log" --seed-file="$slurm_dir/munge/seed" --num-threads=2 >/dev/null 2>&1 || return 1
    slurmctld -f "$SLURM_CONF" >/dev/null 2>&1 || return 1
    slurmd -f "$SLURM_CONF" -N "$slurm_host" >/dev/null 2>&1 || return 1
    for _ in $(seq 60); do
        case $(sinfo --noheader --format=%T 2>/dev/null) in idle*) return 0 ;; esac
        sleep 0.5
    done
    return 1
}

slurm_stop() {
    [ "${slurm_dir:-}" ] || return 0
    scancel --user="$(id -un)" 2>/dev/null
    sleep 1
    for file in "$slurm_dir/d.pid" "$slurm_dir/ctld.pid" "$slurm_dir/munge/pid"; do
        [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null
    done
    for _ in $(seq 20); do
        alive=
        for file in "$slurm_dir/d.pid" "$slurm_dir/ctld.pid"; do [ -f "$file" ] && alive=1; done
        [ "$alive" ] || break
        sleep 0.5
    done
    slurm_dir=
}
