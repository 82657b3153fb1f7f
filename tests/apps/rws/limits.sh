#!/bin/sh
# limits.sh PROGRAM MEGABYTES - commands that may have little memory (ulimit -v, from too little to enough, in steps of so
# many MEGABYTES) and few threads: each ends well, or with one sentence and exit status 1; none hangs or crashes.
#
# Prints TAP, and on the last line how many commands were tried. The limit of threads holds for a user other than root: the
# test changes to one if it is root, and is skipped where that is not possible.
set -u
rws=$(realpath "${1:?usage: limits.sh PROGRAM MEGABYTES}")
step=${2:?usage: limits.sh PROGRAM MEGABYTES}
. "$(dirname "$0")/../../tap.sh"

tries=0 wrong=0 good=0 refused=0
judge() { # status name: of a command whose streams are in out and err
    tries=$((tries + 1))
    if [ "$1" = 0 ]; then good=$((good + 1))
    elif [ "$1" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q '^rws: .*\.$' err; then refused=$((refused + 1))
    elif [ "$1" = 127 ] && grep -q 'error while loading shared libraries' err; then tries=$((tries - 1)) # the loader's
    else
        wrong=$((wrong + 1))
        report 1 "$2: status $1"
    fi
}

end_at_once() { # process: asks the server to end; its status, or 124 if it does not end within 10 seconds
    kill -INT "$1" 2>/dev/null
    for i in $(seq 100); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null && return 124
    wait "$1"
}

serve() { # command that the program is started by: until it has told its address, or ended
    "$@" "$rws" serve --port 0 mine >out 2>err &
    server=$!
    for i in $(seq 100); do
        [ -s out ] || ! kill -0 $server 2>/dev/null && break
        sleep 0.05
    done
    if [ -s out ]; then end_at_once $server
    else wait $server; fi
}

try() { # name command that the program is started by
    name=$1
    shift
    rm -rf folder/*
    timeout -k 1 60 "$@" "$rws" train gmm -k 2 -n 20 --threads 2 --out folder/new >out 2>err
    judge $? "train, $name"
    timeout -k 1 60 "$@" "$rws" train pcfg -b 8 -k 2 -n 1 --eval-data 8 --threads 2 >out 2>err
    judge $? "train a grammar, $name"
    timeout -k 1 60 "$@" "$rws" eval mine >out 2>err
    judge $? "eval, $name"
    timeout -k 1 60 "$@" "$rws" infer mine 3 >out 2>err
    judge $? "infer, $name"
    timeout -k 1 60 "$@" "$rws" sample mine -n 3 >out 2>err
    judge $? "sample, $name"
    timeout -k 1 60 "$@" "$rws" plot p_error mine --out folder/p.png >out 2>err
    judge $? "plot, $name"
    serve "$@"
    judge $? "serve, $name"
}

run train gmm -k 2 -n 20 --out mine || exit 99
mkdir folder
cat >limited.sh <<'EOF'
ulimit -v $1
shift
exec "$@"
EOF
megabytes=72
while [ $megabytes -lt 640 ]; do
    try "$megabytes MB" sh limited.sh $((megabytes * 1000))
    megabytes=$((megabytes + step))
done
[ $good -gt 0 ] && [ $refused -gt 0 ]
report $? "little memory: $good commands end well, $refused with a sentence"

if [ "$(id -u)" = 0 ]; then
    cp "$rws" . && rws=$work/rws && chmod 755 "$work" && chmod -R a+rX . && chown 65534 folder
    other='setpriv --reuid 65534 --clear-groups'
else other=; fi
good=0 refused=0
if prlimit --nproc=64 $other "$rws" list >out 2>err; then
    for threads in 1 2 4 6; do try "$threads threads" prlimit --nproc=$threads $other; done
    [ $good -gt 0 ] && [ $refused -gt 0 ]
    report $? "few threads: $good commands end well, $refused with a sentence"
else
    report 0 "few threads # SKIP a process of another user cannot be had"
fi
[ $wrong = 0 ]
report $? "little memory and few threads: $tries tries, $wrong failures"
finish
