#!/bin/sh
# test_symbols.sh LIBRARY.so LIBRARY.a PROGRAM HEADER... - the library exports what the public headers declare, no more
# and no less; the program shows the same to the models that it loads; every global name begins with rws_.
set -u
so=$1 a=$2 program=$3
shift 3
for header; do set -- "$@" "$(realpath "$header")" && shift; done
so=$(realpath "$so") a=$(realpath "$a") program=$(realpath "$program")
. "$(dirname "$0")/../tap.sh"

# Names of the functions and objects that C code declares: cuts the text into declarations at the outermost ; and },
# leaves out types and inline functions.
declared() { # arguments of the compiler
    ${CC:-cc} -E -P -x c "$@" | sed '/^#/d' | tr '\n' ' ' | awk '
    function name(text) {
        if (text ~ /^ *(typedef|static|struct|enum|union|__extension__)/ || text !~ /rws_/) return
        if (match(text, /rws_[A-Za-z0-9_]+ *\(/)) text = substr(text, RSTART, RLENGTH - 1)
        else if (match(text, /rws_[A-Za-z0-9_]+ *(\[[^]]*\])? *$/)) text = substr(text, RSTART, RLENGTH)
        else { print "cannot be read: " text; return }
        sub(/[ \[].*/, "", text)
        print text
    }
    {
        n = split($0, c, "")
        for (i = 1; i <= n; i++) {
            if (c[i] == "{") depth++
            else if (c[i] == "}") depth--
            text = text c[i]
            if (c[i] == "{" && depth == 1 && text ~ /^ *extern *"C" *\{$/) { depth = 0; text = "" }
            if (depth == 0 && (c[i] == ";" || (c[i] == "}" && text ~ /^ *static/))) {
                sub(/;$/, "", text)
                name(text)
                text = ""
            }
        }
    }' | sort -u
}

exported() { # file
    nm -D --defined-only "$1" | sed -n 's/.* [A-Z] \([^@]*\)$/\1/p' | sort -u
}

equal() { # name: are the lists `one` and `two` the same?
    comm -3 one two >out
    : >err
    [ -s one ] && [ ! -s out ]
    report $? "$1"
}

# A model's name is declared for models and defined by none of ours.
for header; do echo "#include \"$header\""; done >all.c
declared -I "$(dirname "$1")" all.c | grep -vx rws_user_model >one

exported "$so" >two
equal "$(basename "$so") exports the $(wc -l <one) names that the headers declare"

exported "$program" | grep rws_ >two
equal "the program exports them too"

nm -g --defined-only "$a" | sed -n 's/^[0-9a-f]* [A-Z] //p' | grep -v '^rws_' >out
: >err
[ ! -s out ] && nm -g --defined-only "$a" | grep -q rws_
report $? "all global names in $(basename "$a") begin with rws_"

finish
