#!/bin/sh
# commands.sh BUILD STRIDE OTHERS - requests for memory of each command fail once: every STRIDE-th of the program's own, and
# every OTHERS-th of SQLite's. The command ends well, with the output that it has otherwise, or with one sentence and
# status 1 or 2; it never crashes. Prints TAP.
set -u
build=$(realpath "${1:?usage: commands.sh BUILD STRIDE OTHERS}")
own=${2:?usage: commands.sh BUILD STRIDE OTHERS}
others=${3:?usage: commands.sh BUILD STRIDE OTHERS}
rws=$build/rws
. "$(dirname "$0")/tap.sh"

run train gmm --method ww -k 2 -n 20 --out mine || exit 99
run export mine --out mine.csv || exit 99
printf 'model gmm\nmethods ww\nparticles 2\nseeds 1-2\niterations 4\neval-every 2\nfinal 10\n' >small.sweep

tries=0 wrong=0
each() { # stride arguments…: until there are no more requests
    stride=$1 at=$(($1 / 2 + 1))
    shift
    while :; do
        rm -rf new place
        STARVE_AT=$at STARVE_FILE=$work/place LD_PRELOAD=$build/tests/starve.so timeout -k 1 60 "$rws" "$@" >out 2>err
        status=$?
        [ -e place ] || break
        count=$((count + 1))
        case $status in
        0) [ $kind = any ] || cmp -s out expected ;;
        1 | 2) grep -q '^rws: .*[.)]$' err && ! grep -q 'bug at' err ;;
        *) false ;;
        esac || {
            bad=$((bad + 1))
            echo "# $name: request $at at $(head -n 1 place) ${STARVE_LIBRARY:-}: status $status, $(tail -n 1 err | cut -c 1-100)"
        }
        at=$((at + stride))
    done
}

starve() { # name same|any arguments…: `same`, if a command that ends well must print the same each time
    name=$1 kind=$2
    shift 2
    rm -rf new
    timeout -k 1 60 "$rws" "$@" >expected 2>err || { report 1 "$name ends well with memory"; return; }
    bad=0 count=0
    each "$own" "$@"
    STARVE_LIBRARY=libsqlite3 && export STARVE_LIBRARY
    each "$others" "$@"
    unset STARVE_LIBRARY
    tries=$((tries + count)) wrong=$((wrong + bad))
    [ $bad = 0 ]
    report $? "$name: $count requests"
}

starve list same list
starve data same data sentences -n 3
starve train any train gmm --method ww -k 2 -n 3 --eval-every 2 --threads 2 --out new
starve "train --resume" any train gmm --out mine --resume
starve eval any eval mine
starve infer same infer mine 3 --particles 10
starve sample same sample mine -n 3
starve runs any runs mine
starve export same export mine
starve "export --json" same export mine --format json
starve "export of an export" same export mine.csv
starve plot any plot p_error mine --out new.png
starve bench any bench gmm -n 3
starve sweep any sweep small.sweep --out new
echo "# commands: $tries tries, $wrong failures"
finish
