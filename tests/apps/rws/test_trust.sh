#!/bin/sh
# test_trust.sh PROGRAM - what the program does with files that are not what it expects: links, pipes and devices in the
# place of outputs, checkpoints with flipped bits, configurations that were edited, runs that were moved.
#
# Every file is one of the test's own, in its folder; nothing outside is written to.
set -u
rws=$(realpath "${1:?usage: test_trust.sh PROGRAM}")
. "$(dirname "$0")/../../tap.sh"

check() { # name command…: passes if the command does
    name=$1
    shift
    "$@"
    report $? "$name"
}

run train gmm --method ww -k 2 -n 20 --out mine || exit 99
run export mine && mv out rows

# ---- outputs

mkfifo pipe
timeout 10 cat pipe >read &
run export mine --out pipe
check "a pipe is written to" [ $? = 0 ]
wait $!
check "and stays a pipe" [ -p pipe ]
check "and its reader has every byte" cmp -s read rows

mkdir elsewhere && echo old >elsewhere/target && chmod 640 elsewhere/target && ln -s elsewhere/target link && ln -s link chain
run export mine --out chain
check "a link is followed" [ -L chain -a -L link ]
check "to its target" cmp -s elsewhere/target rows
check "which keeps its mode" [ "$(stat -c %a elsewhere/target)" = 640 ]
ln -s elsewhere/new dangling
run export mine --out dangling
check "a link to a file that does not exist yet makes the file" cmp -s elsewhere/new rows
check "and stays a link" [ -L dangling ]
ln -s round round
refuses 'Cannot write "round"' export mine --out round
refuses 'directory' export mine --out elsewhere
umask 027
run export mine --out masked
check "a new file has the mode of the umask" [ "$(stat -c %a masked)" = 640 ]
umask 022
# A link of the test's own in the place of /dev/stdout: a program that replaces what it is given must not get at /dev.
ln -s /proc/self/fd/1 stream
"$rws" export mine --out stream >stdout 2>err
check "stdout, which is a file, is written to" cmp -s stdout rows
{ "$rws" export mine --out stream; echo more; } >stdout 2>err
{ cat rows; echo more; } >expected
check "and not taken away from the shell" cmp -s stdout expected
"$rws" export mine --out stream 2>err | cat >stdout
check "stdout, which is a pipe, is written to" cmp -s stdout rows

# Devices, if a private mount namespace can be had: a stand-in for /dev/null that a replacement would not survive.
cat >devices.sh <<'EOF'
mount -t tmpfs none "$2" && mknod "$2/null" c 1 3 && "$1" export mine --out "$2/null" && [ -c "$2/null" ]
EOF
mkdir devices
if unshare -m sh -c 'mount -t tmpfs none devices && mknod devices/null c 1 3' 2>/dev/null; then
    unshare -m sh devices.sh "$rws" devices >out 2>err
    check "a device is written to and stays one" [ $? = 0 ]
fi

# ---- temporary files

echo precious >rows.csv.tmp && ln -s precious other.csv.tmp
run export mine --out rows.csv
run export mine --out other.csv
check "a user's file that is called like a temporary one stays" [ "$(cat rows.csv.tmp)" = precious ]
check "and a link is neither followed nor removed" [ -L other.csv.tmp -a ! -e precious ]
check "no temporary file is left" [ -z "$(ls -A . | grep '^\.rws-')" ]
mkdir full
(
    ulimit -f 0
    trap '' XFSZ
    "$rws" export mine --out full/rows.csv >out 2>err
)
check "nor by a full disk" [ -z "$(ls -A full)" ]

# ---- damaged checkpoints

broken() { rm -rf broken && cp -r mine broken; }
flip() { # file byte: flips a bit of that byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "$(printf '\\%03o' $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
size=$(wc -c <mine/checkpoint.safetensors)
for at in $((size - 1)) $((size - 50)) $((size / 2)) 100; do
    broken && flip broken/checkpoint.safetensors $at
    refuses 'checkpoint.safetensors' train gmm --out broken --resume --iterations 40
    refuses 'checkpoint.safetensors' eval broken
done
run train gmm --out mine --resume --iterations 40
broken && flip broken/checkpoint.safetensors $((size - 1))
refuses "mv -T -- 'broken'/checkpoint.previous.safetensors 'broken'/checkpoint.safetensors" train gmm --out broken --resume --iterations 60
eval "$(sed -n 's/.*kept: "\(mv .*\)" continues.*/\1/p' err)"
gives 0 "the checkpoint before it continues" train gmm --out broken --resume --iterations 60
gives 0 "as does the newest" train gmm --out mine --resume --iterations 60
same_checkpoint "to the same bits" broken mine

# ---- edited configurations

edit() { # sed command: a copy of the run with another config.json
    broken && sed -i "$1" broken/config.json
}
for field in '"n_test": -1' '"n_test": 0' '"particles": 0' '"particles": -5' '"batch": 2000000' '"shards": 0' '"threads": 100000' \
    '"eval_every": 0' '"iterations": 0' '"iterations": "18446744073709551615"' '"eval_particles": -1' '"l2": -1' '"l2": 1e300' \
    '"seed": -1' '"method": 5' '"lr": []' '"scalar": "yes"'; do
    key=${field%%:*}
    edit "s/^    $key: .*/    $field,/"
    refuses "$key" train gmm --out broken --resume
    refuses "$key" eval broken
done
for field in '"seed": 7' '"particles": 3' '"batch": 50' '"shards": 2' '"n_test": 50' '"l2": 0.5'; do
    key=${field%%:*}
    edit "s/^    $key: .*/    $field,/"
    refuses "$key" train gmm --out broken --resume --iterations 80
    refuses "$key" eval broken
done
edit 's/"theta_mult": "[^"]*"/"theta_mult": "6"/'
grep -q '"theta_mult": "6"' broken/config.json && refuses '"theta_mult"' train gmm --out broken --resume --iterations 80
edit 's/^    "lr": .*/    "lr": "2e-3",/'
refuses 'trained with lr 1e-3' train gmm --out broken --resume --iterations 80
edit 's/^    "iterations": .*/    "iterations": 70,/'
gives 0 "other iterations are done" train gmm --out broken --resume
check "and said" grep -q 'asks for 70 iterations; it was 60 at the last checkpoint' err
edit 's/^    "threads": .*/    "threads": 2,/'
gives 0 "what may change may be edited" train gmm --out broken --resume --iterations 80
edit '1s/$/ /' && head -c 2000000 /dev/zero | tr '\0' ' ' >>broken/config.json
refuses 'bytes' eval broken

# ---- stores

broken && rm broken/metrics.sqlite
gives 0 "a run without its measures continues" train gmm --out broken --resume --iterations 80
check "and says so" grep -q 'metrics.sqlite" is missing' err
run train gmm --method ww -k 2 -n 20 --seed 9 --out ninth
broken && cp ninth/metrics.sqlite broken/metrics.sqlite
refuses '"seed" differs' train gmm --out broken --resume --iterations 80
broken && rm broken/metrics.sqlite && mkfifo broken/metrics.sqlite
(timeout 10 "$rws" train gmm --out broken --resume --iterations 80 >out 2>err)
check "a pipe in the place of the store is refused" [ $? = 2 ]
timeout 10 "$rws" runs broken >out 2>err
check "also by those who read it" [ $? = 2 ]
broken && rm broken/checkpoint.safetensors && mkfifo broken/checkpoint.safetensors
timeout 10 "$rws" train gmm --out broken --resume --iterations 80 >out 2>err
check "and a pipe in the place of the checkpoint" [ $? = 2 ]

# A run that is extended has its new length and rates.
cp -r mine longer
run train gmm --out longer --resume --iterations 100 --lr 1e-3,60:1e-4
run export longer --format json
check "an extended run is reported by its new length" grep -q '"iterations":100' out
check "and its new rates" grep -q '1e-3,60:1e-4' out

# A run that is killed while its store has a journal, and then moved, stays one run.
if command -v sqlite3 >/dev/null; then
    cp -r mine killed
    mkfifo hold
    sqlite3 killed/metrics.sqlite <hold >/dev/null 2>&1 &
    holder=$!
    exec 7>hold
    echo 'PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE metrics SET value = value + 1;
        CREATE TABLE t(x); INSERT INTO t SELECT randomblob(4000) FROM metrics, metrics LIMIT 100;' >&7
    for i in $(seq 50); do
        [ -s killed/metrics.sqlite-journal ] && break
        sleep 0.1
    done
    sleep 0.3
    kill -KILL $holder
    wait $holder 2>/dev/null
    exec 7>&-
    check "a journal is left" [ -s killed/metrics.sqlite-journal ]
    mv killed moved
    gives 0 "the run continues" train gmm --out moved --resume --iterations 80
    check "as one run" [ "$(sqlite3 moved/metrics.sqlite 'SELECT count(*) FROM runs')" = 1 ]
    check "under its name" [ "$(sqlite3 moved/metrics.sqlite 'SELECT DISTINCT run FROM metrics')" = mine ]
fi

# ---- stopping: an evaluation that takes minutes ends at once, and is taken when the run continues

"$rws" train gmm --method ww -k 2 -n 40 --eval-every 20 --eval-particles 2000000 --eval-data 1000 --out slow >out 2>err &
pid=$!
sleep 1.5
began=$(date +%s%N)
kill -INT $pid
wait $pid
status=$?
took=$((($(date +%s%N) - began) / 1000000))
check "Ctrl-C is heard during an evaluation" [ $status = 130 ]
check "before the evaluation would have ended ($took ms)" [ $took -lt 10000 ]
check "and tells how to continue" grep -q -- '--resume' err
run train gmm --method ww -k 2 -n 40 --eval-every 10 --eval-particles 20000 --out unhurried
for i in $(seq 12); do
    "$rws" train gmm --method ww -k 2 -n 40 --eval-every 10 --eval-particles 20000 --out hurried \
        $([ -e hurried/config.json ] && echo --resume) >out 2>err &
    pid=$!
    sleep 0.$((i % 4 + 1))
    kill -INT $pid
    wait $pid
    [ $? = 130 ] || break
done
[ -e hurried/checkpoint.safetensors ] && run train gmm --out hurried --resume
same_checkpoint "a run that was stopped in evaluations has the bits of one that was not" hurried unhurried
for name in hurried unhurried; do
    "$rws" export $name | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) drop[i] = $i == "run" || $i == "seconds" }
        { for (i = 1; i <= NF; i++) if (!drop[i]) printf "%s,", $i; print "" }' >$name.csv
done
check "and its measures" cmp -s hurried.csv unhurried.csv

# One long iteration, and one long metric.
interrupt() { # name iteration folder arguments…: trains, interrupts a second later; this many iterations must have ended
    name=$1 midst=$2 folder=$3
    shift 3
    "$rws" "$@" --out $folder >out 2>err &
    pid=$!
    for i in $(seq 300); do # a shell has its background jobs ignore SIGINT, until the program catches it
        case $(sed -n 's/^SigCgt:.*\(.\)$/\1/p' /proc/$pid/status) in [2367abef]) break ;; esac
        sleep 0.1
    done
    sleep 1
    kill -INT $pid
    wait $pid
    status=$?
    check "Ctrl-C is heard in $name" [ $status = 130 ]
    check "in the midst of it, after iteration $midst" grep -q "after iteration $midst;" err
}
long='train air --set images=blocks -k 1000 -b 200 -n 1 --eval-data 2 --eval-particles 2'
interrupt "a long iteration" 0 torn $long
run train air --out torn --resume
run $long --out untorn
same_checkpoint "an iteration that was stopped is made again, to the same bits" torn untorn
interrupt "a long metric" 1 parsed train pcfg --set grammar=garden -k 5 -n 1 --eval-data 20000

# ---- two sweeps in one folder

printf 'model gmm\nmethods ww ws\nparticles 2\nseeds 1-6\niterations 200\neval-every 20\nfinal 50\n' >twice.sweep
for i in 1 2 3; do "$rws" sweep twice.sweep --jobs 2 >sweep$i.out 2>sweep$i.err & eval "sweep$i=$!"; done
wait $sweep1; one=$?
wait $sweep2; two=$?
wait $sweep3; three=$?
check "three sweeps in one folder all end well" [ $one$two$three = 000 ]
check "without failures" [ "$(cat sweep?.out | grep -c '^failed')" = 0 ]

# ---- text of users in sentences

long=$(printf '%0600d' 0 | tr 0 x)
sentence() { # name command…: the complaint is one whole sentence without control characters
    name=$1
    shift
    run "$@"
    [ $? = 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q '^rws: .*\.$' err && ! LC_ALL=C grep -q "$(printf '[\001-\011\013-\037\177]')" err &&
        [ "$(wc -c <err)" -lt 520 ]
    report $? "a whole sentence: $name"
}
escape=$(printf 'a\033[31mred\nrws: All is well.')
for text in "$long" "$escape"; do
    sentence "command" "$text"
    sentence "option" train gmm "--$text"
    sentence "number" train gmm -k "$text"
    sentence "real" train gmm --l2 "$text"
    sentence "model" train "$text"
    sentence "method" train gmm --method "$text"
    sentence "setting" train gmm --set "$text"
    sentence "value of a setting" train gmm --set "start=$text"
    sentence "optimiser" train gmm --optimiser "$text"
    sentence "rate" train gmm --lr "$text"
    sentence "folder" eval "$text"
    sentence "too much" eval mine "$text"
    sentence "data" data "$text"
    sentence "list" list "$text"
    sentence "experiment" reproduce "$text"
    sentence "metric" plot mine --metric "$text" --out x.png
    sentence "where" runs mine --where "$text=1"
    sentence "sweep" sweep "$text"
    sentence "contradiction" train gmm --out mine --resume --set "$text=1"
    sentence "datum" infer mine "$text"
    sentence "minus" infer mine "-1$text"
done
printf '1\0002\n' >zero
refuses "zero byte" infer mine --file zero
run infer mine - <zero
check "also on stdin" [ $? = 2 ]
name="it's a \"run\" \$HOME"
"$rws" train gmm --method ww -k 2 -n 100000000 --out "$name" >out 2>err &
pid=$!
sleep 1
kill -INT $pid
wait $pid
hint=$(sed -n 's/.*continue with: rws //p' err)
sed -i 's/^    "iterations": .*/    "iterations": 2,/' "$name/config.json"
eval "\"\$rws\" $hint" >out 2>err
check "the hint can be pasted" [ $? = 0 ]

# ---- other machines: a checkpoint that says it was written elsewhere

cat >elsewhere.py <<'EOF'
import json, struct, sys
path = sys.argv[1]
bytes_ = open(path, "rb").read()
length = struct.unpack("<Q", bytes_[:8])[0]
header = json.loads(bytes_[8 : 8 + length])
header["__metadata__"] = {k: v for k, v in header["__metadata__"].items() if "crc32" not in k}
header["__metadata__"].update({"build": "cc-1", "cpu": "abacus", "training_data": "1", "test_data": "2"})
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(path, "wb").write(struct.pack("<Q", len(text)) + text + bytes_[8 + length :])
EOF
if command -v python3 >/dev/null; then
    broken && python3 elsewhere.py broken/checkpoint.safetensors
    gives 0 "a checkpoint from elsewhere, without checksums, continues" train gmm --out broken --resume --iterations 80
    check "and the build is said" grep -q 'another build (cc-1)' err
    check "and the processor" grep -q 'another processor (abacus)' err
    check "and the training data" grep -q 'The training data are not those' err
    check "and the test data" grep -q 'The test data are not those' err
    broken
    gives 0 "a checkpoint from here" train gmm --out broken --resume --iterations 80
    check "continues without a word" [ ! -s err ]
fi

finish
