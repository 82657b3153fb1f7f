#!/bin/sh
# test_hmm.sh PROGRAM HMM.so SESSIONS.so SESSIONS.csv - examples with series: the hidden Markov model learns what the forward
# algorithm knows, and data in series are read, asked about, drawn and continued.
set -u
rws=$(realpath "${1:?usage: test_hmm.sh PROGRAM HMM.so SESSIONS.so SESSIONS.csv}")
hmm=$(realpath "$2") sessions=$(realpath "$3") table=$(realpath "$4")
. "$(dirname "$0")/../../tap.sh"

# A sixth of the default work, so that theta may be further from the truth than after a whole run, which comes within 0.01 nats.
small='--batch 30 -k 5 -n 700 --eval-every 700 --eval-data 200 --eval-particles 100'
for method in ww ws; do
    gives 0 "hmm.so learns by $method" train "$hmm" --method $method $small --out "$method" --json
    tail -n 1 out | awk -F '[:,]' '{ for (i = 1; i < NF; i++) {
        if ($i == "\"exact\"") exact = $(i + 1)
        if ($i == "\"truth\"") truth = $(i + 1)
        if ($i == "\"log_evidence\"") evidence = $(i + 1) } }
        END { print "# " exact, truth, evidence > "/dev/stderr"
              exit !(exact > truth - 0.5 && evidence > exact - 0.1 && evidence < exact + 0.1) }'
    report $? "log p(x) is near the truth, and its estimate by $method is near the forward algorithm"
done

# ---- series from a file

gives 0 "sessions.so learns" train "$sessions" --data "$table" -n 400 --eval-every 400 --json
tail -n 1 out | awk -F '[:,]' '{ for (i = 1; i < NF; i++) if ($i == "\"log_evidence\"") evidence = $(i + 1) }
    END { exit !(evidence > -27.5 && evidence < -27.1) }'
report $? "as much as the sum over both kinds of sessions does"
cp "$table" here.csv
gives 0 "a run" train "$sessions" --data here.csv -n 10 --out run
gives 0 "without an interruption" train "$sessions" --data here.csv -n 20 --out whole
gives 0 "it continues" train --out run --resume -n 20
same_checkpoint "with the same sessions" run whole
gives 0 "it can be asked about series in brackets" infer run "2 [0 1] [10 12.5]" --json -k 100
cp out first
gives 0 "the last of which needs none" infer run "2 [0 1] 10, 12.5" --json -k 100
[ "$(sed 's/.*log_evidence//' out)" = "$(sed 's/.*log_evidence//' first)" ]
report $? "with the same answer"
gives 0 "about an empty series" infer run "0 [] []" -k 100
gives 0 "about test sessions" infer run --test 0-2 -k 100
gives 0 "it is sampled from" sample run
grep -q '^page \[' out
report $? "and prints series in brackets"
{ sed -n 's/^n //p; s/^page //p; s/^seconds //p' out | tr '\n' ' '; } >drawn
gives 0 "which can be asked about" infer run "$(cat drawn)" -k 100
gives 0 "as JSON" sample run --json
grep -q '"page":\[' out
report $? "in lists"
refuses 'page: [up to 100 x 1]' infer run "2 0 1 10 12.5"
refuses 'bracket is not closed' infer run "2 [0 1 10 12.5"
refuses '"x" is not one' infer run "2 [0 x] [1 2]"
refuses 'The model comes to item 2 of "page", but datum 0 has only 2' infer run "3 [0 1] [10 12.5]"
refuses 'The model visits site "seconds" 2 times, but datum 0 has 3 items there.' infer run "2 [0 1] [1 2 3]"

printf 'session,page,seconds\na,1,2\n,3,4\n' >wrong.csv
refuses 'wrong.csv", line 3, column 1 ("session"): the id is empty.' train "$sessions" --data wrong.csv
printf 'session,page,seconds\na,1,2\nb,3,soon\n' >wrong.csv
refuses 'wrong.csv", line 3, column 3 ("seconds"): "soon" is not a number.' train "$sessions" --data wrong.csv
printf 'visit,page,seconds\na,1,2\n' >wrong.csv
refuses 'wrong.csv" has no column "session"' train "$sessions" --data wrong.csv
finish
