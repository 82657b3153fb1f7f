#!/bin/sh
# test_grammars.sh PROGRAM - learning grammars from the command line: sentences from files, em.
set -u
rws=$(realpath "${1:?usage: test_grammars.sh PROGRAM}")
. "$(dirname "$0")/tap.sh"

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
gives 0 "goes on" train --out em --resume -n 8
run train pcfg --method em --set em_data=50 -n 8 --eval-every 1 --out em_whole
same_checkpoint "and ends with the same bits" em em_whole

finish
