#!/bin/sh
# hard.sh BUILD [SOAK_SECONDS] - all cases of the tests from which `make test` takes samples, with a table of tries and failures.
#
# It takes about 50 minutes on two cores that do nothing else: 30 of them are the soak, whose seconds can be given (1800).
set -u
build=$(realpath "${1:?usage: hard.sh BUILD [SOAK_SECONDS]}")
soak=${2:-1800}
here=$(dirname "$(realpath "$0")")
table=$(mktemp) log=$(mktemp)
export XDG_STATE_HOME="$build/state"
trap 'rm -f "$table" "$log"' EXIT
status=0

part() { # name command…: adds the lines "… N tries, N failures" of a command to the table
    name=$1
    shift
    began=$(date +%s)
    echo "== $name"
    "$@" >"$log" 2>&1
    ended=$?
    grep -v '^ok' "$log"
    took=$(($(date +%s) - began))
    awk -v name="$name" -v took=$took -v ended=$ended '
        { gsub(/[(),]/, "") }
        / tries / { for (i = 1; i < NF; i++) if ($(i + 1) == "tries") tries += $i; else if ($(i + 1) == "failures") failures += $i }
        / made to fail: / { for (i = 1; i < NF; i++) if ($(i + 1) == "made") tries += $i; else if ($(i + 1) == "bad") failures += $i }
        END { if (ended && !failures) failures = 1
              printf "%-44s %8d %9d %7d s\n", name, tries, failures, took; exit failures > 0 }' "$log" >>"$table" || status=1
}

part "calls about files that fail" "$build/tests/test_disk" calls 1
part "power that is lost" "$build/tests/test_disk" power 1
part "bytes of config.json that change" "$build/tests/test_disk" bytes 1 config.json
part "bytes of a checkpoint that change" "$build/tests/test_disk" bytes 1 checkpoint.safetensors
part "bytes of a store that change" "$build/tests/test_disk" bytes 1 metrics.sqlite
part "little memory, few threads" "$here/apps/rws/limits.sh" "$build/rws" 12
for scenario in toy gmm threads pcfg ask-toy ask-pcfg save; do
    part "allocations that fail: $scenario" env MALLOC_PERTURB_=0 "$build/tests/test_memory" $scenario
done
commands='train resume eval infer sample runs export json --json exported serve'
for what in memory EIO ENOSPC EACCES; do
    for command in $commands; do part "each $what: $command" "$build/tests/each" "$build" $what 1 $command; done
    part "each 31st $what: other commands" "$build/tests/each" "$build" $what 31 list data plot bench sweep
done
! git -C "$here" cat-file -e 7fc42cb 2>/dev/null || part "runs of versions 0.1 to 0.9" "$here/old_runs.sh" "$build"
part "kills" "$here/apps/rws/kills.sh" "$build/rws" 200
part "soak" "$here/apps/rws/soak.sh" "$build/rws" "$soak"

printf '\n%-44s %8s %9s %9s\n' test tries failures time
cat "$table"
exit $status
