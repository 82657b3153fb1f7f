#!/bin/sh
# golden.sh - short runs end with the numbers that they ended with before.
#
#     tests/whole/golden.sh BUILD             compares with tests/whole/golden.json
#     tests/whole/golden.sh BUILD --update    rewrites it, after a change that means to alter numbers or adds a run
#
# The bits of a run depend on its seed and on the build: processor, compiler, flags, BLAS. golden.json has for every run
# the metrics of its last iteration, and a checksum of its parameters for each kind of build that was ever recorded.
# Where this build is one of them the checksums must be equal; elsewhere the metrics must agree to TOLERANCE, relative
# to the larger of the two and 1.
set -u
build=$(realpath "${1:?usage: golden.sh BUILD [--update]}")
update=${2:-}
golden=$(realpath "$(dirname "$0")")/golden.json
rws=$build/rws
. "$(dirname "$0")/../tap.sh"
TOLERANCE=1e-3

flavour="$("$build/tests/flavour") $(cksum <"$build/tests/flags" | cut -d ' ' -f 1)"
echo "# this build is \"$flavour\""
cp "$golden" before 2>/dev/null || : >before
known=$(grep -cF "\"$flavour\"" before)

# name: its line of golden.json; then the part that is asked for
line() { grep -F "\"$1\": {\"metrics\"" before; }
metrics() { sed 's/.*"metrics": \({[^}]*}\).*/\1/'; }
checksums() { sed 's/.*"parameters": {\([^}]*\)}.*/\1/'; }

# Checksum of all parameters in a checkpoint, in the order of their names.
parameters() { # file
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    head -c $((8 + length)) "$1" | tail -c "$length" | tr '}' '\n' |
        sed -nE 's/^.*"((theta|phi|control|baseline)[^"]*)":.*"data_offsets":\[([0-9]+),([0-9]+)\].*/\1 \3 \4/p' |
        LC_ALL=C sort >tensors
    while read -r _ begin end; do
        tail -c +$((8 + length + begin + 1)) "$1" | head -c $((end - begin))
    done <tensors | sha256sum | cut -c 1-16
}

# Do two objects of metrics have the same names and, nearly, values?
near() { # one two
    printf '%s\n%s\n' "$1" "$2" | tr -d '{} ' | awk -F , -v tolerance=$TOLERANCE '
    function magnitude(x) { return x < 0 ? -x : x }
    function larger(x, y) { return x > y ? x : y }
    NR == 1 { for (i = 1; i <= NF; i++) { split($i, part, ":"); value[part[1]] = part[2]; n++ } }
    NR == 2 {
        bad = NF != n
        for (i = 1; i <= NF; i++) {
            split($i, part, ":")
            a = value[part[1]]; b = part[2]
            if (a == b) continue
            off = magnitude(a - b) / larger(1, larger(magnitude(a), magnitude(b)))
            if (!(part[1] in value) || !(off <= tolerance)) { print part[1] ": " a " and " b; bad = 1 }
        }
        exit bad
    }'
}

: >after
golden() { # name arguments…
    name=$1
    shift
    rm -rf run
    "$rws" train "$@" -n 40 -t 2 --json --out run >out 2>err || {
        report 1 "$name"
        return
    }
    new=$(tail -n 1 out | sed 's/"final":true,//; s/"iteration":[0-9]*,//; s/"seconds":[^,}]*,//')
    sum=$(parameters run/checkpoint.safetensors)
    [ -s tensors ] || sum=none
    old=$(line "$name" | metrics)
    was=$(line "$name" | checksums | tr ',' '\n' | sed -n "s/^ *\"$flavour\": \"\(.*\)\"/\1/p")
    near "${old:-"{}"}" "$new" >out
    is_near=$?
    if [ "$update" ]; then
        # Where the bits have changed, those of other builds have too.
        others=$(line "$name" | checksums | tr ',' '\n' | sed 's/^ *//' | grep -vF "\"$flavour\"" | sed 's/$/, /' | tr -d '\n')
        if [ $is_near != 0 ] || { [ "$was" ] && [ "$was" != "$sum" ]; }; then others=; else new=$old; fi
        printf '    "%s": {"metrics": %s, "parameters": {%s"%s": "%s"}},\n' "$name" "$new" "$others" "$flavour" "$sum" >>after
        report 0 "$name is recorded"
    elif [ "$was" ]; then
        echo "parameters $was and $sum" >>out
        [ "$was" = "$sum" ]
        report $? "$name: the same bits"
    else
        [ -n "$old" ] && [ $is_near = 0 ]
        report $? "$name: the same metrics, to $TOLERANCE"
    fi
}

for method in ws ww wws dww reinforce rloo nvil vimco rebar relax concrete; do
    golden gmm-$method gmm --method $method -k 10
done
for method in ww ws; do
    golden pcfg-$method pcfg --method $method -k 10 -b 2 --eval-data 20
done
for method in ww vimco; do
    golden air-$method air --method $method -k 4 -b 6 --eval-data 20 --pictures 0 --set images=blocks --set canvas=14 \
        --set glimpse=6 --set what=5 --set hidden=16
done
golden sbn-ww sbn --method ww -k 10 -b 8 --eval-data 20 --set data=noise --set pixels=50 --set layers=20,10

if [ "$update" ]; then
    {
        echo '{'
        echo '  "runs": {'
        sed '$s/,$//' after
        echo '  }'
        echo '}'
    } >"$golden"
else
    [ "$known" -gt 0 ] || echo "# not recorded for this build: only metrics were compared; golden.sh --update records it"
fi
finish
