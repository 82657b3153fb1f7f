#!/bin/sh
# test_trouble.sh PROGRAM - full disks, read-only folders, locked databases, files of other programs: each gives one
# sentence and exit status 2, and no file is lost.
#
# The small disk is a tmpfs; where mounting is not allowed, its tests are skipped.
set -u
rws=$(realpath "${1:?usage: test_trouble.sh PROGRAM}")
. "$(dirname "$0")/../../tap.sh"
disk=$work/disk
trap 'umount "$disk" 2>/dev/null; rm -rf "$work"' EXIT

skip() { # tests reason
    for i in $(seq "$1"); do
        n=$((n + 1))
        echo "ok $n # SKIP $2"
    done
}

train() { run train gmm --method ww -k 2 "$@"; }

complains() { # name words: the last command ended with status 2 and one sentence that has them
    [ $? = 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q '^rws: .*\.$' err && grep -qEe "$2" err
    report $? "$1"
}

# ---- a database that another program keeps locked: it begins here and is looked at below, because it takes 10 s

locker=$(command -v sqlite3)
train -n 2000 --eval-every 100 --out quiet
if [ -n "$locker" ]; then
    train -n 1000 --eval-every 100 --out locked
    mkfifo hold
    sqlite3 locked/metrics.sqlite <hold >/dev/null 2>&1 &
    holder=$!
    exec 7>hold
    echo 'BEGIN EXCLUSIVE;' >&7
    sleep 0.3
    "$rws" train gmm --out locked --resume --iterations 2000 >locked.out 2>locked.err &
    waiting=$!
fi

# ---- checkpoints of other programs

train -n 20 --out mine
run train gmm --method vimco -k 2 -n 20 --out other
run train pcfg --method ww -k 2 -n 3 --eval-every 3 --out grammar
try_checkpoint() { # name words: resuming and looking at `broken` is refused, and the file stays
    before=$(cksum <broken/checkpoint.safetensors)
    run train gmm --out broken --resume --iterations 40
    complains "$1" "$2"
    run eval broken
    complains "$1, looked at" "$2"
    [ "$before" = "$(cksum <broken/checkpoint.safetensors)" ]
    report $? "and stays as it was"
    rm -r broken
}
cp -r mine broken && cp other/checkpoint.safetensors broken
try_checkpoint "a checkpoint of another method" 'checkpoint\.safetensors.*"vimco".*"ww"'
cp -r mine broken && cp grammar/checkpoint.safetensors broken
try_checkpoint "a checkpoint of another model" 'checkpoint\.safetensors.*"pcfg".*"gmm"'
cp -r mine broken && sed -i 's/"format":"rws 1"/"format":"rws 9"/' broken/checkpoint.safetensors
try_checkpoint "a checkpoint of another version" 'checkpoint\.safetensors.*"rws 9"'
cp -r mine broken && sed -i 's/"theta":{"dtype":"F32"/"theta":{"dtype":"F64"/' broken/checkpoint.safetensors
try_checkpoint "a damaged header" 'checkpoint\.safetensors'
cp -r mine broken && printf '\377\377\377\377' | dd of=broken/checkpoint.safetensors bs=1 conv=notrunc 2>/dev/null \
    seek=$(($(wc -c <broken/checkpoint.safetensors) - 200))
run eval broken
status=$?
[ $status = 0 ] || [ $status = 2 ]
report $? "damaged numbers are refused or read, but never a crash"
rm -r broken
cp -r mine broken && sed -i 's/"format": 1,/"format": 7,/' broken/config.json
run train gmm --out broken --resume --iterations 40
complains "a configuration of another version" 'config\.json'
cp mine/config.json broken && printf 'not a database at all, but long enough to look like one: %0600d' 0 >broken/metrics.sqlite
run train gmm --out broken --resume --iterations 40
complains "a store that is none" 'metrics\.sqlite'
[ "$(head -c 3 broken/metrics.sqlite)" = not ]
report $? "and stays as it was"
rm -r broken

# ---- a run that another process trains

"$rws" train gmm -k 20 --method ws --eval-every 100000 --out busy >/dev/null 2>&1 &
pid=$!
while [ ! -f busy/checkpoint.safetensors ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
run train gmm --out busy --resume
complains "a run that another process trains" 'busy.*another process'
run eval busy --record
complains "nor is anything added to it" 'busy.*another process'
kill $pid
wait $pid 2>/dev/null
run eval busy
report $? "is not disturbed"

# ---- a small disk

mkdir "$disk"
if mount -t tmpfs -o size=2m tmpfs "$disk" 2>/dev/null; then
    fill() { # leave that many KiB
        free=$(df -k --output=avail "$disk" | tail -n 1)
        head -c $(((free - $1) * 1024)) /dev/zero >"$disk/filler"
    }
    many='-n 1000 --eval-every 2 --save-every 0'
    train $many --out whole
    fill 100
    train $many --out disk/run
    complains "a disk that fills up in training" '(metrics\.sqlite|checkpoint\.safetensors).*(full|space)'
    run eval disk/run
    report $? "leaves a checkpoint that is whole"
    run train gmm --out disk/run --resume $many
    complains "resuming on the full disk" '(full|space)'
    cat /dev/zero >"$disk/rest" 2>/dev/null
    train $many --out disk/second
    complains "a new run on it" 'disk/second'
    printf 'model gmm\nmethods ww\nparticles 2\nseeds 1-3\niterations 20\n' >disk.sweep
    run sweep disk.sweep --out disk/sweep
    [ $? = 2 ] && grep -q '^rws: .*disk/sweep.*\.$' err
    report $? "and a sweep"
    rm "$disk/filler" "$disk/rest"
    run train gmm --out disk/run --resume $many
    report $? "when there is room again, the run continues"
    same_checkpoint "to the same end" disk/run whole
    run export disk/run && rows=$(wc -l <out)
    run export whole && [ "$rows" = "$(wc -l <out)" ]
    report $? "with every evaluation"

    mount -o remount,ro "$disk"
    before=$(cat disk/run/* | cksum)
    run train gmm --out disk/run --resume --iterations 2000
    complains "a run in a read-only folder" 'disk/run.*[Rr]ead-only'
    train -n 10 --out disk/third
    complains "a new run in a read-only folder" 'disk/third.*[Rr]ead-only'
    run eval disk/run
    report $? "can be looked at"
    run runs disk/run
    report $? "and listed"
    run plot p_error disk/run --out disk/p.png
    complains "but no picture goes there" 'disk/p\.png.*[Rr]ead-only'
    run export disk/run --out disk/p.csv
    complains "and no table" 'disk/p\.csv.*[Rr]ead-only'
    run sweep disk.sweep --out disk/again
    complains "and no sweep" 'disk/again.*[Rr]ead-only'
    [ "$before" = "$(cat disk/run/* | cksum)" ]
    report $? "nothing is lost"
    umount "$disk"
else
    skip 16 "mounting is not allowed"
fi

# ---- the locked database again

if [ -n "$locker" ]; then
    wait $waiting
    status=$?
    cp locked.err err
    [ $status = 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q '^rws: .*metrics\.sqlite.*locked for 10 seconds\.$' err
    report $? "a locked database is waited for, but not for ever"
    run eval locked
    report $? "the checkpoint is whole"
    echo 'ROLLBACK;' >&7
    exec 7>&-
    wait $holder
    run train gmm --out locked --resume --iterations 2000
    report $? "and when the lock is gone, it continues"
    same_checkpoint "to the same end" locked quiet
else
    skip 4 "there is no sqlite3 to lock a database with"
fi

finish
