#!/bin/sh
# once.sh RWS FOLDER CORPUS HARNESS... - the harnesses of FOLDER run without libFuzzer, on the texts of CORPUS and on files of a
# small run. `make fuzz` has the real thing. Prints TAP.
set -u
rws=$(realpath "$1") folder=$(realpath "$2") corpus=$(realpath "$3")
shift 3
. "$(dirname "$(realpath "$0")")/../tap.sh"
export RWS_FUZZ_RUN="$work/run"
gives 0 'a run to begin with' train gmm -k 2 -n 4 --eval-data 4 --out run
cp -r run kept
gives 0 'an exported run' export run --out exported.csv

for name; do
    case $name in
    checkpoint | safetensors) files=$work/kept/checkpoint.safetensors ;;
    config) files=$work/kept/config.json ;;
    store) files=$work/kept/metrics.sqlite ;;
    exported) files=$work/exported.csv ;;
    *) files= ;;
    esac
    [ ! -d "$corpus/$name" ] || files="$files $(echo "$corpus/$name"/*)"
    # shellcheck disable=SC2086 # a list
    "$folder/fuzz_$name" $files >out 2>err
    report $? "$name"
done
finish
