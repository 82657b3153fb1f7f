#!/bin/sh
# The tests of the package under valgrind: no error, and no leak with a frame of ours.
#
#     python/tests/valgrind.sh BUILD [NAME…]      build-matrix/valgrind, which make valgrind makes; names as for run.py
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
shift
ninja -C "$build" rws examples/dp.so examples/sequences.so examples/sticks.so tests/toy.so \
    "$(ninja -C "$build" -t targets all | sed -n 's/^\(python\/rws\/_rws\.[^:]*\.so\):.*/\1/p')" >/dev/null
cd "$root/python/tests"
export PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$build/python"
export RWS_PROGRAM="$build/rws" RWS_TESTS_ROOT="$root" RWS_TESTS_BUILD="$build"
[ $# -gt 0 ] || set -- $(ls test_*.py | sed 's/\.py$//')
for name; do
    echo "# $name"
    valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
        --num-callers=30 --suppressions=valgrind.supp /usr/bin/python3 run.py "$name"
done
