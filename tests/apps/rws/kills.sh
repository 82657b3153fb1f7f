#!/bin/sh
# kills.sh PROGRAM N - kills (SIGKILL) training N times at random moments, also while checkpoints are written. Every run
# must resume, and end with the bits of a run that was not killed.
#
# A third of the kills hit a run that writes a checkpoint after every few iterations, and so does little else; a third hit a
# run that mostly trains; a third hit a sweep with its runs. Prints TAP.
set -u
rws=$(realpath "${1:?usage: kills.sh PROGRAM N}")
kills=${2:?usage: kills.sh PROGRAM N}
. "$(dirname "$0")/../../tap.sh"

pause() { # up to that many milliseconds
    sleep "$(od -An -N4 -tu4 /dev/urandom | awk -v most="$1" '{ printf "%.3f", $1 % most / 1000 }')"
}

measures() { # folder: what was measured, without names and times
    "$rws" export "$1" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) drop[i] = $i == "run" || $i == "seconds" }
        { for (i = 1; i <= NF; i++) if (!drop[i]) printf "%s,", $i; print "" }'
    "$rws" export "$1" --snapshots | cut -d, -f2-
}

torture() { # name kills milliseconds options…
    name=$1 left=$2 most=$3
    shift 3
    run train gmm --method ww -k 2 --out whole_$name "$@"
    report $? "$name: the uninterrupted run"
    cut=0 lost=0 round=0
    while [ $left -gt 0 ]; do
        round=$((round + 1))
        folder=cut_${name}_$round
        "$rws" train gmm --method ww -k 2 --out $folder "$@" >out 2>err &
        while :; do
            pid=$!
            pause "$most"
            kill -KILL $pid 2>/dev/null
            wait $pid 2>/dev/null
            status=$?
            [ $status = 137 ] || break
            left=$((left - 1)) cut=$((cut + 1))
            if [ -f $folder/checkpoint.safetensors ]; then
                run eval $folder || lost=$((lost + 1))
            fi
            [ $left -gt 0 ] || break
            if [ -f $folder/config.json ]; then
                "$rws" train gmm --out $folder --resume "$@" >out 2>err &
            else # killed before it had begun
                "$rws" train gmm --method ww -k 2 --out $folder "$@" >out 2>err &
            fi
        done
        if [ $status = 137 ]; then
            if [ -f $folder/config.json ]; then run train gmm --out $folder --resume "$@"
            else run train gmm --method ww -k 2 --out $folder "$@"; fi
            status=$?
        fi
        [ $status = 0 ]
        report $? "$name: run $round ends, after $cut kills in all"
        same_checkpoint "$name: with the bits of the uninterrupted run" $folder whole_$name
        measures $folder >a && measures whole_$name >b && cmp -s a b
        report $? "$name: and its measures"
    done
    [ $lost = 0 ]
    report $? "$name: after each of $cut kills the checkpoint was whole"
    all=$((all + cut))
}

# A sweep is killed together with its runs, and started again. Its store is shared by the runs.
sweep() { # kills
    left=$1 cut=0 round=0
    printf 'model gmm\nmethods ww vimco\nparticles 2\nseeds 1-3\niterations 2000\neval-every 100\nfinal 20\n' >storm.sweep
    run sweep storm.sweep --jobs 2 --out whole_sweep
    report $? "sweep: the uninterrupted sweep"
    while [ $left -gt 0 ]; do
        round=$((round + 1))
        folder=cut_sweep_$round
        status=137
        while [ $status = 137 ] && [ $left -gt 0 ]; do
            setsid "$rws" sweep storm.sweep --jobs 2 --out $folder >out 2>err &
            pid=$!
            pause 1500
            kill -KILL -$pid 2>/dev/null
            wait $pid 2>/dev/null
            status=$?
            [ $status = 137 ] || break
            left=$((left - 1)) cut=$((cut + 1))
        done
        [ $status = 0 ] || { run sweep storm.sweep --jobs 2 --out $folder; status=$?; }
        [ $status = 0 ]
        report $? "sweep: sweep $round ends, after $cut kills in all"
        for one in whole_sweep/*/; do
            same_checkpoint "sweep: $(basename "$one") has the bits of the uninterrupted sweep" "$folder/$(basename "$one")" "$one"
        done
        measures $folder | sort >a && measures whole_sweep | sort >b && cmp -s a b
        report $? "sweep: and its measures"
    done
    all=$((all + cut))
}

all=0
torture saving $(((kills + 2) / 3)) 400 -n 300 --eval-every 2 --save-every 0
torture training $(((kills + 1) / 3)) 400 -n 20000 --eval-every 1000 --save-every 0.1
sweep $((kills / 3))
echo "# kills: $all tries, $failed failures"

finish
