#!/bin/sh
# test_readme.sh PROGRAM ROOT - README.md: the program in C runs exactly as printed, with the commands below it, and learns; the
# document is short enough to be read.
set -u
rws=$(realpath "${1:?usage: test_readme.sh PROGRAM ROOT}")
root=$(realpath "$2")
. "$(dirname "$0")/../tap.sh"

[ "$(wc -m <"$root/README.md")" -lt 9000 ]
report $? "README.md has fewer than 9,000 characters"
sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '/^```/d' >party.c
[ -s party.c ]
report $? "README.md has a program in C"
mkdir build && ln -s "$rws" build/rws && ln -s "$root/include" include
cc() { command ${CC:-gcc} -Wall -Werror "$@"; }
sed -n '/^```sh$/,/^```$/p' "$root/README.md" | sed '/^```/d' >commands
. ./commands >out 2>err
report $? "its commands run"
grep -qE '^  posterior 0\.6[0-9]{2} ' out && grep -qF 'guests 3' out
report $? "three guests are the most probable"
rate=$("$rws" eval party --params 2>err | awk '$1 == "theta.more" { print $2 }')
awk -v rate="$rate" 'BEGIN { exit !(rate > 0.3 && rate < 0.5) }'
report $? "the rate is near to log(0.6 / 0.4)"
finish
