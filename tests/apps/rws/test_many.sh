#!/bin/sh
# test_many.sh PROGRAM - many questions: data from files, tables of answers, a table that was interrupted; calibration.
set -u
rws=$(realpath "${1:?usage: test_many.sh PROGRAM}")
. "$(dirname "$0")/../../tap.sh"

gives 0 "a run" train gmm -n 30 --out run
{ echo x; i=0; while [ $i -lt 300 ]; do echo "$((i % 190)).5"; i=$((i + 1)); done; } >data.csv
ask="infer run --data data.csv -k 2000"

# ---- tables

gives 0 "a table in CSV" $ask --table one.csv --threads 1
[ "$(wc -l <one.csv)" = 301 ] && head -n 1 one.csv | grep -q '^datum,log_evidence,.*,verdict,z,z.probability,' && [ ! -e one.csv.partial ]
report $? "has a heading and a row for each datum"
[ ! -s out ]
report $? "and nothing is printed"
gives 0 "the same on two threads" $ask --table two.csv --threads 2
cmp -s one.csv two.csv
report $? "has the same bytes"
gives 0 "JSON lines" $ask --table one.jsonl
[ "$(wc -l <one.jsonl)" = 300 ] && [ "$(grep -c '"datum":"row [0-9]*"}$' one.jsonl)" = 300 ]
report $? "are objects"
gives 0 "test data" infer run --test 0-4 --table test.csv
[ "$(wc -l <test.csv)" = 6 ] && grep -q '^test datum 4,' test.csv
report $? "have rows too"

# ---- an interrupted table: the limit on the size of files ends the program as a kill does, in the middle of a line

(ulimit -f 40; "$rws" $ask --table cut.jsonl --threads 1 >out 2>err)
[ ! -e cut.jsonl ] && [ "$(wc -l <cut.jsonl.partial)" -gt 20 ] && [ "$(wc -l <cut.jsonl.partial)" -lt 300 ]
report $? "a killed command leaves a part of the table"
gives 0 "the same command continues" $ask --table cut.jsonl --threads 2
grep -q 'of 300 answers are there already' err && cmp -s cut.jsonl one.jsonl && [ ! -e cut.jsonl.partial ]
report $? "to the same bytes"

# ---- what is printed

gives 0 "answers on standard output" $ask --top 1 --json
[ "$(wc -l <out)" = 300 ] && [ "$(grep -c '^{"asked":"row [0-9]*",' out)" = 300 ]
report $? "one line for each"

# ---- files

printf '{"x": 3.5}\n{"test": 2}\n{"fields": {"x": 7}}\n' >data.jsonl
gives 0 "data as JSON lines" infer run --data data.jsonl --table lines.csv
[ "$(wc -l <lines.csv)" = 4 ]
report $? "have a row each"
printf '3.5\n7\n' >data.txt
gives 0 "data as lines of text" infer run --data data.txt --table text.csv
[ "$(wc -l <text.csv)" = 3 ]
report $? "have a row each"
[ "$(sed -n 2p lines.csv | cut -d, -f2-)" = "$(sed -n 2p text.csv | cut -d, -f2-)" ]
report $? "with the same answers"
printf 'y,x\n9,3.5\n9,7\n' >columns.csv
gives 0 "a table with other columns" infer run --data columns.csv --table columns.out.csv
[ "$(sed -n 2p lines.csv | cut -d, -f2-)" = "$(sed -n 2p columns.out.csv | cut -d, -f2-)" ]
report $? "is read by name"
printf 'y,z\n9,3.5\n' >wrong.csv
refuses 'whose names are not those' infer run --data wrong.csv
printf '{"y": 3.5}\n' >wrong.jsonl
refuses 'line 1: The model has no field "y"' infer run --data wrong.jsonl
printf 'x\n1\nred\n' >word.csv
refuses 'word.csv' infer run --data word.csv
refuses '.csv or a .jsonl' infer run --data data.csv --table answers.xlsx
printf '{"other":1}\n' >old.csv.partial
refuses 'answers to other questions' $ask --table old.csv

# ---- calibration by simulation

calibrate="calibrate run -n 300 -k 200"
gives 0 "a calibration" $calibrate --table ranks.csv --out ranks.svg --json
[ "$(wc -l <ranks.csv)" = 301 ] && grep -q '^z.rank,z.rank_guide,' ranks.csv && [ -s ranks.svg ]
report $? "has a table of ranks and a figure"
[ "$(grep -c '"quantity":"z","by":' out)" = 2 ] && tail -n 1 out | grep -q '"final":true,"simulations":300,"impossible":0'
report $? "and a line for each quantity"
grep -q '"rejected":0,"rejected_guide":1' out
report $? "weights pass, a guide that was hardly trained does not"
(ulimit -f 40; "$rws" $calibrate --table cut.csv >out 2>err)
[ -e cut.csv.partial ] && [ "$(wc -l <cut.csv.partial)" -lt 301 ]
report $? "a killed calibration leaves a part of the table"
gives 0 "the same command continues" $calibrate --table cut.csv --threads 1
cmp -s ranks.csv cut.csv
report $? "to the same bytes"
refuses 'Which run' calibrate

# ---- posterior predictions

gives 0 "samples given a datum" sample run -n 200 --given 30.5 --json
[ "$(grep -c '"fields":{"x":' out)" = 200 ]
report $? "are data of the model"
refuses 'is asked about 1 number' sample run --given red

finish
