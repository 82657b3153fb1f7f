#!/bin/sh
# test_lines.sh PROGRAM MODEL.so - the example that is conditional on inputs: near the exact evidence, and asked and sampled at
# inputs that are typed.
set -u
rws=$(realpath "${1:?usage: test_lines.sh PROGRAM MODEL.so}")
model=$(realpath "$2")
. "$(dirname "$0")/../../tap.sh"

gives 0 "lines.so learns" train "$model" --method vimco -n 1500 --lr 5e-3,1000:5e-4 --eval-particles 2000 --json --out run
tail -n 1 out | awk -F '[:,]' '{ for (i = 1; i < NF; i++) {
    if ($i == "\"exact\"") exact = $(i + 1)
    if ($i == "\"log_evidence\"") evidence = $(i + 1) } }
    END { exit !(evidence - exact < 0.01 && exact - evidence < 0.01) }'
report $? "log p(y | x) to 0.01"
gives 0 "it is asked with its inputs" infer run "[-1 0.5 2] [0.2 0.4 1.5]" --particles 20000 --json
# Exactly: log N(y; 0, 0.25 I + X X^T).
python3 -c 'import json
assert abs(json.load(open("out"))["log_evidence"] - -3.9087) < 0.01'
report $? "and knows how probable y is"
refuses 'Model lines is asked about the numbers of its fields (x: [up to 8 x 1], y: [up to 8 x 1])' infer run "[1] 2 ["
gives 0 "it is sampled at inputs that are typed" sample run "[-1 0.5 2]" --count 4 --json
python3 -c 'import json
for line in open("out"):
    f = json.loads(line)["fields"]
    assert f["x"] == [-1, 0.5, 2] and len(f["y"]) == 3, f'
report $? "which its samples have"
gives 0 "or at those of a test datum" sample run --test 3 --count 2 --json
cp out three
gives 0 "or of test data at random" sample run --count 20 --json
cp out random
gives 0 "of which a repetition" sample run --count 20 --json
cmp -s out random
report $? "has the same"
python3 -c 'import json
lines = [json.loads(line)["fields"]["x"] for line in open("random")]
assert len({len(x) for x in lines}) > 2
three = [json.loads(line)["fields"]["x"] for line in open("three")]
assert three[0] == three[1]'
report $? "and several lengths"
refuses 'Model lines is sampled at the numbers of its inputs (x: [up to 8 x 1])' sample run "[1 2] [3]"
refuses 'not both' sample run "[1 2]" --test 1
gives 0 "a model without inputs" train gmm -n 2 --out gmm
refuses 'Model gmm has no inputs' sample gmm --test 1
finish
