#!/bin/sh
# test_grammars.sh PROGRAM - learning grammars from the command line: sentences from files, em, infer and sample.
set -u
rws=$(realpath "${1:?usage: test_grammars.sh PROGRAM}")
. "$(dirname "$0")/../../tap.sh"

# ---- sentences of a grammar

refuses 'nowhere' data sentences --grammar nowhere
refuses '--count' data sentences --count 0
printf 'start S\nS -> S S 0.6 | stars 0.4\n' >endless.pcfg
refuses 'finite' data sentences --grammar endless.pcfg --out endless
[ ! -e endless ]
report $? "nothing is written then"
gives 0 "rws data sentences" data sentences --count 30 --seed 2
matches "a sentence on each line" '^[a-z]+( [a-z]+)+$' out
cp out drawn
gives 0 "into a file" data sentences --grammar astronomers --count 30 --seed 2 --out file
cmp -s file drawn && [ "$(wc -l <file)" = 30 ]
report $? "the same ones"
gives 0 "which is learned from" train pcfg --data file -n 2 -k 2

# ---- sentences from a file

printf 'stars saw ears\nears saw stars with ears\n' >sentences
refuses 'data' train gmm --data sentences
refuses 'nowhere' train pcfg --data nowhere
printf 'stars saw ears\nmoons saw stars\n' >moons
refuses 'line 2: the grammar has no word "moons"' train pcfg --data moons
printf 'start S\nS -> S S | stars | saw | ears\n' >free.pcfg
refuses '--data' train pcfg --set grammar=free.pcfg
gives 0 "unknown words can be skipped" train pcfg --data moons --set unknown=skip -n 2 -k 2
gives 0 "a grammar without probabilities" train pcfg --set grammar=free.pcfg --data moons --set unknown=skip -n 2 -k 2 \
    --json --out free
grep -q '"p_error":null,"q_error":null,"log_p_exact":-' out
report $? "what cannot be measured is null"
mkdir elsewhere
(cd elsewhere && "$rws" train --out ../free --resume -n 4 --json >../out 2>../err)
report $? "a run finds its files from another folder"
gives 0 "the same file by another name" train pcfg --data elsewhere/../moons --out free --resume -n 6
refuses 'sentences' train pcfg --data sentences --out free --resume -n 8
run train pcfg --data sentences -n 2 -k 2 --set grammar=astronomers
sed -n 2p out | grep -q ' [0-9.e-]* ' && ! grep -qi nan out
report $? "no number in a table is nan"

# ---- em

refuses 'Method em does not apply to model gmm' train gmm --method em
gives 0 "rws train pcfg --method em" train pcfg --method em --set em_data=50 -n 5 --eval-every 1 --json --out em
grep -o '"log_p_exact":-[0-9.]*' out >climb
[ "$(wc -l <climb)" = 6 ]
report $? "log p(x) after every step"
gives 0 "continues" train --out em --resume -n 8
run train pcfg --method em --set em_data=50 -n 8 --eval-every 1 --out em_whole
same_checkpoint "and ends with the same bits" em em_whole

# ---- asking

run train pcfg --method ws -n 5 -k 2 --out run
refuses 'Which run' infer
refuses 'Which datum' infer run
refuses 'nowhere' infer nowhere 'stars saw ears'
refuses '"moons"' infer run 'stars saw moons'
refuses 'no word in this sentence' infer run ''
refuses '--particles' infer run --particles 0 'stars saw ears'
refuses 'likelihood' infer run --set likelihood=soft 'stars saw ears'
refuses 'nowhere' infer run --file nowhere
for list in '' 0- -1 3-2 0,,1 0, x 1:2 0x1 100000000; do
    refuses '--test' infer run --test "$list"
done
gives 0 "rws infer" infer run 'stars saw ears'
grep -q '^stars saw ears$' out && grep -q 'exact 1.000 ' out && grep -qF '(S (NP stars) (VP (V saw) (NP ears)))' out
report $? "prints the sentence, its probability and its tree"
LC_ALL=C.UTF-8 run infer run 'stars saw ears' && grep -q '┌─*┴' out
report $? "drawn with box lines where there are any"
LC_ALL=C run infer run 'stars saw ears' && ! LC_ALL=C grep -q '[^ -~]' out
report $? "and in ASCII where not"
gives 0 "rws infer --json" infer run 'stars saw ears' 'ears saw saw with ears' --json --particles 200
[ "$(wc -l <out)" = 2 ] && sed -n 2p out | grep -q '^{"asked":"ears saw saw with ears","particles":200,"log_evidence":.*,"exact_log_evidence":-[0-9.]*,"ess":.*,"n_answers":[0-9]*,"answers":\[{"posterior":'
report $? "an object for each sentence"
cp out typed
gives 0 "what the grammar cannot make" infer run 'stars saw' --json --particles 20 --top 1
grep -q '"log_evidence":null,"log_evidence_error":null,"exact_log_evidence":null,.*"verdict":"unreliable","advice":"The datum is impossible under the model[^"]*","n_answers":[0-9]*,"answers":\[{"posterior":null,"error":null,"exact":0,"guide":' out
report $? "has a log p(x) of null"
gives 0 "a likelihood under which trees cannot be summed over" infer run 'stars saw' --json --particles 20 --top 1 --set likelihood=relaxed
grep -q '"log_evidence":-[0-9.]*,"log_evidence_error":[0-9.]*,"ess":.*"n_answers":[0-9]*,"answers":\[{"posterior":[0-9.]*,"error":[-0-9.e]*,"guide":' out
report $? "is left out"
printf 'stars saw ears\n\n  \nears saw saw with ears\n' | "$rws" infer run - --json --particles 200 >out 2>err
cmp -s out typed
report $? "from standard input the same"
printf 'stars saw ears\r\nears saw saw with ears' >asked
gives 0 "from a file" infer run --file asked --json --particles 200
cmp -s out typed
report $? "the same"
gives 0 "a picture" infer run 'ears saw saw with ears' --out trees.svg --brackets
grep -q '^<?xml' trees.svg
report $? "is there"
refuses '.gif' infer run --json 'stars' --out trees.gif
printf '%s\n' 'stars saw ears' 'ears saw saw' 'saw saw saw' 'ears saw stars' 'stars saw stars with ears' >short
run train pcfg --data short -n 5 -k 2 --eval-data 6 --out few
run eval few --json
sed 's/.*"log_p_exact":\(-[0-9.]*\),.*/\1/' out >exact
gives 0 "rws infer --test" infer few --test 0-2,3,4-5 -k 20 --top 1 --json
[ "$(sed 's/{"asked":"\([^"]*\)".*"test":\([0-9]*\),.*/\1 \2/' out | tr '\n' ';')" = "$(for i in 0 1 2 3 4 5; do echo "test datum $i $i"; done | tr '\n' ';')" ]
report $? "names the test data"
sed 's/.*"exact_log_evidence":\(-[0-9.]*\),.*/\1/' out |
    awk 'FNR == NR { want = $1; next } { sum += $1 } END { d = sum / 6 - want; exit !(d < 1e-9 && d > -1e-9) }' exact -
report $? "which are those that eval measures"
cp out together
"$rws" infer few --test 3 -k 20 --top 1 --json >out 2>err && sed -n 4p together | cmp -s - out
report $? "also one by one"
gives 0 "rws infer --choices" infer run 'stars saw ears' --choices --json -k 50 --top 1
grep -Eq '"particles_listed":\[\{"weight":[0-9.]+,"count":[0-9]+,"answer":0,"log_p":-[0-9.]+,"log_q":-[0-9.]+,"choices":\[\{"site":"[A-Z]+","visit":0,"value":[0-9.]+\},' out
report $? "lists particles with their weights and choices"
gives 0 "as text too" infer run 'stars saw ears' --choices -k 50 --top 1
grep -q '^  weight [01].[0-9]*   [0-9]* particles*   log p -[0-9.]*   log q -[0-9.]*$' out && grep -q '^    NP [0-9]*$' out
report $? "with a line for each choice"
mv sentences moved && printf 'stars saw ears\n' >learned && run train pcfg --data learned -n 2 -k 2 --out from_file && rm learned
gives 0 "to be asked, a run needs no data" infer from_file 'stars saw ears'
gives 0 "nor to be drawn from" sample from_file

# ---- drawing

refuses 'Which run' sample
refuses '--count' sample run --count 0
refuses '"x"' sample run x
refuses 'nonsense' sample run --only nonsense
gives 0 "rws sample" sample run --count 20 --seed 4 --json
[ "$(wc -l <out)" = 20 ]
report $? "as many as asked for"
matches "an object for each" '^\{"reports":\{"sentence":"[a-z ?]+","tree":"\(S .*\)","truncated":[01]\},"fields":\{\}\}$' out
sed 's/{"reports":{"sentence":"\([^"]*\)".*/\1/' out >sampled
gives 0 "a tree alone, as JSON" sample run --count 2 --only tree --json
matches "an object with nothing else" '^\{"tree":"\([^"]*\)"\}$' out
gives 0 "sentences alone" sample run --count 20 --seed 4 --only sentence
cmp -s out sampled
report $? "are the same ones"

# ---- a model that reads no text and reports nothing

run train gmm -n 5 -k 2 --out gmm
refuses '1 number (x: 1), not about 2' infer gmm '1 2'
refuses '1 number (x: 1), not about 0' infer gmm ','
refuses '"x" is not one' infer gmm x
refuses '"1x" is not one' infer gmm 1x
refuses '"nan" is not one' infer gmm nan
refuses '"[" is not one' infer gmm '[0 1 2]'
gives 0 "is asked about numbers" infer gmm 3.5 --json -k 100
grep -q '^{"asked":"3.5","particles":100,"log_evidence":-[0-9.]*,"log_evidence_error":[0-9.]*,"ess":[0-9.]*,"k_hat":[-0-9.nul]*,"k_limit":0.5,"verdict":"[a-z]*","advice":"[^"]*","n_answers":1,"answers":\[{"posterior":1,"error":0,"guide":1,"reports":{}}\]}$' out
report $? "and says how probable they are"
gives 0 "also below 0" infer gmm --json -k 100 -- -3.5
gives 0 "as text" infer gmm 3.5 -k 100
grep -q -- '--choices and --marginals' out
report $? "with a hint"
gives 0 "with choices" infer gmm 3.5 -k 100 --choices --top 2
[ "$(grep -c '^    z [0-9]*$' out)" = 2 ]
report $? "which are shown"
gives 0 "test data" infer gmm --test 1 --json
gives 0 "its samples" sample gmm --count 3
matches "are printed as fields" '^x -?[0-9.e+-]+$' out
[ "$(wc -l <out)" = 3 ]
report $? "one on each line"
gives 0 "as JSON" sample gmm --count 3 --choices --json
matches "fields and choices" '^\{"reports":\{\},"fields":\{"x":-?[0-9.e+-]+\},"choices":\[\{"site":"z","visit":0,"value":[0-9]+\}\]\}$' out

# A grammar whose sentences have infinite length on average: neither drawn from nor trained on, with the same sentence.
printf 'start S\nS -> S S 0.6\n  | a 0.4\n' >endless
for arguments in 'data sentences --grammar ./endless -n 5' 'train pcfg --set grammar=./endless -k 2 -n 3'; do
    refuses 'the expected length of a sentence is infinite' $arguments
done
printf 'a a a\na a\n' >lines
gives 0 "but sentences of a file can be learned from" train pcfg --set grammar=./endless --data lines -k 2 -n 3

finish
