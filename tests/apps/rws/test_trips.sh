#!/bin/sh
# test_trips.sh PROGRAM MODEL.so TABLE.csv - the example that learns from a table: near the truth, from any folder, after an
# interruption, and with a sentence for tables that it cannot read.
set -u
rws=$(realpath "${1:?usage: test_trips.sh PROGRAM MODEL.so TABLE.csv}")
model=$(realpath "$2") table=$(realpath "$3")
. "$(dirname "$0")/../../tap.sh"

# The maximum of the exact likelihood, by EM over the three ways to make a trip: 12.321 minutes, log p(x) -4.4171.
gives 0 "trips.so learns" train "$model" --data "$table" --json
tail -n 1 out | awk -F '[:,]' '{ for (i = 1; i < NF; i++) {
    if ($i == "\"delay\"") delay = $(i + 1)
    if ($i == "\"log_evidence\"") evidence = $(i + 1) } }
    END { exit !(delay > 12.22 && delay < 12.42 && evidence > -4.43 && evidence < -4.40) }'
report $? "as much as exact EM does"

# ---- a run

cp "$table" here.csv
gives 0 "a relative path" train "$model" --data here.csv -n 20 --out run
grep -qF "\"$work/here.csv\"" run/config.json
report $? "is absolute in the run's configuration"
gives 0 "without an interruption" train "$model" --data here.csv -n 40 --out whole
mkdir elsewhere
(cd elsewhere && "$rws" train --out ../run --resume -n 40 >../out 2>../err)
report $? "it continues from another folder"
same_checkpoint "with the same rows" run whole
gives 0 "it can be asked" infer run "6 27" --choices
gives 0 "the choices of all particles" infer run "6 27" --choices --top 0 --json
python3 -c 'import json
a = json.load(open("out"))
with open("want", "w") as f:
    for site in "car", "jam":
        for value in 0, 1:
            w = sum(p["weight"] for p in a["particles_listed"] for c in p["choices"] if (c["site"], c["value"]) == (site, value))
            print(site, value, round(w, 6), file=f)'
gives 0 "each choice by itself" infer run "6 27" --marginals --json
python3 -c 'import json
for m in json.load(open("out"))["marginals"]:
    assert abs(m["posterior"] - sum(v["posterior"] for v in m["values"])) < 1e-9
    for v in m["values"]: print(m["site"], int(v["value"]), round(v["posterior"], 6))' | diff want - >&2
report $? "has the sum of the weights"
gives 0 "as a table" infer run "6 27" --marginals
grep -qE '^  jam   .*1: 0\.[0-9]{3}   not visited: 0\.[0-9]{3}$' out
report $? "with the probability that the site is not visited"
gives 0 "about test rows too" infer run --test 0-2

# ---- few test rows: an evaluation takes each once

head -n 100 "$table" >few.csv
gives 0 "99 rows" train "$model" --data few.csv -n 20 --json --out few
tail -n 1 out >default
gives 0 "have nine test rows" train "$model" --data few.csv -n 20 --eval-data 9 --json
[ "$(sed 's/"seconds":[^,]*,//' default)" = "$(tail -n 1 out | sed 's/"seconds":[^,]*,//')" ]
report $? "which count once, however many are asked for"
gives 0 "the last of them" infer few --test 8
refuses 'There is no test datum 9; there are 9, counted from 0.' infer few --test 9
sed '12s/.*/1,2,0/' few.csv >other.csv
gives 0 "the same rows" eval few
[ ! -s err ]
report $? "are measured without a remark"
cp other.csv few.csv
gives 0 "other test rows" eval few
grep -q 'test data are not those of the checkpoint' err
report $? "are remarked upon"

# ---- what is wrong with a table

refuses 'needs a file to learn from: give --data FILE' train "$model"
refuses 'nowhere.csv' train "$model" --data nowhere.csv
printf 'km,minutes\n1,2\n3,soon\n' >wrong.csv
refuses 'wrong.csv", line 3, column 2 ("minutes"): "soon" is not a number.' train "$model" --data wrong.csv
printf 'km;minutes\n1;2\n3\n' >wrong.csv
refuses 'wrong.csv", line 3: it has 1 column, and line 1 has 2.' train "$model" --data wrong.csv
printf 'miles,minutes\n1,2\n' >wrong.csv
refuses 'wrong.csv" has no column "km"; it has 2 columns: "miles", "minutes".' train "$model" --data wrong.csv
printf '1,2\n' >wrong.csv
refuses 'wrong.csv" has no column "km"; it has 2 columns.' train "$model" --data wrong.csv
: >wrong.csv
refuses 'wrong.csv" has no rows.' train "$model" --data wrong.csv
refuses '' train "$model" --data elsewhere
finish
