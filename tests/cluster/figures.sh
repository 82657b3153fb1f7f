#!/bin/sh
# figures.sh BUILD [PART…] - prints the measured figures of docs/cluster.md, and what follows from them. Wants a quiet
# machine with at least two cores. MODELS, REPEAT and ROUNDS set other models and numbers of measurements.
#
#     threads   2 ranks against 2 threads of one process
#     cable     two hosts with a delay of 1 ms and 1 Gbit/s: the share of communication, and what the formula predicts
#     compute   the time of an iteration on one core, by the number of shards; bytes and messages of 2 ranks
#     scaling   from these: the speed-up of one batch for 2 to 1024 ranks over 10 and 100 Gbit/s
#     weak      and the share of the time in which ranks compute if each has a batch of its own
set -u
build=$(realpath "${1:?usage: figures.sh BUILD [PART…]}")
shift
here=$(realpath "$(dirname "$0")")
rws=$build/rws
cable=$build/tests/cable
. "$here/../tap.sh"
. "$here/../apps/rws/mpi.sh"
. "$here/network.sh"
trap 'network_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
repeat=${REPEAT:-7}
models=${MODELS:-gmm pcfg air sbn}

arguments() { # model
    case $1 in
    gmm) echo "gmm --method ww -k 20 --batch 100" ;;
    pcfg) echo "pcfg --method ws -k 20 --batch 64" ;;
    air) echo "air --method vimco -k 10 --batch 64" ;;
    sbn) echo "sbn --method ww -k 50 --batch 64" ;;
    esac
}
phases() { case $1 in pcfg) echo 2 ;; *) echo 1 ;; esac; }
value() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" out; }
bench() { # launcher… -- arguments: one JSON object in out
    "$@" --json --repeat "$repeat" >out 2>err || { cat err >&2; exit 1; }
}

# What communication takes, in microseconds, with P phases, R ranks, N parameters, latency L, W bytes per second.
#     few parameters (they fit two slices): up a tree of ranks, and back     2 P ceil(log2 R) L + 2 ceil(log2 R) 4 N / W
#     many: outcomes of the shards, to the owners, and back                  P ceil(log2 R) L + 2 P L + 2 (R - 1) / R 4 N / W
# The root of the tree is ahead of the others by the way back, so that outcomes, which come first, cost no time of their own.
# hidden is the share of the way to the owners that passes while products are still computed: 0 to 1. MPICH asks before it
# sends a large message, which takes 2 L more each way.
formula='
function rounds(R,  k, n) { for (n = 1; n < R; n *= 2) k++; return k + 0 }
function communication(R, P, N, latency, gigabits, hidden,  bytes) {
    if (R == 1) return 0
    bytes = 4 * N * 8e-3 / gigabits # microseconds
    if (N <= 32768) return 2 * P * rounds(R) * latency + 2 * rounds(R) * bytes
    return P * rounds(R) * latency + 2 * P * latency + (2 - hidden) * (R - 1) / R * bytes
}'

# Rounds, so that a program that disturbs the machine for a while disturbs all of them: the best round of each counts.
threads() {
    rounds=${ROUNDS:-3}
    echo "2 ranks against 2 threads of one process, microseconds per iteration (best of $rounds rounds of $repeat):"
    for model in air sbn; do
        : >rounds
        for _ in $(seq "$rounds"); do
            bench "$rws" bench $(arguments $model) --shards 2 --threads 2
            echo "threads $(value us_per_iteration) 0" >>rounds
            for kind in $(kinds); do
                bench ranks "$kind" 2 "$rws" bench $(arguments $model) --shards 2
                echo "$kind $(value us_per_iteration) $(value communication_share)" >>rounds
            done
        done
        awk -v model=$model '
            !($1 in best) || $2 < best[$1] { best[$1] = $2; share[$1] = $3 }
            END { for (kind in best) if (kind != "threads") printf "  %-4s %-8s threads %.0f  ranks %.0f  (%+.1f %%)  communication %.1f %%\n",
                model, kind, best["threads"], best[kind], 100 * (best[kind] / best["threads"] - 1), 100 * share[kind] }' rounds
    done
}

parameters() { # model: how many
    rm -rf run
    "$rws" train $(arguments "$1") --batch 2 -k 2 -n 1 --eval-data 2 --eval-particles 2 --out run >out 2>err || return 1
    length=$(od -An -tu8 -N8 run/checkpoint.safetensors | tr -d ' ')
    head -c $((8 + length)) run/checkpoint.safetensors | tail -c "$length" | tr '}' '\n' |
        sed -nE 's/^.*"(theta|phi|control|baseline)[^"]*":.*"data_offsets":\[([0-9]+),([0-9]+)\].*/\2 \3/p' |
        awk '{ n += ($2 - $1) / 4 } END { print n }'
}

# Ranks on one host and on two, in rounds; the best round of each counts.
slow() {
    delay=${DELAY:-1000} rate=${RATE:-1000} rounds=${ROUNDS:-3}
    network_start "$work/net" "$delay" "$rate" || { echo "  no network namespaces here"; return; }
    echo "two hosts, $delay microseconds of delay and $rate Mbit/s, share of communication (microseconds per iteration):"
    for model in $models; do
        N=$(parameters $model) P=$(phases $model)
        : >rounds
        for _ in $(seq "$rounds"); do
            for network_kind in $(kinds); do
                bench ranks "$network_kind" 2 "$rws" bench $(arguments $model) --shards 2
                echo "$network_kind near $(value us_per_iteration) $(value communication_share)" >>rounds
                bench network_ranks 2 "$rws" bench $(arguments $model) --shards 2
                echo "$network_kind far $(value us_per_iteration) $(value communication_share)" >>rounds
            done
        done
        awk -v model=$model -v N=$N -v P=$P -v delay=$delay -v rate=$rate "$formula"'
            !(($1, $2) in best) || $3 < best[$1, $2] { best[$1, $2] = $3; share[$1, $2] = $4; kinds[$1] }
            END { for (kind in kinds) {
                compute = best[kind, "near"] * (1 - share[kind, "near"]); measured = share[kind, "far"]
                for (hidden = 0; hidden < 2; hidden++) {
                    wait = communication(2, P, N, delay, rate / 1000, hidden) + (kind == "mpich" && N > 32768 ? 4 * delay : 0)
                    predicted[hidden] = wait / (wait + compute)
                }
                nearest = measured > predicted[0] ? predicted[0] : measured < predicted[1] ? predicted[1] : measured
                printf "  %-4s %-8s measured %.1f %% (%.0f)  predicted %.1f to %.1f %%  (%+.0f %%)\n", model, kind, 100 * measured,
                    best[kind, "far"], 100 * predicted[1], 100 * predicted[0], 100 * (nearest / measured - 1) } }' rounds
    done
    network_stop
}

compute() {
    echo "one core, microseconds per iteration by the number of shards; bytes and messages that a rank of 2 sends in one:"
    echo "  model parameters phases       1       2       4       8      16      32      64     bytes messages"
    for model in $models; do
        line="$model $(parameters $model) $(phases $model)"
        for shards in 1 2 4 8 16 32 64; do
            bench "$rws" bench $(arguments $model) --shards $shards
            line="$line $(value us_per_iteration)"
        done
        kind=$(kinds | head -n 1) bytes=0 messages=0
        if [ "$kind" ]; then
            bench ranks "$kind" 2 "$rws" bench $(arguments $model) --shards 2
            # bench tells the sums over both ranks
            bytes=$(value bytes_sent_per_iteration | awk '{ print $1 / 2 }') messages=$(value messages_sent_per_iteration | awk '{ print $1 / 2 }')
        fi
        echo "$line $bytes $messages" |
            awk '{ printf "  %-5s %10d %6d", $1, $2, $3; for (i = 4; i <= 10; i++) printf " %7.0f", $i; printf " %9d %8d\n", $11, $12 }'
        echo "$line" >>computed
    done
}

# A rank of R computes shards of which there are R: the time of R shards on one core, divided by R. Above 64 the share
# of a shard is taken to be that of 64 and the work to be cut no further.
scaling() {
    [ -s computed ] || compute >/dev/null
    for network in "10 25" "100 3"; do
        echo "$network" | awk '{ print "speed-up over " $1 " Gbit/s with a latency of " $2 " microseconds, for ranks 2 4 8 16 32 64 128 256 1024:" }'
        awk -v gigabits="${network% *}" -v latency="${network#* }" "$formula"'{
            printf "  %-5s", $1
            for (i = 0; split("2 4 8 16 32 64 128 256 1024", R, " ") && i++ < 9;) {
                k = R[i] < 64 ? rounds(R[i]) : 6
                work = $(4 + k) / (R[i] < 64 ? R[i] : 64)
                printf " %6.1f", $4 / (work + communication(R[i], $3, $2, latency, gigabits, 0))
            }
            print ""
        }' computed
    done
}

# The same where the batch grows with the ranks: each has a batch of the usual size, as one shard.
weak() {
    [ -s computed ] || compute >/dev/null
    for network in "10 25" "100 3"; do
        echo "$network" | awk '{ print "share of the time in which ranks compute, with a batch per rank, over " $1 " Gbit/s, for ranks 2 4 8 16 32 64 128 256 1024:" }'
        awk -v gigabits="${network% *}" -v latency="${network#* }" "$formula"'{
            printf "  %-5s", $1
            for (i = 0; split("2 4 8 16 32 64 128 256 1024", R, " ") && i++ < 9;)
                printf " %5.0f%%", 100 * $4 / ($4 + communication(R[i], $3, $2, latency, gigabits, 0))
            print ""
        }' computed
    done
}

for part in ${*:-threads cable compute scaling weak}; do
    [ $part = cable ] && part=slow
    $part
done
