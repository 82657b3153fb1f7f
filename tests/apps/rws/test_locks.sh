#!/bin/sh
# test_locks.sh PROGRAM NOLOCKS.so - folders as clusters have them: on a file system without locks, and read-only.
set -u
rws=$(realpath "${1:?usage: test_locks.sh PROGRAM NOLOCKS.so}")
nolocks=$(realpath "${2:?usage: test_locks.sh PROGRAM NOLOCKS.so}")
. "$(realpath "$(dirname "$0")")/../../tap.sh"

run_without_locks() { LD_PRELOAD=$nolocks "$rws" "$@" >out 2>err; }
numbers() { # folder: all measures, without times
    "$rws" export "$1" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) drop[i] = $i == "seconds" }
        { for (i = 1; i <= NF; i++) if (!drop[i]) printf "%s,", $i; print "" }'
}

# ---- one run

run train gmm -k 2 -n 60 --eval-every 20 --out locked
mkdir unlocked-parent && cd unlocked-parent || exit 99
run_without_locks train gmm -k 2 -n 40 --eval-every 20 --out locked
report $? "a run is trained where files cannot be locked"
[ "$(wc -l <err)" = 1 ] && grep -q 'cannot be locked (No locks available): make sure that no other process trains the run' err
report $? "one sentence says what the user must see to"
run_without_locks train gmm -n 60 --out locked --resume
report $? "it is resumed"
same_checkpoint "with the bits of a run with locks" locked ../locked
numbers locked >one && numbers ../locked >two && cmp -s one two
report $? "and its measures"
run_without_locks runs locked && grep -q '^locked *finished *60 ' out
report $? "rws runs reads its store"
run_without_locks eval locked
report $? "rws eval too"
cd ..

# ---- a writer that was killed while it wrote: a journal is left

run_without_locks train gmm -k 2 -n 20 --eval-every 20 --out cut
# The journal of a transaction that was not finished: its header and no page, as after a kill at that moment.
pages=$(($(stat -c %s cut/metrics.sqlite) / 4096))
printf '\331\325\005\371\040\241\143\327\000\000\000\000\000\000\000\000' >cut/metrics.sqlite-journal
# the pages before, the bytes of a sector and those of a page
printf "\\000\\000\\000\\$(printf %03o $pages)\\000\\000\\002\\000\\000\\000\\020\\000" >>cut/metrics.sqlite-journal
head -c 484 /dev/zero >>cut/metrics.sqlite-journal
run_without_locks train gmm -n 40 --out cut --resume
report $? "a run continues whose writer was killed while it wrote the store"
[ ! -s cut/metrics.sqlite-journal ]
report $? "the journal is gone"

# ---- a sweep

printf 'model gmm\nmethods ww ws\nparticles 2\niterations 40\n' >pair.sweep
run sweep pair.sweep --out with
run_without_locks sweep pair.sweep --out without -j 2
report $? "a sweep of two runs at a time"
[ ! -e without/metrics.sqlite ] && [ "$(ls without/*/metrics.sqlite | wc -l)" = 2 ]
report $? "every run has a store of its own"
numbers with >one && LD_PRELOAD=$nolocks numbers without >two && cmp -s one two
report $? "the folder of stores is read like the one store of a sweep with locks"
run_without_locks sweep pair.sweep --out without && grep -q "^2 runs: 2 finished" out
report $? "what is finished is skipped"

# ---- a read-only folder

if [ "$(id -u)" = 0 ] && unshare --mount sh -c 'mount --bind with with && mount -o remount,ro,bind with && ! touch with/x' 2>/dev/null; then
    read_only() { # arguments…
        unshare --mount sh -c 'mount --bind with with && mount -o remount,ro,bind with && exec "$@"' sh "$rws" "$@" >out 2>err
    }
    name=$(basename "$(ls -d with/*/ | head -n 1)")
    for command in "runs with" "export with" "eval with/$name" "infer with/$name -- 3" "sample with/$name" "plot log_evidence with --out p.svg"; do
        read_only $command
        report $? "rws $command where nothing can be written"
    done
    read_only train gmm --out "with/$name" --resume -n 80
    [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -Eqi 'read-only' err
    report $? "training there is refused with a sentence"
    run eval "with/$name"
    report $? "and changes nothing"
else
    echo "# skipped: read-only folders need root and mounts"
fi
finish
