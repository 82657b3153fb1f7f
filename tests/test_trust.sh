#!/bin/sh
# test_trust.sh PROGRAM - what the program does with files that are not what it expects: links, pipes and devices in the
# place of outputs, checkpoints with flipped bits, configurations that were edited, runs that were moved.
#
# Every file is one of the test's own, in its folder; nothing outside is written to.
set -u
rws=$(realpath "${1:?usage: test_trust.sh PROGRAM}")
. "$(dirname "$0")/tap.sh"

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
refuses 'rename checkpoint.previous.safetensors' train gmm --out broken --resume --iterations 60
mv broken/checkpoint.previous.safetensors broken/checkpoint.safetensors
gives 0 "the checkpoint before it goes on" train gmm --out broken --resume --iterations 60
gives 0 "as does the newest" train gmm --out mine --resume --iterations 60
same_checkpoint "to the same bits" broken mine

finish
