# tap.sh - functions that the shell tests share. The caller has set $rws, the program under test.
#
# Prints TAP. Works in a folder of its own, which is removed.
work=$(mktemp -d) && cd "$work" || exit 99
export XDG_STATE_HOME="$work/.state" # where the program keeps which objects were named
trap 'rm -rf "$work"' EXIT

n=0 failed=0
report() { # status name: prints a line of TAP, and after a failure the output of the last command
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        failed=$((failed + 1))
        echo "not ok $n - $2"
        sed 's/^/# stdout: /' out 2>/dev/null | tail -n 5
        sed 's/^/# stderr: /' err 2>/dev/null | tail -n 5
    fi
}

run() { "$rws" "$@" >out 2>err; }

gives() { # status name arguments…
    want=$1 name=$2
    shift 2
    run "$@"
    [ $? = "$want" ]
    report $? "$name"
}

# Passes if the program prints one sentence with the words on stderr, nothing on stdout, and exits with status 2.
refuses() { # words arguments…
    words=$1
    shift
    run "$@"
    [ $? = 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q '^rws: .*\.$' err && grep -qFe "$words" err
    report $? "refused: rws $*"
}

matches() { # name pattern file: passes if every line of the file matches
    [ -s "$3" ] && ! grep -Evq "$2" "$3"
    report $? "$1"
}

# Prints a checkpoint without the 8 bytes of the seconds of training and the checksums of them and of the header, and without
# the text of rates and iterations, which can be written in several ways.
timeless() { # file
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    at=$(head -c $((8 + length)) "$1" | tail -c "$length" | sed -n 's/.*"seconds":{[^}]*\[\([0-9]*\),.*/\1/p')
    [ -n "$at" ] || return 1
    head -c $((8 + length)) "$1" | tail -c +9 | LC_ALL=C sed 's/"\(header_crc32\|crc32.seconds\)":"[0-9a-f]*"/"\1":""/g
        s/"\(lr\|iterations\)":"[^"]*"/"\1":""/g; s/ *$//'
    tail -c +$((8 + length + 1)) "$1" | head -c $at
    tail -c +$((8 + length + at + 9)) "$1"
}

# Prints the bytes of one tensor of a checkpoint.
tensor() { # file name
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    places=$(head -c $((8 + length)) "$1" | tail -c "$length" | sed -n "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p")
    [ -n "$places" ] || return 1
    tail -c +$((8 + length + ${places% *} + 1)) "$1" | head -c $((${places#* } - ${places% *}))
}

same_checkpoint() { # name folder folder
    timeless "$2/checkpoint.safetensors" >one && timeless "$3/checkpoint.safetensors" >two && cmp -s one two
    report $? "$1"
}

renders() { # page: groff and mandoc, where they are installed, have no warning about a manual page
    if command -v groff >/dev/null; then
        groff -mandoc -ww -z -Tutf8 "$1" >out 2>&1
        [ ! -s out ]
        report $? "groff has no warning about it"
    fi
    if command -v mandoc >/dev/null; then
        mandoc -Tlint -W warning "$1" >out 2>&1
        report $? "mandoc has no warning about it"
    fi
}

finish() { # prints the plan; its status is the status of the test program
    echo "1..$n"
    [ $failed = 0 ]
}
