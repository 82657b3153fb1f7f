#!/bin/sh
# test_runs.sh PROGRAM WIDE - stores, and the lists, exports, sweeps and figures that are made from them.
set -u
rws=$(realpath "${1:?usage: test_runs.sh PROGRAM WIDE}")
wide=$(realpath "${2:?usage: test_runs.sh PROGRAM WIDE}")
. "$(dirname "$0")/../../tap.sh"

# ---- rws runs, rws export

for seed in 1 2 3; do
    run train gmm --method ws -k 2 -s $seed -n 20 --eval-every 10 --out some/ws$seed
    run train gmm --method dww -k 2 -s $seed -n 20 --eval-every 10 --set delta=0.$seed --out some/dww$seed
done
gives 0 "rws runs" runs some
[ "$(wc -l <out)" = 7 ] && head -n 1 out | grep -q '^run  *method .*seed .*state .*p_error' && [ ! -s err ]
report $? "a table of all runs"
gives 0 "a run alone" runs some/ws1 --json
matches "an object" '^\{"run":"ws1","store":"some/ws1/metrics.sqlite","state":"finished","iteration":20,.*\}$' out
gives 0 "conditions" runs some --where method=ws --where seed=1,3 --json
[ "$(wc -l <out)" = 2 ] && ! grep -q '"seed":2' out
report $? "keep those that fulfil them"
gives 0 "conditions on settings" runs some --where delta=0.20 --json
[ "$(wc -l <out)" = 1 ] && grep -q '"run":"dww2"' out
report $? "compare numbers as numbers"
gives 0 "comparing" runs some --compare --metric p_error --json
[ "$(wc -l <out)" = 4 ] && grep -q '^{"runs":3,.*"method":"ws".*"p_error":{"median":' out
report $? "puts seeds together, and nothing else"
mkdir linked && cp -r some/ws1 linked/ws1 && ln -s ws1 linked/again
for paths in "some/ws1 some/ws1" "some some/ws1" "some/ws1 ./some" linked "linked/again linked/ws1/metrics.sqlite"; do
    run runs $paths --where method=ws --where seed=1 --compare --json
    [ "$(wc -l <out)" = 1 ] && grep -q '^{"runs":1,' out
    report $? "a run that is named twice counts once: $paths"
done
gives 0 "sorting" runs some --metric p_error --sort -q_error
gives 0 "a file" runs some/ws1/metrics.sqlite
refuses 'nowhere' runs nowhere
mkdir bare
refuses 'no runs' runs bare
refuses '"nonsense"' runs some --where nonsense=1
refuses 'key=value' runs some --where nonsense
refuses 'no run' runs some --where method=ww
refuses 'no state "ended"' runs some --where state=ended
refuses 'no run' runs some --where state=training --where delta=0.2
refuses 'No run has a metric "nonsense"; the metrics are ' runs some --metric nonsense
refuses '"nonsense"' runs some --sort nonsense
: >empty.sqlite
refuses 'empty.sqlite' runs empty.sqlite
echo "this is not a database, and it is long enough that it cannot be taken for an empty one" >text.sqlite
refuses 'text.sqlite' runs text.sqlite

gives 0 "rws export" export some
[ "$(wc -l <out)" = 19 ] && head -n 1 out | grep -q '^run,version,failure,model,method,.*,delta,.*,iteration,seconds,.*p_error'
report $? "a heading and a row for each evaluation"
columns=$(head -n 1 out | tr -dc , | wc -c)
[ "$(tr -dc ',\n' <out | awk -v n="$columns" 'length != n' | wc -l)" = 0 ]
report $? "as many columns in each"
gives 0 "as JSON" export some --format json --where method=dww
[ "$(wc -l <out)" = 9 ]
report $? "an object for each evaluation"
matches "with the configuration and the numbers" \
    '^\{"run":"dww[123]","version":"[0-9.]+","failure":null,"model":"gmm",.*"delta":0\.[0-9]+,.*"iteration":[0-9]+,"seconds":.*"p_error":0\.[0-9]+.*\}$' out
gives 0 "snapshots" export some --snapshots
[ "$(wc -l <out)" = $((1 + 6 * 3 * 8 * 20)) ]
report $? "the first, the middle and the last evaluation of each run"
gives 0 "into a file" export some --out table.json
[ ! -s out ] && [ "$(wc -l <table.json)" = 18 ] && grep -q '^{' table.json
report $? "whose ending says the format"
refuses '--format' export some --format xml
refuses '--format csv' export some --out table.xlsx
gives 0 "a format that is given decides" export some --format csv --out table.xlsx
refuses 'nowhere' export some --out nowhere/table.csv

# an export is read like a store
run export some --out exported.csv
run runs some && cp out first
gives 0 "an export in place of its store" runs exported.csv
cmp -s first out
report $? "gives the same table"
gives 0 "the export of an export" export exported.csv
cmp -s exported.csv out
report $? "is the same file"
printf 'run,version,failure,iterations,iteration,seconds,kl,loss\na,0.9.0,,9,1,2,3,4\na,0.9.0,,9,2,2,nan,\n' >nan.csv
gives 0 "a metric that is NaN, and one that was not measured" runs nan.csv --json
matches "are not the same" '"metrics":\{"kl":null,"loss":4.0\}' out
gives 0 "nor in an export" export nan.csv
cmp -s nan.csv out
report $? "which is the same file"
run train pcfg --set likelihood=hard --set rules=grammar --method ws -k 2 -n 20 --eval-every 10 --eval-data 4 --out hard
run export hard --out hard.csv && grep -q ',nan,' hard.csv
report $? "a run with a metric that is NaN"
run runs hard && cp out hard.txt
gives 0 "its export" runs hard.csv
cmp -s hard.txt out
report $? "gives the same table"
gives 0 "conditions on an export" runs exported.csv --where delta=0.2 --compare --json
[ "$(wc -l <out)" = 1 ] && grep -q '"runs":1,.*"delta":0.2' out
report $? "keep the runs that fulfil them"
gives 0 "a store and an export together" runs some exported.csv --json
[ "$(wc -l <out)" = 12 ] && [ "$(grep -c '"store":"exported.csv"' out)" = 6 ]
report $? "show all runs"
gives 0 "an export twice" runs exported.csv ./exported.csv --json
[ "$(wc -l <out)" = 6 ]
report $? "counts once"
cut -d, -f 1,4- exported.csv >older.csv
gives 0 "an export of version 0.7" runs older.csv
cmp -s first out
report $? "is read as well"
(head -n 1 exported.csv && printf '"a ""b"", c",0.8.0,"It broke, at iteration 7.",gmm\n') | awk -F, -v OFS=, 'NR == 1 { n = NF; print }
    NR == 2 { commas = n - 4; row = $0; for (i = 0; i < commas; i++) row = row ","; print row }' >odd.csv
refuses 'odd.csv", line 2: its iteration is not a whole number' runs odd.csv
printf 'run,version,failure,iterations,iteration,seconds,loss\n"a ""b"", c",0.8.0,"It broke, at 7.",9,1,2,3\n' >quoted.csv
gives 0 "a name and a failure in quotation marks" runs quoted.csv --json
matches "are as they were" '"run":"a \\"b\\", c",.*"state":"failed","iteration":1' out
printf 'a,b\n1,2\n' >data.csv
refuses 'data.csv" is no export of runs' runs data.csv
: >empty.csv
refuses 'empty.csv" is empty' runs empty.csv
printf 'run,iteration,seconds,loss\na,1,2\n' >short.csv
refuses 'short.csv", line 2: it has 3 columns, and the heading has 4' runs short.csv
printf 'run,iteration,seconds,loss\na,1,2,many\n' >wrong.csv
refuses 'line 2: it has "many" in column "loss", which is not a number' runs wrong.csv

# all digits of a seed, as far as JSON has numbers for it
for seed in 9007199254740993 9223372036854775807; do
    run train gmm -k 2 -s $seed -n 1 --out seeds/$seed
    gives 0 "a run with seed $seed" runs seeds/$seed --json
    grep -q "\"seed\":$seed," out
    report $? "has it in JSON"
    gives 0 "and its export" export seeds/$seed --format json
    grep -q "\"seed\":$seed," out
    report $? "has it too"
done
run train gmm -k 2 -s 9007199254740992 -n 1 --out seeds/9007199254740992
run runs seeds --where seed=9007199254740992 --json
[ "$(wc -l <out)" = 1 ] && grep -q '"run":"9007199254740992"' out
report $? "seeds are compared digit by digit"
run runs seeds --where seed=9007199254740992 --where iterations=1.0 --where particles=02 --json && [ "$(wc -l <out)" = 1 ]
report $? "numbers as numbers"
run train gmm -k 2 -s 18446744073709551615 -n 1 --out seeds/most && run export seeds/most --format json && grep -q '"seed":"18446744073709551615",' out
report $? "a seed that is no integer of JSON is a text"

# what a terminal would obey is not printed
control=$(printf 'red\033[31m\n\302\233Jx')
run train gmm -k 2 -n 1 --out "$control/$control-1"
run train gmm -k 2 -n 1 --out "$control/$control-2"
gives 0 "a run with control characters in its name" runs "$control"
[ "$(wc -l <out)" = 3 ] && ! LC_ALL=C grep -q "$(printf '[\001-\037\233]')" out && grep -q 'red?\[31m' out
report $? "is one line without them"

# names that are not UTF-8 are null in JSON
latin=$(printf 'caf\351')
run train gmm -k 2 -n 1 --out "$latin/run"
gives 0 "a folder whose name is not UTF-8" runs "$latin" --json
matches "has a store without a name in JSON" '^\{"run":"run","store":null,"state":"finished",' out
gives 0 "the tour there" demo --iterations 2 --out "$latin" --json
tail -n 1 out | grep -q '"picture":null}$' && [ -s "$latin/demo.png" ]
report $? "has a picture without a name"

# runs with many settings and metrics: no list is cut off
sets() { # first last: a --set for each setting
    for i in $(seq -w "$1" "$2"); do printf -- '--set=setting%s=1 ' "$i"; done
}
run train "$wide" -k 1 -n 1 --out many/left $(sets 00 29) && run train "$wide" -k 1 -n 1 --out many/right $(sets 30 59) &&
    run eval many/left --record
report $? "runs with many settings and metrics"
gives 0 "their table" runs many
[ "$(head -n 1 out | wc -w)" -gt $((60 + 2 * 50)) ] && grep -q '^left ' out && [ ! -s err ]
report $? "has all settings and metrics"
gives 0 "their comparison" runs many --compare
head -n 1 out | grep -q 'setting59 .* final_metric49 .* metric49'
report $? "has them too"
gives 0 "as JSON" runs many --json
matches "with all metrics" '"final_metric49":.*"metric49":' out
gives 0 "a late metric" runs many --metric metric49 --sort final_metric49
gives 0 "many metrics" runs many $(seq -w 0 49 | sed 's/^/-mmetric/')
gives 0 "their export" export many
head -n 1 out | grep -q ',setting59,.*,final_metric49,.*,metric49'
report $? "has all columns"
gives 0 "a late metric in a figure" plot final_metric49 many --out late.svg
printf 'model %s\nmethods ww\nparticles 1\niterations 1\n' "$wide" >wide.sweep
gives 0 "a sweep of such runs" sweep wide.sweep --json
head -n 1 out | grep -q '"state":"finished",.*"metric49":'
report $? "has all metrics in the line of a run"

# ---- rws sweep

printf 'model gmm\nmetods ww\n' >typo.sweep
refuses 'line 2: there is no key "metods" (did you mean "methods"?); the keys are model, methods,' sweep typo.sweep
cat >small.sweep <<END
model      gmm
methods    ww dww
particles  2 5
seeds      1-2
set        dww.delta 0.1 0.3
iterations 200
eval-every 50
END
gives 0 "the runs of a sweep" sweep small.sweep --list
[ "$(wc -l <out)" = 12 ] && [ "$(head -n 1 out)" = gmm-ww-k5-s1 ] && [ ! -e small ]
report $? "seed by seed, many particles first"
gives 0 "as JSON" sweep small.sweep --list --json
[ "$(wc -l <out)" = 12 ] && [ "$(head -n 1 out)" = '{"run":"gmm-ww-k5-s1"}' ]
report $? "an object for each"
gives 0 "rws sweep" sweep small.sweep
[ "$(grep -c '^finished  gmm-' out)" = 12 ] && tail -n 1 out | grep -q '^12 runs: 12 finished$' && [ ! -s err ]
report $? "a line for each run"
[ -f small/metrics.sqlite ] && [ "$(ls small | wc -l)" = 13 ] && [ ! -e small/gmm-ww-k2-s1/metrics.sqlite ]
report $? "one store beside the folders of the runs"
gives 0 "the store has them all" runs small --json
[ "$(grep -c '"state":"finished","iteration":200' out)" = 12 ]
report $? "to the end"
before=$(cat small/*/* | cksum)
gives 0 "a sweep that is done" sweep small.sweep --json
[ "$(cat out)" = '{"final":true,"runs":12,"finished":12,"finished_before":12,"failed":0}' ]
report $? "does nothing"
[ "$before" = "$(cat small/*/* | cksum)" ]
report $? "and touches nothing"
run train gmm --method ww -k 5 -s 2 -n 200 --eval-every 50 --out alone
same_checkpoint "a run of a sweep is the run it would be alone" small/gmm-ww-k5-s2 alone
for change in 'batch 7:--batch 7 contradicts' 'lr 1e-2:lr 1e-2 contradicts' 'iterations 100:iterations 100 contradict'; do
    { grep -v "^${change%% *}" small.sweep; echo "${change%%:*}"; } >other.sweep
    run sweep other.sweep --out small
    [ $? = 2 ] && grep -q "^failed .*: .*${change#*:}" out
    report $? "finished runs are not those of a sweep with ${change%%:*}"
done
[ "$before" = "$(cat small/*/* | cksum)" ]
report $? "and stay as they are"
rm -r small/gmm-ww-k2-s1
gives 0 "a finished run whose folder is gone" sweep small.sweep
tail -n 1 out | grep -q '12 of them before'
report $? "is still finished"
sed -i 's/^iterations.*/iterations 300/' small.sweep
gives 0 "more iterations" sweep small.sweep
run runs small --where iterations=300 --json
[ "$(grep -c '"iteration":300' out)" = 12 ]
report $? "extend what is there"
run runs small/gmm-ww-k2-s1 --json
grep -q '"iteration":300,"iterations":300' out
report $? "and begin anew what is not"
sed -i 's/^iterations.*/iterations 200/' small.sweep

refuses 'nowhere.sweep' sweep nowhere.sweep
refuses 'Which sweep' sweep
printf 'model gmm\nmethods ww\nparticles 0\n' >wrong.sweep
refuses 'line 3' sweep wrong.sweep
printf 'model gmm\nmethods ww\nparticles 2\nset start there\n' >wrong.sweep
refuses 'there' sweep wrong.sweep
printf 'model gmm\nmethods vimco\nparticles 1\n' >wrong.sweep
refuses 'vimco' sweep wrong.sweep
[ ! -e wrong ]
report $? "nothing is begun that cannot continue"
refuses '--jobs' sweep small.sweep --jobs 0

# a sweep in which the numbers of one run break halfway
cat >broken.sweep <<END
model      gmm
methods    ww
particles  2 5
iterations 200
eval-every 50
model      gmm
methods    reinforce
particles  2
optimiser  momentum
lr         1e-3,30:1e38
iterations 200
END
gives 1 "a run that breaks" sweep broken.sweep
[ "$(grep -c '^finished ' out)" = 2 ] && tail -n 1 out | grep -q '^failed    gmm-reinforce-k2-s1: .*iteration'
report $? "does not stop the others, and is named at the end"
run runs broken --where state=failed --json
[ "$(wc -l <out)" = 1 ] && grep -q '"failure":".*iteration' out
report $? "the store knows why"
gives 1 "it is not tried again" sweep broken.sweep --json
grep -q '"finished_before":2,"failed":1}' out && [ "$(wc -l <out)" = 1 ]
report $? "unless --retry"
if env --ignore-signal=CHLD true 2>err; then # GNU coreutils
    env --ignore-signal=CHLD "$rws" sweep broken.sweep --out deaf >out 2>err
    [ $? = 1 ] && tail -n 1 out | grep -q '^failed    gmm-reinforce-k2-s1: .*iteration'
    report $? "a failed run is noticed where the caller ignores SIGCHLD"
fi
gives 1 "--retry" sweep broken.sweep --retry
grep -q '^failed    gmm-reinforce-k2-s1: In iteration' out
report $? "tries"
printf 'model gmm\nmethods ww\nparticles 2\niterations 20\noptimiser sgd\nl2 1e6\nlr 3e38\n' >vain.sweep
gives 1 "a run that breaks before its first checkpoint" sweep vain.sweep
gives 0 "is in the list" runs vain --where state=failed --where method=ww
matches "with its sentence" '^(run |gmm-ww-k2-s1  .*failed +0 |gmm-ww-k2-s1: After iteration 1)' out
gives 0 "and has a state" sweep vain.sweep --status
[ "$(tail -n 1 out)" = "1 run: 1 failed" ]
report $? "that says so"
gives 0 "also by its folder" runs vain/gmm-ww-k2-s1 --json
grep -q '"state":"failed","iteration":0,"iterations":20,' out
report $? "with its configuration"
run train gmm --method ww -k 2 -n 20 --optimiser sgd --l2 1e6 --lr 3e38 --out vainly
gives 0 "a single run of this kind" runs vainly --json
grep -q '^{"run":"vainly","store":"vainly/metrics.sqlite","state":"failed",.*"method":"ww"' out
report $? "is shown as well"
if command -v sqlite3 >/dev/null; then
    cp -r broken hurt
    sqlite3 hurt/metrics.sqlite "UPDATE metrics SET value = value + 1 WHERE run = 'gmm-ww-k5-s1' AND iteration = 50"
    refuses 'hurt/metrics.sqlite" is damaged: rows of the run "gmm-ww-k5-s1" are not those that were written' runs hurt
    gives 0 "another run of the store is read by its folder" runs hurt/gmm-ww-k2-s1
fi
sed -i 's/^lr .*/lr 1e-3/; /^l2/d' vain.sweep
gives 0 "begins anew with what the file says now" sweep vain.sweep --json
grep -q '"finished":1,.*"failed":0' out
report $? "and finishes"

# stopped and killed
cat >cut.sweep <<END
model      gmm
methods    ww dww
particles  20
seeds      1-2
iterations 12000
eval-every 1000
END
gives 0 "a sweep to compare with" sweep cut.sweep --out uncut
for signal in TERM KILL KILL; do
    "$rws" sweep cut.sweep >out 2>err &
    pid=$!
    while [ -z "$(ls cut/*/checkpoint.safetensors 2>/dev/null)" ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
    sleep 0.2
    kill -$signal $pid
    wait $pid 2>/dev/null
    status=$?
    if [ $signal = TERM ]; then
        [ $status = 130 ] && grep -q 'the same command continues' err
        report $? "stopped politely"
    fi
done
gives 0 "continues" sweep cut.sweep
tail -n 1 out | grep -q '^4 runs: 4 finished'
report $? "to the end"
for name in ww-k20-s1 ww-k20-s2 dww-k20-s1 dww-k20-s2; do
    same_checkpoint "$name is what it would have been" cut/gmm-$name uncut/gmm-$name
done

# two sweeps at once
"$rws" sweep small.sweep --out shared >first 2>&1 &
one=$!
"$rws" sweep small.sweep --out shared >second 2>&1 &
two=$!
wait $one && wait $two
report $? "two sweeps in one folder at once"
# both sweeps may report a run that ends while the other one looks at it
run runs shared --where state=finished --json && [ "$(wc -l <out)" = 12 ] && [ "$(grep -hc '^finished' first)" -gt 0 ] &&
    [ "$(grep -hc '^finished' second)" -gt 0 ]
report $? "share the work"
sed 's/1-2/3-4/' small.sweep >other.sweep
"$rws" sweep small.sweep --out mixed >first 2>&1 &
one=$!
"$rws" sweep other.sweep --out mixed >second 2>&1 &
two=$!
wait $one && wait $two
report $? "two different sweeps in one folder at once"
run export mixed
[ "$(wc -l <out)" = $((1 + 24 * 5)) ]
report $? "lose no rows"
run export mixed --snapshots
[ "$(wc -l <out)" = $((1 + 24 * 3 * 8 * 20)) ]
report $? "nor snapshots"

# metrics that are measured after training
printf 'model gmm\nmethods ww\nparticles 2\niterations 20\nfinal 50 30\n' >final.sweep
gives 0 "a sweep that measures at the end" sweep final.sweep --json
head -n 1 out | grep -q '"final_ess":0\.' && ! grep -q '"ess"' out
report $? "calls what it measured final"
run runs final --metric final_ess --json
grep -q '"final_ess":0\.' out
report $? "has it in the store"
gives 0 "is done" sweep final.sweep --json
grep -q '"finished_before":1' out
report $? "when that is"

# ---- rws plot

LC_ALL=C gives 0 "a curve on the terminal" plot p_error shared --where delta=0.1
[ "$(wc -l <out)" = 48 ] && grep -q 'd-WW$' out && ! LC_ALL=C grep -q '[^ -~]' out
report $? "in ASCII where there is no UTF-8"
LC_ALL=C.UTF-8 gives 0 "one panel" plot p_error shared --panels none
grep -q '⠉' out && grep -q 'WW, K = 5$' out
report $? "in braille where there is"
for ending in png svg pdf; do
    gives 0 "a picture" plot p_error,q_error shared --out picture.$ending
done
[ "$(head -c 4 picture.png | tail -c 3)" = PNG ] && grep -q '>δ-WW, delta = 0.1<' picture.svg && head -c 4 picture.pdf | grep -q PDF
report $? "of each kind, with the curves' names"
printf 'run,method,iterations,iteration,seconds,loss\na,ws,1,1,1,1\nb,ww,1,1,1,2\n' >two.csv
gives 0 "a panel for each method" plot loss two.csv --panels method --out two.svg
grep -q '>method = ww<' two.svg && grep -q '>WS<' two.svg && grep -q '>WW<' two.svg
report $? "has the curve of this method, with its name"
gives 0 "final values over particles" plot p_error shared -x particles --out over.svg
grep -q '>particles K<' over.svg
report $? "are drawn too"
gives 0 "over seconds" plot q_error shared -x seconds --linear --out seconds.png
gives 0 "without its beginning" plot p_error shared --from 20 --out late.svg
gives 0 "means, smoothed, beside a level" plot p_error shared --mean --smooth 0.9 --baseline exact=0.25 --width 300 --height 90 \
    --font Serif --out level.svg
[ -s level.svg ] && gives 0 "panels on the terminal" plot p_error shared --baseline exact=0.25 --width 60 --height 15
[ "$(grep -c '^ *0.25[+┤]\|exact' out)" -ge "$(grep -c 'K = ' out)" ] && [ "$(awk '{ if (length($0) > n) n = length($0) } END { print n }' out)" -le 180 ]
report $? "each with the level"
refuses 'NAME=VALUE' plot p_error shared --baseline 0.25
refuses '--smooth' plot p_error shared --smooth 1
refuses '--from' plot p_error shared --from here
refuses '--from 1e+06' plot p_error shared --from 1000000
refuses 'Which metric' plot
refuses '"nonsense"' plot nonsense shared
refuses '.png' plot p_error shared --out picture.gif
refuses 'No value of log_evidence is above 0' plot log_evidence shared --log --out negative.png
refuses 'do not go together' plot p_error shared --log --linear
[ ! -e negative.png ]
report $? "nothing is drawn then"
printf 'run,method,particles,iterations,iteration,seconds,loss\n' >crowd.csv
for k in $(seq 9); do printf 'k%d,ww,%d,1,1,1,%d\n' $k $k $k >>crowd.csv; done
refuses 'with --panels none, or make it the x axis with -x particles.' plot loss crowd.csv --out crowd.svg
gives 0 "one panel" plot loss crowd.csv --panels none --out crowd.svg
gives 0 "or an axis" plot loss crowd.csv -x particles --out crowd.svg
refuses 'nonsense' plot p_error shared --panels nonsense
refuses 'nonsense' plot p_error shared -x nonsense
refuses '"start"' plot p_error shared -x start

# ---- rws reproduce: the experiments, in small

refuses 'Which experiment' reproduce
refuses '"nonsense"' reproduce nonsense
refuses 'nowhere' reproduce gmm --report --out nowhere
for experiment in gmm gmm-code gmm-near pcfg air sbn; do
    gives 0 "the sweep of $experiment" reproduce $experiment --sweep
    cp out $experiment.sweep
    gives 0 "and its quick one" reproduce $experiment --sweep --quick
    [ "$(wc -l <out)" -ge 6 ] && ! cmp -s out $experiment.sweep
    report $? "are two"
done
refuses 'name one, or add --json' reproduce all --sweep
gives 0 "the sweeps of all experiments" reproduce all --sweep --json
matches "an object for each" '^\{"experiment":"[a-z-]+","sweep":"model .*\}$' out
sed -i 's/^seeds.*/seeds 1/; s/^particles.*/particles 2 20/; s/^iterations.*/iterations 20/; s/^eval-every.*/eval-every 5/' gmm.sweep
gives 0 "the runs of gmm, much shorter" sweep gmm.sweep --out paper/gmm/runs
gives 0 "its figures and claims" reproduce gmm --report --out paper
grep -q '^G1  undecided (1 seed)$' out && grep -q '^G4a  undecided (1 seed)$' out && grep -q '^[0-9]* of [0-9]* claims hold' out
report $? "are judged"
for figure in gmm-main gmm-hinton gmm-std; do
    [ -s paper/gmm/$figure.png ] && [ -s paper/gmm/$figure.svg ] && [ -s paper/gmm/$figure.pdf ]
    report $? "$figure is drawn"
done
grep -q '^| G1 |' paper/gmm/claims.md && grep -q '"claim": "G1"' paper/gmm/claims.json
report $? "the claims are written down"
grep -q '^\*Are branches pruned' paper/gmm/report.md && grep -q '(gmm-hinton.png)' paper/gmm/report.md
report $? "the report answers the captions"
[ "$(grep -c '^gmm,' paper/gmm/final.csv)" -eq "$(ls -d paper/gmm/runs/gmm-* | wc -l)" ]
report $? "every run has a line in final.csv"
gives 0 "as JSON" reproduce gmm --report --out paper --json
matches "an object for each claim" '^\{"(claim|final)":.*\}$' out
gives 2 "several, of which one has no runs" reproduce gmm gmm-near --report --out paper
grep -q '^rws: gmm-near: ' err && grep -q '^G1  ' out
report $? "do what they can, and say what they cannot"
gives 0 "the same runs, each with a store of its own" sweep gmm.sweep --out stores/gmm/runs --task 1/1
run reproduce gmm --report --out stores && grep -q '^[0-9]* of [0-9]* claims hold' out && cmp -s paper/gmm/claims.md stores/gmm/claims.md
report $? "give the same claims"

# ---- runs that were trained elsewhere and exported

mkdir -p elsewhere/gmm elsewhere/gmm-quick
run export paper/gmm/runs --out elsewhere/gmm/runs.csv
gives 0 "figures and claims from exported runs" reproduce gmm --report --out elsewhere
cmp -s paper/gmm/final.csv elsewhere/gmm/final.csv
report $? "are those of the runs themselves"
cp paper/gmm/claims.md first && cp elsewhere/gmm/runs.csv paper/gmm && run reproduce gmm --report --out paper
cmp -s first paper/gmm/claims.md && cmp -s elsewhere/gmm/final.csv paper/gmm/final.csv
report $? "exported runs that are in the store as well count once"
"$rws" reproduce gmm --quick --sweep >quick.sweep
"$rws" sweep quick.sweep --list >names
{ echo run,model,iterations,iteration,seconds,p_error && sed 's/$/,gmm,100000,100000,1,0.5/' names; } >elsewhere/gmm-quick/runs.csv
gives 0 "an experiment whose runs are all exported" reproduce gmm --quick --out elsewhere
grep -q "^$(wc -l <names) runs: $(wc -l <names) finished" out && [ -z "$(find elsewhere -name checkpoint.safetensors)" ]
report $? "trains none of them again"

# ---- a sweep in tasks, as schedulers start them: no two write the same file

cat >tasks.sweep <<END
model      gmm
methods    ws ww
particles  2
seeds      1-2
iterations 60
eval-every 20
END
refuses 'I/N' sweep tasks.sweep --task 3/2
refuses 'I/N' sweep tasks.sweep --task 0/2
refuses 'do not go together' sweep tasks.sweep --task 1/2 --status
refuses '--slurm' sweep tasks.sweep --tasks 3
gives 0 "nothing is known before the first task" sweep tasks.sweep --status
[ "$(tail -n 1 out)" = "4 runs: 4 waiting" ]
report $? "all runs wait"
gives 0 "task 1 of 3 has two runs" sweep tasks.sweep --task 1/3 -j 1
[ "$(tail -n 1 out)" = "2 runs: 2 finished" ]
report $? "and finishes them"
gives 0 "rws sweep --status" sweep tasks.sweep --status
[ "$(tail -n 1 out)" = "4 runs: 2 finished, 2 waiting" ] && [ "$(grep -c ' 60/60 ' out)" = 2 ]
report $? "two runs are finished, two wait"
[ ! -e tasks/metrics.sqlite ] && [ "$(ls -d tasks/*/metrics.sqlite | wc -l)" = 2 ]
report $? "every run has a store of its own"
run sweep tasks.sweep --task 2/3 -j 1 && run sweep tasks.sweep --task 3/3 -j 1
report $? "the other tasks"
gives 0 "the sweep without tasks finds all runs" sweep tasks.sweep
[ "$(tail -n 1 out)" = "4 runs: 4 finished (4 of them before)" ] && [ ! -e tasks/metrics.sqlite ]
report $? "finished, and makes no store"
gives 0 "the same sweep in one piece" sweep tasks.sweep --out whole
for folder in whole/*/; do
    same_checkpoint "$(basename "$folder") has the same bits" "$folder" "tasks/$(basename "$folder")"
done
run runs tasks && sed 's/  */ /g' out | cut -d ' ' -f 1-5 >one && run runs whole && sed 's/  */ /g' out | cut -d ' ' -f 1-5 >two && cmp -s one two
report $? "rws runs reads a folder of stores"
refuses 'share a store' sweep tasks.sweep --out whole --task 1/3

# --task I/N has more tasks than an array of Slurm; --status looks at all that wrote something
mkdir -p late/.tasks
printf '{"task":4711,"tasks":5000,"host":"far","time":%s,"ended":false,"runs":[{"run":"gmm-ws-k2-s2","iteration":7}]}' \
    "$(date +%s)" >late/.tasks/4711
echo "no task" >late/.tasks/4711.log
gives 0 "the status of a task with a large number" sweep tasks.sweep --out late --status
grep -q '^training *7/60 .* task 4711 on far' out && [ "$(tail -n 1 out)" = "4 runs: 1 training, 3 waiting" ]
report $? "is shown"

# --status of a sweep that runs on this machine, and after it was stopped
printf 'model gmm\nmethods ww\nparticles 2\nseeds 1\niterations 100000000\neval-every 1000\n' >long.sweep
"$rws" sweep long.sweep >long.log 2>&1 &
pid=$!
for i in $(seq 200); do
    run sweep long.sweep --status
    grep -q '^training *[1-9][0-9]*/100000000 ' out && break
    sleep 0.1
done
[ "$(tail -n 1 out)" = "1 run: 1 training" ]
report $? "a run that is being trained is shown as training"
kill -INT $pid
wait $pid
run sweep long.sweep --status
[ "$(tail -n 1 out)" = "1 run: 1 stopped" ]
report $? "and as stopped afterwards"

# a queue with more jobs than there is room for in a sentence
mkdir bin && printf '#!/bin/sh\nexec seq 1000000\n' >bin/squeue && chmod +x bin/squeue
PATH=$PWD/bin:$PATH gives 2 "tasks that are queued" sweep tasks.sweep --out queued --slurm
grep -q 'are in the queue already: job 1 ' err
report $? "are not queued twice"

finish
