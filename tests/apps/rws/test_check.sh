#!/bin/sh
# test_check.sh PROGRAM PLANTED.so TRIPS.csv SESSIONS.csv MODEL.so... - rws check is silent about the models that are built in and about the
# examples, and tells of a planted mistake, which training refuses too.
set -u
rws=$(realpath "${1:?usage: test_check.sh PROGRAM PLANTED.so TRIPS.csv SESSIONS.csv MODEL.so...}")
planted=$(realpath "$2") trips=$(realpath "$3") sessions=$(realpath "$4")
examples=$(dirname "$(realpath "$5")")
. "$(dirname "$0")/../../tap.sh"

silent() { # model option…
    gives 0 "rws check $1" check "$@"
    grep -v '^note (sum)' out >rest # advice is no complaint
    [ "$(grep -v 'Nothing was found.' rest | wc -l)" = 1 ] && grep -q '^An iteration takes .* ms: [0-9]* rows' rest
    report $? "nothing is found"
}

silent gmm
silent gmm --method wws
silent pcfg
silent sbn --set data=noise --set pixels=50 --set layers=20,10
silent air -k 4 -b 6 --set images=blocks --set canvas=14 --set glimpse=6 --set what=5 --set hidden=16
for name in burglary coal dp expressions gp hmm kumaraswamy rules slds tracking; do
    silent "$examples/$name.so"
done
gives 0 "a choice behind which nothing is drawn" check "$examples/burglary.so"
[ "$(grep -c '^note (sum)' out)" = 2 ] && grep -q '^note (sum): Site "alarm" has 2 values .*site.alarm=sum' out
report $? "may be summed"
gives 0 "that is summed" check "$examples/burglary.so" --set site.alarm=sum
grep -q 'alarm' out
[ $? = 1 ]
report $? "is not told again"
silent "$examples/trips.so" --data "$trips"
silent "$examples/sessions.so" --data "$sessions"

gives 0 "JSON of a model without a mistake" check gmm --json
matches "one object" '^\{"final":true,"mistakes":0,"warnings":0,"notes":0,"us_per_iteration":[0-9.e+]*,"rows_per_iteration":[0-9]*,"paths_per_iteration":[0-9]*,"kernel_calls_per_iteration":[0-9]*\}$' out

gives 2 "a mistake has the exit status 2" check "$planted"
grep -q '^mistake (state): The same draws have other scores .* first at site "coin"' out && grep -q '^rws: The model has 1 mistake\.$' err
report $? "it is told, with the site"
gives 2 "the same as JSON" check "$planted" --json
head -n 1 out | grep -q '^{"kind":"state","severity":"mistake","about":"coin","text":"The same draws' && tail -n 1 out | grep -q '"mistakes":1'
report $? "a line for each finding"
refuses 'leave out --out and --resume' check "$planted" --out run
refuses 'first at site "coin"' train "$planted"
grep -q -e '--no-check accepts it' err
report $? "the message names the option"
gives 0 "--no-check accepts it" train "$planted" --no-check

finish
