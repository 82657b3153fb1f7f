#!/bin/sh
# test_man3.sh HEADER PAGE... - a manual page of section 3 has every function of its header, with the same prototype, and no
# other function; it names every constant; its example compiles; it renders without a warning, where there is something
# that renders it.
set -u
for file; do set -- "$@" "$(realpath "$file")" && shift; done
. "$(dirname "$0")/../tap.sh"

# From C text to its functions, one prototype on each line, without attributes, bodies, macros and superfluous blanks.
prototypes() {
    sed -e ':macro' -e '/\\$/{N;s/\\\n//;b macro' -e '}' | sed -e ':all' -e 'N' -e '$!b all' -e 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' | sed '/^#/d' | tr '\n' ' ' | awk '
    function print_prototype(text) {
        gsub(/[ \t]+/, " ", text)
        sub(/^ /, "", text)
        if (text ~ /^(typedef|struct|enum|union|extern)/ || !match(text, /rws_[a-z0-9_]+ ?\(/)) return
        sub(/^static inline /, "", text)
        sub(/ *(\{|__attribute__|RWS_MUST_CHECK|RWS_READS).*/, "", text)
        sub(/ *;? *$/, "", text)
        print text
    }
    {
        n = split($0, c, "")
        for (i = 1; i <= n; i++) {
            if (c[i] == "{") depth++
            if (c[i] == "}") depth--
            text = text c[i]
            if (depth == 1 && text ~ /^ *extern *"C" *\{$/) { depth = 0; text = "" }
            if (depth == 0 && (c[i] == ";" || (c[i] == "}" && text ~ /^ *static/))) { print_prototype(text); text = "" }
        }
    }' | LC_ALL=C sort
}

# The text of the displays of a page that are not its example; and its example.
displays() { sed '/^\.\\" example begins/,/^\.\\" example ends/d' "$1" | sed -n '/^\.Bd -literal -compact/,/^\.Ed/p' | grep -v '^\.' | grep -v '^RWS_'; } # macros are no functions
example() { sed -n '/^\.\\" example begins/,/^\.\\" example ends/p' "$1" | grep -v '^\.' | sed 's/\\e/\\/g'; }

constants() { # header
    sed -n 's/^#define \(RWS_[A-Z_]*\) .*/\1/p' "$1" | grep -vx 'RWS_MUST_CHECK'
}

while [ $# -ge 2 ]; do
    header=$1 page=$2 name=$(basename "$2")
    shift 2
    prototypes <"$header" >one
    displays "$page" | prototypes >two
    diff one two >out 2>err
    [ $? = 0 ] && [ -s one ]
    report $? "$name has the $(wc -l <one) functions of $(basename "$header")"

    constants "$header" >one
    : >out
    while read -r constant; do grep -qw "$constant" "$page" || echo "$constant" >>out; done <one
    [ -s one ] && [ ! -s out ]
    report $? "and its constants"

    example "$page" >example.c
    [ -s example.c ] && ${CC:-cc} -std=c11 -Wall -Wextra -pedantic -Werror \
        -I "$(dirname "$header")" -c example.c -o example.o >out 2>err
    report $? "its example compiles"

    renders "$page"
done
finish
