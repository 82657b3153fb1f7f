#!/bin/sh
# test_reproduced.sh PROGRAM REPORTS - the published reports that have their runs beside them, REPORTS/EXPERIMENT/runs.csv, are
# those that this program makes of these runs.
set -u
rws=$(realpath "${1:?usage: test_reproduced.sh PROGRAM REPORTS}")
reports=$(realpath "${2:?usage: test_reproduced.sh PROGRAM REPORTS}")
. "$(dirname "$0")/../../tap.sh"

for runs in "$reports"/*/runs.csv; do
    experiment=$(basename "$(dirname "$runs")")
    mkdir -p "again/$experiment" && cp "$runs" "again/$experiment"
    gives 0 "the report of $experiment from its runs" reproduce "$experiment" --report --out again
    for file in report.md claims.md claims.json final.csv; do
        cmp -s "$reports/$experiment/$file" "again/$experiment/$file"
        report $? "$file is the published one"
    done
done
finish
