#!/bin/sh
# test_man.sh PROGRAM PAGE - rws(1) has every command and every option that --help has, and no others; groff and mandoc,
# where they are installed, render it without a warning.
set -u
rws=$(realpath "${1:?usage: test_man.sh PROGRAM PAGE}") page=$(realpath "${2:?usage: test_man.sh PROGRAM PAGE}")
. "$(dirname "$0")/../../tap.sh"

# Options as "-k --particles" or "--json", sorted.
of_help() { # arguments…
    "$rws" "$@" --help | sed -n 's/^  *\(-., \)\{0,1\}\(--[a-z][a-z0-9-]*\).*/\1\2/p' | tr -d , | grep -vE -- '--(help|usage)$'
}

of_page() { # command
    awk -v ss="$1" '$1 == ".Ss" { here = $2 == ss } $1 == ".Sh" { here = 0 } here && $1 == ".It"' "$page" |
        sed 's/ , Fl Fl/\n.It Fl Fl/g; s/^\.It Fl \([a-zA-Z]\)\n\.It Fl Fl/.It Fl \1 , Fl Fl/' |
        sed -n 's/^\.It Fl \(.\) , Fl Fl \([a-z][a-z0-9-]*\).*/-\1 --\2/p; s/^\.It Fl Fl \([a-z][a-z0-9-]*\).*/--\1/p'
}

commands=$("$rws" --help | awk '/^Commands:/ { on = 1; next } on && NF == 0 { exit } on { print $1 }')
echo "$commands" >want
sed -n 's/^\.Ss \([a-z]*\).*/\1/p' "$page" >got
cmp -s want got
report $? "its commands are those of --help, in the same order"

for command in $commands; do
    case $command in
    data) for data in mnist multimnist sentences; do of_help data $data; done | sort -u >want ;;
    bench) of_help bench | grep -vxFe "$(of_help train)" >want ;; # the page says: those of train
    *) of_help "$command" | sort -u >want ;;
    esac
    of_page "$command" | sort -u >got
    [ -s want ] && diff want got >out
    report $? "the options of rws $command"
done
[ "$(of_help bench | sort)" = "$({ of_help train | grep -vxE -- '--(pictures|save-every)'; printf '%s\n' --after --repeat; } | sort)" ]
report $? "bench has those of train, but for pictures and checkpoints"

renders "$page"
finish
