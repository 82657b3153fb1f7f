#!/bin/sh
# test_hmm.sh PROGRAM HMM.so SESSIONS.so SESSIONS.csv - examples with series: the hidden Markov model learns what the forward
# algorithm knows, and data in series are read, asked about, drawn and continued.
set -u
rws=$(realpath "${1:?usage: test_hmm.sh PROGRAM HMM.so SESSIONS.so SESSIONS.csv}")
hmm=$(realpath "$2") sessions=$(realpath "$3") table=$(realpath "$4")
. "$(dirname "$0")/tap.sh"

# A tenth of the default work, so that theta is a little further from the truth than the 0.1 nats of a whole run.
small='--batch 20 -k 5 -n 350 --eval-every 350 --eval-data 200 --eval-particles 100 --lr 2e-2,250:3e-3'
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
finish
