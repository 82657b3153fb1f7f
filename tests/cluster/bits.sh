# bits.sh - sourced by the tests of this folder.
#
#     bits CHECKPOINT    prints a checksum of every tensor of a checkpoint but the clock, in the order of their names

bits() { # file
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    head -c $((8 + length)) "$1" | tail -c "$length" | tr '}' '\n' |
        sed -nE 's/^.*"([^"]+)":\{.*"data_offsets":\[([0-9]+),([0-9]+)\].*/\1 \2 \3/p' |
        grep -v '^seconds ' | LC_ALL=C sort |
        while read -r name begin end; do
            echo "$name $(tail -c +$((8 + length + begin + 1)) "$1" | head -c $((end - begin)) | cksum)"
        done | sha256sum | cut -c 1-16
}
