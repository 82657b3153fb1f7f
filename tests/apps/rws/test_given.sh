#!/bin/sh
# test_given.sh PROGRAM MODEL.so - choices that are given on the command line: to questions, and to training by a file.
set -u
rws=$(realpath "${1:?usage: test_given.sh PROGRAM MODEL.so}")
toy=$(realpath "${2:?usage: test_given.sh PROGRAM MODEL.so}")
. "$(dirname "$0")/../../tap.sh"

# ---- questions: the toy has sites colour (of 3), split (visited again and again), leaf (of 2 numbers)

gives 0 "a run" train "$toy" -k 2 -n 20 --out toy
gives 0 "a question" infer toy --test 0 --choices --json
cp out free
gives 0 "a question with a given choice" infer toy --test 0 --choices --json --given colour=1
[ "$(grep -o '"given": *\[[^]]*\]' out | grep -c '"site": *"colour"')" = 1 ]
report $? "says what is given"
[ "$(sed 's/.*"particles_listed"//' out | grep -o '"site":"colour","visit":0,"value":1}' | wc -l)" = "$(grep -o '"weight"' out | wc -l)" ]
report $? "and every particle has it"
grep -q '"log_given"' out && ! grep -q '"log_given"' free
report $? "with the guide's density of it"
gives 0 "the visit is given behind a colon, several numbers have blanks between them" infer toy --test 0 --choices \
    --given split=1,split:1=0 --given 'leaf=0.5 -1'
grep -q 'leaf 0.5 -1 (given)' out && grep -q 'log p(x, given)' out
report $? "and the text says so"
gives 0 "a site that only some particles visit" infer toy --test 0 -k 5000 --given 'leaf:1=0 0'

refuses 'site "nowhere" at visit 0 (the first is 0), but no particle' infer toy --test 0 --given nowhere=1
refuses 'site "colour" at visit 7 (the first is 0), but no particle' infer toy --test 0 --given colour:7=1
refuses 'is 3, which is not a choice of 0 to 2' infer toy --test 0 --given colour=3
refuses 'is 0.5, which is not a choice' infer toy --test 0 --given colour=0.5
refuses 'has 1 number, but 2 are given' infer toy --test 0 --given 'colour=1 2'
refuses 'has 2 numbers, but 1 is given' infer toy --test 0 --given leaf=1
refuses 'is given twice' infer toy --test 0 --given colour=1 --given colour:0=1
refuses 'is data' infer toy --test 0 --given 'x=1 2'
for text in colour colour= =1 colour=red colour=nan 'colour=1,' ''; do
    refuses '--given takes site=value' infer toy --test 0 --given "$text"
done

# ---- training: a grammar whose sentences are in a file

printf 'stars saw ears\nastronomers saw stars\nstars saw stars with telescopes\n' >lines
printf 'datum,site,visit,value\n0,NP,0,2\n0,NP,1,3\n1,VP,0,0\n' >known.csv
small="train pcfg --data lines --given known.csv -n 60 --eval-every 20 --eval-data 2"
gives 0 "choices from a file" $small --out whole
grep -q "\"given\": \"$(realpath .)/known.csv\"" whole/config.json
report $? "whose path is part of the configuration"
gives 0 "change what is learned" train pcfg --data lines -n 60 --eval-every 20 --eval-data 2 --out without
[ "$(timeless whole/checkpoint.safetensors | cksum)" != "$(timeless without/checkpoint.safetensors | cksum)" ]
report $? "as the checkpoint shows"
gives 0 "a run that ends early" $small --out part -n 25
gives 0 "continues with them" train --out part --resume -n 60
for name in theta.NP phi.encoder.weight_hh; do
    tensor whole/checkpoint.safetensors $name >a && tensor part/checkpoint.safetensors $name >b && [ -s a ] && cmp -s a b
    report $? "to the same bits: $name"
done
refuses 'contradicts' train --out part --resume --given lines
gives 0 "a trained run is asked without them" infer whole 'stars saw ears' --top 1

printf '0,XP,0,1\n' >unknown.csv
gives 0 "a site that no particle comes by" train pcfg --data lines --given unknown.csv -n 3 --eval-every 3 --eval-data 2
grep -q 'No particle has visited site "XP"' err
report $? "is said"
printf '0,NP,0,17\n1,NP,0,17\n2,NP,0,17\n' >wrong.csv
run train pcfg --data lines --given wrong.csv -n 3 --eval-data 2
[ $? = 2 ] && grep -q 'The value given for site "NP" of datum [01] is 17, which is not a choice of 0 to 5' err
report $? "a value that is no choice of its site ends training with a sentence"
printf '0,NP,0,1\n0,NP,x,1\n' >bad.csv
refuses 'bad.csv", line 2: it has the visit "x"' train pcfg --data lines --given bad.csv
printf '0,the sentence,0,1\n' >data.csv
refuses 'site "the sentence", which is data' train pcfg --data lines --given data.csv
refuses 'nowhere.csv' train pcfg --data lines --given nowhere.csv
refuses 'does not number its data' train gmm --given known.csv
refuses 'Method em cannot learn from given choices' train pcfg --data lines --given known.csv --method em
refuses '--given can be given once' train pcfg --given a --given b
refuses 'labelled' train pcfg --data lines --set labelled=0.5

# ---- how the gradient of a site comes

gives 0 "by score" train "$toy" --method vimco -n 10 --set site.leaf=score --out scored
grep -q '"site.leaf": "score"' scored/config.json
report $? "is part of the configuration"
gives 0 "and continues" train --out scored --resume -n 20
refuses 'score, reparameterised or sum' train "$toy" --set site.leaf=yes
refuses 'cannot be reparameterised' train "$toy" -n 1 --set site.colour=reparameterised
gives 0 "an unknown site" train "$toy" -n 2 --set site.leafs=score
grep -q 'No particle has visited site "leafs"' err
report $? "is said"

finish
