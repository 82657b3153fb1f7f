#!/bin/sh
# test_runs.sh PROGRAM - stores and what is made of them: lists, exports, sweeps, figures.
set -u
rws=$(realpath "${1:?usage: test_runs.sh PROGRAM}")
. "$(dirname "$0")/tap.sh"

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
gives 0 "sorting" runs some --metric p_error --sort -q_error
gives 0 "a file" runs some/ws1/metrics.sqlite
refuses 'nowhere' runs nowhere
mkdir bare
refuses 'no runs' runs bare
refuses '"nonsense"' runs some --where nonsense=1
refuses 'key=value' runs some --where nonsense
refuses 'no run' runs some --where method=ww
refuses '"nonsense"' runs some --metric nonsense
refuses '"nonsense"' runs some --sort nonsense
: >empty.sqlite
refuses 'empty.sqlite' runs empty.sqlite
echo "this is not a database, and it is long enough that it cannot be taken for an empty one" >text.sqlite
refuses 'text.sqlite' runs text.sqlite

gives 0 "rws export" export some
[ "$(wc -l <out)" = 19 ] && head -n 1 out | grep -q '^run,model,method,.*,delta,.*,iteration,seconds,.*p_error'
report $? "a heading and a row for each evaluation"
columns=$(head -n 1 out | tr -dc , | wc -c)
[ "$(tr -dc ',\n' <out | awk -v n="$columns" 'length != n' | wc -l)" = 0 ]
report $? "as many columns in each"
gives 0 "as JSON" export some --format json --where method=dww
[ "$(wc -l <out)" = 9 ]
report $? "an object for each evaluation"
matches "with the configuration and the numbers" \
    '^\{"run":"dww[123]","model":"gmm",.*"delta":0\.[0-9]+,.*"iteration":[0-9]+,"seconds":.*"p_error":0\.[0-9]+.*\}$' out
gives 0 "snapshots" export some --snapshots
[ "$(wc -l <out)" = $((1 + 6 * 3 * 8 * 20)) ]
report $? "the first, the middle and the last evaluation of each run"
gives 0 "into a file" export some --out table.json
[ ! -s out ] && [ "$(wc -l <table.json)" = 18 ] && grep -q '^{' table.json
report $? "whose ending says the format"
refuses '--format' export some --format xml
refuses 'nowhere' export some --out nowhere/table.csv

finish
