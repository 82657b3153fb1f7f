#!/bin/sh
# test_mpi.sh PROGRAM MODEL.so CONDITIONAL.so - one run over a few ranks, in seconds: the same bits as alone, a rank that is killed,
# ranks that do not belong together. `make test-cluster` tests more. Skipped where no MPI is installed.
set -u
rws=$(realpath "${1:?usage: test_mpi.sh PROGRAM MODEL.so CONDITIONAL.so}")
toy=$(realpath "${2:?usage: test_mpi.sh PROGRAM MODEL.so CONDITIONAL.so}")
conditional=$(realpath "$3")
here=$(realpath "$(dirname "$0")")
. "$here/../../tap.sh"
. "$here/mpi.sh"

if [ -z "$(kinds)" ]; then
    echo "1..0 # SKIP no MPI: scripts/setup cluster installs Open MPI and MPICH, and the program must be built after that"
    exit 0
fi
first=$(kinds | head -n 1)

# ---- the same bits

same() { # name ranks "arguments": alone, and with every MPI
    run train $3 --out "alone-$1" && cp out "out-$1"
    report $? "$1 alone"
    for kind in $(kinds); do
        ranks "$kind" "$2" "$rws" train $3 --out "$1-$kind" >out 2>err
        report $? "$1 on $2 ranks of $kind"
        same_checkpoint "$1 on $2 ranks of $kind ends with the bits of the run alone" "alone-$1" "$1-$kind"
        sed 's/"seconds":[^,}]*//' out >one && sed 's/"seconds":[^,}]*//' "out-$1" >two && cmp -s one two
        report $? "$1 on $2 ranks of $kind prints the same evaluations, once"
    done
}
same gmm 3 "gmm --method ww --shards 4 -n 60 --json"
same pcfg 2 "pcfg --method ws --shards 3 -b 6 -k 5 -n 8 --eval-data 10 --json"
same cut 2 "gmm --method vimco --shards 2 --particle-shards 3 -k 7 -n 40 --json"
same relax 2 "gmm --method relax --shards 1 --particle-shards 2 -k 4 -n 20 --json"
same plug-in 2 "$toy --shards 3 -n 40 --json"
same inputs 2 "$conditional --method ws --shards 3 -k 4 -n 12 --json" # dreams have the inputs of the batch
# Ranks of one machine share memory. Without it all messages go by MPI, as between machines.
export RWS_SHARED_MEMORY=no
same gmm-by-MPI 3 "gmm --method ww --shards 4 -n 60 --json"
same pcfg-by-MPI 2 "pcfg --method ws --shards 3 -b 6 -k 5 -n 8 --eval-data 10 --json"
unset RWS_SHARED_MEMORY

# ---- resumed with other numbers of ranks

run train gmm --shards 4 -n 90 --eval-every 30 --out whole
ranks "$first" 2 "$rws" train gmm --shards 4 -n 30 --eval-every 30 --out parts >out 2>err &&
    ranks "$first" 3 "$rws" train gmm -n 60 --out parts --resume >out 2>err &&
    run train gmm -n 90 --out parts --resume
report $? "begun on 2 ranks, resumed on 3, then on none"
same_checkpoint "the bits are those of one piece" whole parts

# ---- refusals: one sentence

says() { # name words
    [ "$(grep -c '^rws: ' err)" = 1 ] && grep -qFe "$2" err
    report $? "$1"
}
ranks "$first" 2 "$rws" train gmm --method nonsense >out 2>err
says "a mistake is told once" '"nonsense"'
ranks "$first" 2 "$rws" list >out 2>err
says "rws list works alone" 'works alone'
if [ "$first" = openmpi ]; then
    mpirun.openmpi -n 1 "$rws" train gmm -n 5 : -n 1 "$rws" train gmm -n 5 --seed 2 >out 2>err
    says "ranks with other options" 'differs from rank 0 in its options'
    { cat "$rws" && echo; } >other && chmod +x other && cp "$(dirname "$rws")"/librws-*.so .
    mpirun.openmpi -n 1 "$rws" train gmm -n 5 : -n 1 ./other train gmm -n 5 >out 2>err
    says "ranks of another build" 'differs from rank 0 in its version or build'
    mkdir a b && cp "$toy" a/model.so && { cat "$toy" && echo; } >b/model.so
    mpirun.openmpi -wdir "$work/a" -n 1 "$rws" train ./model.so -n 5 : -wdir "$work/b" -n 1 "$rws" train ./model.so -n 5 \
        >out 2>err
    says "ranks of another model" 'differs from rank 0 in its model'
    printf 'astronomers saw stars\nstars saw astronomers\n' >a/data
    printf 'astronomers saw ears\nears saw astronomers\n' >b/data
    mpirun.openmpi -wdir "$work/a" -n 1 "$rws" train pcfg --data ./data -n 5 : -wdir "$work/b" -n 1 "$rws" train pcfg \
        --data ./data -n 5 >out 2>err
    says "ranks with other data" 'data: all ranks need the same'
fi
mkdir bare && cp "$rws" bare/rws
if [ ! -e /usr/local/lib/rws ]; then
    ranks "$first" 2 bare/rws train gmm -n 5 >out 2>err
    says "a build without MPI says so" 'this build has no part for'
fi

# ---- a signal to one rank

ranks "$first" 2 "$rws" train gmm --shards 4 -n 30000000 --eval-every 100000000 --out stopped >out 2>err &
job=$!
for _ in $(seq 100); do
    [ -f stopped/checkpoint.safetensors ] && break
    sleep 0.1
done
sleep 0.3
kill -TERM "$(pgrep -f "^$rws train gmm --shards 4 -n 30000000" | tail -n 1)"
wait $job
grep -q '^rws: Stopped after iteration [0-9]*; continue with: ' err
report $? "a signal that reaches one rank stops all, with a checkpoint"
at=$(sed -n 's/.*Stopped after iteration \([0-9]*\);.*/\1/p' err)
run eval stopped --json && grep -q "\"iteration\":$at," out
report $? "of that iteration"

# ---- tasks that a launcher starts together

printf 'model gmm\nmethods ww ws\nparticles 2\niterations 20\n' >pair.sweep
if [ "$first" = openmpi ]; then
    mpirun.openmpi -n 2 sh -c 'exec "$0" sweep pair.sweep -j 1 --task "$((OMPI_COMM_WORLD_RANK + 1))/2"' "$rws" >out 2>err
    report $? "two tasks, started by mpirun"
    [ "$(ls pair/*/checkpoint.safetensors | wc -l)" = 2 ]
    report $? "train a run each"
fi

# ---- what bench tells of all ranks

run bench gmm -k 2 --shards 2 --iterations 200 --repeat 1 --json && cp out one
ranks "$first" 2 "$rws" bench gmm -k 2 --shards 2 --iterations 200 --repeat 1 --json >out 2>err
report $? "rws bench on 2 ranks"
for key in rows_per_iteration particles_per_iteration kernel_calls_per_iteration; do
    number="s/.*\"$key\":\([0-9.e+]*\).*/\1/p"
    [ "$(sed -n "$number" out)" ] && [ "$(sed -n "$number" out)" = "$(sed -n "$number" one)" ]
    report $? "$key is that of all ranks"
done

# ---- a rank that is killed: with every MPI, whose launchers end the others at different moments

for kind in $(kinds); do
    ranks "$kind" 3 "$rws" train gmm --shards 4 -n 20000000 --eval-every 200 --save-every 0 --out killed-$kind >out 2>err &
    job=$!
    for _ in $(seq 100); do
        [ -f killed-$kind/checkpoint.safetensors ] && break
        sleep 0.1
    done
    victim=$(pgrep -f "^$rws train gmm --shards 4 -n 20000000 --eval-every 200 --save-every 0 --out killed-$kind" | tail -n 1)
    kill -KILL "$victim"
    since=$(date +%s)
    wait $job
    [ $? != 0 ] && [ $(($(date +%s) - since)) -le 10 ]
    report $? "$kind: the job ends within 10 seconds"
    grep -q "^rws: Rank [012] on .* (process $victim) .*--resume" err && [ "$(grep -c '^rws: ' err)" = 1 ]
    report $? "$kind: one sentence names the rank"
    done_=$(run eval killed-$kind --json && sed 's/.*"iteration":\([0-9]*\).*/\1/' out)
    end=$((done_ + 100))
    ranks "$kind" 2 "$rws" train gmm --out killed-$kind --resume -n $end >out 2>err &&
        run train gmm --shards 4 -n $end --eval-every 200 --out undisturbed-$kind
    report $? "$kind: the run continues from iteration $done_"
    same_checkpoint "$kind: and ends with the bits of the undisturbed one" killed-$kind undisturbed-$kind
done
finish
