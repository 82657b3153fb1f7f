#!/bin/sh
# test_typos.sh PROGRAM - misspelt names of every kind, and the name that should be suggested. Counts the right
# suggestions: "wv" is as near to ws as to ww.
set -u
rws=$(realpath "${1:?usage: test_typos.sh PROGRAM}")
. "$(dirname "$0")/../../tap.sh"

"$rws" train gmm -n 20 -k 2 --out run >/dev/null 2>&1 || exit 99
sweep() { printf 'model gmm\nmethods ww\nparticles 2\n%s\n' "$1" >typo.sweep; }

tries=0 right=0
while IFS='|' read -r meant arguments; do
    case $arguments in sweep:*) sweep "${arguments#sweep:}" && arguments="sweep typo.sweep --list" ;; esac
    # shellcheck disable=SC2086 # the words are arguments
    run $arguments </dev/null
    status=$?
    tries=$((tries + 1))
    if [ $status = 2 ] && grep -qFe "(did you mean $meant?)" err; then
        right=$((right + 1))
    else
        echo "# rws $arguments: not answered with $meant"
        sed 's/^/#     /' err
    fi
done <<'END'
"train"|trian gmm
"train"|tarin gmm
"infer"|infere run 1
"sample"|smaple run
"sweep"|sweeps x.sweep
"runs"|rusn
"export"|exprot
"plot"|plto p_error
"serve"|sevre
"reproduce"|reproduse gmm
"bench"|bnech gmm
"list"|lists
"calibrate"|calibrat run
"check"|chek gmm
"mnist"|data minst
"multimnist"|data multi-mnist
--method|train gmm --metod ww
--particles|train gmm --paticles 5
--particles|train gmm --n-particles 5
--iterations|train gmm --iteratoins 5
--optimiser|train gmm --optimizer adam
--eval-every|train gmm --eval_every 5
--eval-data|train gmm --evaldata 5
--threads|train gmm --treads 2
--resume|train gmm --resmue
--lr|train gmm --rl 1e-3
--marginals|infer run 1 --marginal-s
--json|runs --jsno
--where|runs --were method=ww
"gmm"|train gnm
"pcfg"|train pcgf
"air"|train ari
"ww"|train gmm --method wv
"vimco"|train gmm --method vinco
"reinforce"|train gmm --method REINFORCE
"rloo"|train gmm --method rlo
"adam"|train gmm --optimiser adma
"rmsprop"|train gmm --optimiser rms-prop
"momentum"|train gmm --optimiser momentun
"components"|train gmm --set componets=5
"delta"|train gmm --method dww --set delt=0.1
"std_ref"|train gmm --set std-ref=1
"p_error"|plot p_eror run
"log_evidence"|plot evidence run
"grad_std"|runs run --sort grad_sdt
"method"|runs run --where methd=ww
"finished"|runs run --where state=finishd
"batch"|plot p_error run --panels bacth
"paths"|train gmm --limit path=5
"gmm"|reproduce gmn
"optimiser"|sweep:optimizer adam
"iterations"|sweep:iteration 5
"seeds"|sweep:seed 1-3
"models"|list model
"vimco"|list vimc
"gmm-near"|reproduce gmm_near
END
echo "# $right of $tries misspelt names are answered with the right one"
[ "$right" -ge 55 ] && [ "$tries" = 56 ]
report $? "misspelt names"
refuses 'There is no command "xyzzy"; see' xyzzy
run train gmm -n 1e1 -k 2 --eval-data 0.01k --seed 1M --json
report $? "numbers with a power of ten"
grep -q '"final":true,"iteration":10,' out
report $? "which count"
finish
