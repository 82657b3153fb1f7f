#!/bin/sh
# test_by_hand.sh by_hand.c - the example without the library compiles without a warning, has at most 150 lines, and learns.
set -u
source=$(realpath "${1:?usage: test_by_hand.sh by_hand.c}")
. "$(dirname "$0")/../tap.sh"

[ "$(wc -l <"$source")" -le 150 ] && ! grep -q 'rws\.h\|rws_[a-z]' "$source"
report $? "at most 150 lines, and nothing of the library"
${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror -O2 -o by_hand "$source" -lm >out 2>err
report $? "no warning"
./by_hand >out 2>err
report $? "it runs"
awk 'NR == 2 { first = $2 > 0.6 && $3 > 0.6 } END { exit !(first && $1 == 20000 && $2 < 0.01 && $3 < 0.15) }' out
report $? "it learns the mixture and the posterior"
finish
