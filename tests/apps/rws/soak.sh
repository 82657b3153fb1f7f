#!/bin/sh
# soak.sh PROGRAM SECONDS - trains every model, for SECONDS in all, and looks at the memory of the process: it must not grow
# once training is warm. Evaluations, snapshots and checkpoints come often. Prints TAP.
set -u
rws=$(realpath "${1:?usage: soak.sh PROGRAM SECONDS}")
seconds=${2:?usage: soak.sh PROGRAM SECONDS}
. "$(dirname "$0")/../../tap.sh"

resident() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null; } # KiB

tries=0 wrong=0
soak() { # name options…: the largest size in the second quarter of the time against that in the last quarter
    name=$1
    shift
    "$rws" train "$@" -n 1000000000 --eval-every 50 --save-every 0 --out "$name" >out 2>err &
    pid=$!
    share=$((seconds / models))
    [ $share -ge 8 ] || share=8
    early=0 late=0
    began=$(date +%s)
    while :; do
        sleep 0.5
        at=$(($(date +%s) - began))
        [ $at -lt $share ] || break
        now=$(resident $pid)
        [ -n "$now" ] || break
        if [ $((4 * at)) -ge $share ] && [ $((2 * at)) -lt $share ] && [ "$now" -gt $early ]; then early=$now; fi
        if [ $((4 * at)) -ge $((3 * share)) ] && [ "$now" -gt $late ]; then late=$now; fi
    done
    kill -INT $pid
    wait $pid
    status=$?
    tries=$((tries + 1))
    [ $status = 130 ] && [ $early -gt 0 ] && [ $late -gt 0 ] && [ $late -le $((early + early / 50 + 1024)) ]
    ended=$?
    [ $ended = 0 ] || wrong=$((wrong + 1))
    report $ended "$name: $((early / 1024)) MB, later $((late / 1024)) MB, for $share s"
}

models=6
soak gmm gmm --method ww -k 20
soak gmm-threads gmm --method rebar -k 5 --threads 2
# Small trees: a pass needs memory for the largest tree so far, and with trees of up to 2000 nodes a larger one may always come.
soak pcfg pcfg --method ww -k 5 --eval-data 20 --set nodes=40
soak pcfg-sleep pcfg --method wws -k 5 --set grammar=garden --eval-data 10
soak air air --set images=blocks --method vimco -k 5 -b 20 --eval-data 10
soak sbn sbn --set data=noise --set pixels=100 --set layers=50,50 --method nvil -k 5 --eval-data 20
echo "# soak: $tries tries, $wrong failures"
finish
