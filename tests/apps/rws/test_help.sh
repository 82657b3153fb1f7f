#!/bin/sh
# test_help.sh PROGRAM ROOT - what is made of the tables of commands and options: rws help, the manual page and the words that
# the shells' completions offer, in each shell that is installed.
set -u
rws=$(realpath "${1:?usage: test_help.sh PROGRAM ROOT}") root=$(realpath "${2:?usage: test_help.sh PROGRAM ROOT}")
. "$(dirname "$0")/../../tap.sh"

"$rws" data mnist --help >want
run help data mnist && cmp out want
report $? "rws help data mnist is rws data mnist --help"
refuses 'no command "nothing"' help nothing

# ---- the manual page

run help --manual "$root/docs/rws.1.in" && cp out rws.1 && ! grep -q '^@' rws.1
report $? "the manual page"
renders rws.1
grep -q '^\.It Fl k , Fl Fl particles Ns = Ns Ar K$' rws.1 && grep -q 'one of ws, ww, ' rws.1 && grep -q '^\.Ss "data mnist' rws.1
report $? "has options with letters and values, the names of methods, and commands of commands"
refuses 'no line @end' help --manual "$root/README.md"
refuses 'cannot be read' help --manual nothing

# ---- completions

offers() { # words… -- arguments…: passes if these words are offered, and no others
    name=$1
    want=$2
    shift 2
    run help --complete -- "$@" && cut -f 1 out | tr '\n' ' ' >got && [ "$(cat got)" = "$want" ]
    report $? "$name"
}
offers "commands" "sample sweep serve " s
offers "options" "--method --model " train gmm --m
offers "values behind an equals sign" "--method=ws --method=ww --method=wws " train --method=w
offers "values of an option" "rmsprop " train gmm --optimiser r
offers "no names for files and numbers" "" train -k ""
offers "arguments" "gmm " bench -k 3 g
offers "alternatives" "trees " draw t
offers "commands of a command" "mnist multimnist " data m
offers "their options" "--digits " data multimnist --d
offers "nothing for a command that does not exist" "" nothing --

bin=$(dirname "$rws")
bash -c 'PATH='"$bin"':$PATH; . "$0" && COMP_LINE="rws train --method=wws" COMP_POINT=21 COMP_WORDS=(rws train --method = ww) &&
    _rws && echo "${COMPREPLY[@]}"' "$root/apps/rws/completions/rws.bash" >out 2>err && [ "$(cat out)" = "ww wws" ]
report $? "bash: what is behind an equals sign"
if command -v fish >/dev/null; then
    PATH=$bin:$PATH HOME=$work fish -c 'source $argv[1]; complete -C "rws train --opt"; complete -C "rws dra"' \
        "$root/apps/rws/completions/rws.fish" >out 2>err && [ "$(cut -f 1 out | tr '\n' ' ')" = "--optimiser draw " ]
    report $? "fish: options and commands"
fi
if command -v zsh >/dev/null; then
    cat >try.zsh <<'END'
_describe() { print -r -- $found }
_files() { print files }
fpath=($1) && autoload -U _rws
words=(rws train --opt) CURRENT=3 && _rws
words=(rws train -k x) CURRENT=4 && _rws
END
    PATH=$bin:$PATH zsh -f try.zsh "$root/apps/rws/completions" >out 2>err &&
        grep -q '^--optimiser:The optimiser' out && grep -qx files out
    report $? "zsh: options with their texts, files where the program has no word"
fi
finish
