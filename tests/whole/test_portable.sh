#!/bin/sh
# test_portable.sh PROGRAM IS_PORTABLE - the bits of a portable build are the same whatever kernels the libraries would choose.
#
# glibc takes the functions for a processor without the features that GLIBC_TUNABLES hides. AVX2 and FMA stay, since a portable
# build needs them.
set -u
rws=$(realpath "${1:?usage: test_portable.sh PROGRAM IS_PORTABLE}")
[ "${2:?}" = true ] || { echo '1..0 # SKIP not a portable build (-Dportable=true)'; exit 0; }
. "$(dirname "$0")/../tap.sh"

bits() { # model and options…: writes the checkpoint without its times and the final metrics to `bits`
    rm -rf run
    "$rws" train "$@" --json -t 2 --out run >out 2>err || return 1
    timeless run/checkpoint.safetensors >bits && tail -n 1 out | sed 's/"seconds":[^,}]*,//' >>bits
}

masks='-AVX512F,-AVX512VL,-AVX512DQ,-AVX512BW,-AVX512CD,-AVX512ER,-AVX512PF,-ERMS,-FSRM'
for one in 'gmm --method relax -k 20 -n 20' \
    'pcfg -k 10 -b 4 --eval-data 20 -n 10' \
    'air -k 4 -b 32 --eval-data 20 --pictures 0 --set images=blocks -n 3' \
    'sbn -k 10 -b 24 --eval-data 20 --set data=noise --set pixels=300 --set layers=150,100 -n 5'; do
    name=${one%% *}
    # shellcheck disable=SC2086 # the words of $one are arguments
    bits $one && mv bits want || { report 1 "$name is trained"; continue; }
    GLIBC_TUNABLES=glibc.cpu.hwcaps=$masks bits $one && cmp -s bits want
    report $? "$name: the same bits with glibc's functions for a processor without AVX-512"
done
finish
