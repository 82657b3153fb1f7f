#!/bin/sh
# test_reproduced.sh PROGRAM REPORTS - the published reports that have their runs beside them, REPORTS/EXPERIMENT/runs.csv, are
# those that this program makes of these runs; and where there are only the ends of the runs, ends.csv, the findings that these decide.
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

for ends in "$reports"/*/ends.csv; do
    experiment=$(basename "$(dirname "$ends")")
    mkdir -p "again/$experiment" && cp "$ends" "again/$experiment/runs.csv"
    gives 0 "the report of $experiment from the ends of its runs" reproduce "$experiment" --report --out again
    cmp -s "$reports/$experiment/final.csv" "again/$experiment/final.csv"
    report $? "final.csv is the published one"
    grep '"numbers"' "again/$experiment/claims.json" | grep -v 'not enough runs\|: ""' >found
    grep '"numbers"' "$reports/$experiment/claims.json" >published
    test -s found && ! grep -v -x -F -f published found >other
    report $? "the findings are the published ones"
done
finish
