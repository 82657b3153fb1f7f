#!/bin/sh
# test_gallery.sh PROGRAM MODEL.so... - the models of the gallery: after a short training the guide's estimate of log p(x) is
# near the exact value at the same parameters, and rws reproduce gallery makes the table and the figures.
set -u
rws=$(realpath "${1:?usage: test_gallery.sh PROGRAM MODEL.so...}")
examples=$(dirname "$(realpath "$2")")
. "$(dirname "$0")/../../tap.sh"

# learns MODEL METHOD NEAR OPTION...: trains, and compares the last evaluation. Given the seed, the numbers are always the
# same; NEAR is several times the difference that was seen, because other processors round otherwise.
learns()
{
    model=$1 method=$2 near=$3
    shift 3
    gives 0 "$model learns by $method" train "$examples/$model.so" --method "$method" --threads 1 --json "$@"
    tail -n 1 out | awk -v near="$near" -F '[:,]' '{ for (i = 1; i < NF; i++) {
        if ($i == "\"exact\"") exact = $(i + 1)
        if ($i == "\"log_evidence\"") evidence = $(i + 1) } }
        END { print "# " exact, evidence > "/dev/stderr"
              exit !(exact != "" && evidence != "" && evidence > exact - near && evidence < exact + near) }'
    report $? "its estimate is within $near of the exact value"
}

learns slds ww 0.05 -n 200 --eval-every 200 --eval-data 100 --eval-particles 100
learns coal ww 0.3 -n 300 --eval-every 300 --eval-particles 2000
learns dp ww 0.1 -n 200 --eval-every 200 --eval-data 30 --eval-particles 200
learns expressions ws 0.1 -n 300 --eval-every 300 --eval-data 100 --eval-particles 300
learns rules wws 0.1 -n 200 --batch 30 --eval-every 200 --eval-data 100 --eval-particles 200
learns gp ww 0.3 -n 400 --eval-every 400 --eval-particles 1000

# There is no exact value of tracks: log p(x) rises, and many particles find as much as few.
gives 0 "tracking learns" train "$examples/tracking.so" --method wws --threads 1 --batch 20 -n 60 --eval-every 60 --eval-data 50 \
    --eval-particles 50 --out tracks --json
awk -F '[:,]' '{ for (i = 1; i < NF; i++) if ($i == "\"log_evidence\"") { if (!n++) first = $(i + 1); last = $(i + 1) } }
    END { print "# " first, last > "/dev/stderr"; exit !(n >= 2 && last > first + 0.3) }' out
report $? "more than it knew at first"

# Two kinds of pages, about cats and about ships, with some words of the other kind.
awk 'BEGIN { srand(1); print "n,cat,fur,ship,sail"
    for (i = 0; i < 200; i++) { split("0 0 0 0", c, " ")
        for (k = 0; k < 20; k++) c[(rand() < 0.9 ? i % 2 : 1 - i % 2) * 2 + (rand() < 0.5) + 1]++
        print 20 "," c[1] "," c[2] "," c[3] "," c[4] } }' >pages.csv
gives 0 "lda learns" train "$examples/lda.so" --data pages.csv --method vimco --threads 1 -n 200 --eval-every 200 --eval-particles 50 \
    --out topics --json
awk -F '[:,]' '{ for (i = 1; i < NF; i++) if ($i == "\"log_evidence\"") { if (!n++) first = $(i + 1); last = $(i + 1) } }
    END { print "# " first, last > "/dev/stderr"; exit !(n >= 2 && last > first + 1) }' out
report $? "more than it knew at first"
gives 0 "its topics" export topics --snapshots
grep -q 'topics.*[0-9] ship' out
report $? "have words"
refuses 'needs a file to learn from' train "$examples/lda.so"

# ---- the table

gives 0 "its sweep" reproduce gallery --sweep --quick --examples "$examples"
[ "$(grep -c "^model  *$examples/[a-z]*\.so$" out)" -ge 8 ] # and lda, if its corpus is in the cache
report $? "names all models by their folder"
sed -n '1,/^eval-particles/p' out >one.sweep
gives 0 "one of them" sweep one.sweep --out table/gallery-quick/runs
gives 0 "the table of what is there" reproduce gallery --quick --report --out table
grep -Eq '^\| hmm \| -[0-9.]+ \| -[0-9.]+ \| -[0-9.]+ \| [0-9]+ \|$' out && grep -q '^| dp | - | - | - | not trained |$' out
report $? "has numbers for a model that was trained, and says which were not"
grep -Eq '^\| hmm \| theta.next\[3\] \|( [0-9.]+){3} \| 0.6 0.3 0.1 \|$' table/gallery-quick/table.md
report $? "has the learned numbers beside the truth"
grep -q '^| hmm | -' table/gallery-quick/table.md && [ -s table/gallery-quick/hmm.png ] && [ -s table/gallery-quick/dp.svg ]
report $? "and is written down with its figures"
refuses 'make examples' reproduce gallery --out nothing --examples "$work/nowhere"
mkdir "with blank"
mkdir empty
refuses 'empty/hmm.so": build the models by `make examples`' reproduce gallery --out nothing --examples empty
refuses 'has a blank' reproduce gallery --out nothing --examples "with blank"
# ---- samples

gives 0 "a model that reports" train "$examples/dp.so" -n 3 -k 2 --out reports
gives 0 "is sampled" sample reports
grep -q '^clusters ' out && [ "$(grep -cv '^clusters ' out)" -ge 1 ]
report $? "its data are printed beside its reports"

finish
