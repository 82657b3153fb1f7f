#!/bin/sh
# old_runs.sh BUILD [FOLDER [VERSION...]] - runs of earlier versions open and continue, or are refused with a message that names
# the version.
#
# Builds the versions from the history of git in FOLDER (build-old), where they stay for the next time, and trains each model there
# a little. Prints TAP, and a table.
set -u
build=$(realpath "${1:?usage: old_runs.sh BUILD [FOLDER [VERSION...]]}")
root=$(realpath "$(dirname "$0")/..")
old=${2:-$root/build-old}
shift
[ $# = 0 ] || shift
wanted=" $* "
mkdir -p "$old" && old=$(realpath "$old")
rws=$build/rws
ninja -C "$build" rws examples/burglary.so >&2 || exit 1
. "$root/tests/tap.sh"

versions='0.1.0-early 7fc42cb
0.1.0 004bae5
0.2.0 772df28
0.5.0 f9fd53c
0.7.1 6e8039e
0.8.0 c6c3368
0.9.0 105aa43'

# Versions up to 0.9 need OpenBLAS. Where it is not installed, Debian's packages are unpacked beside them, so that nothing of the
# system changes.
find_openblas() {
    ! pkg-config --exists openblas || return 0
    mkdir -p "$old/blas" && cd "$old/blas" || return 1
    [ -d usr ] || { apt-get -qq download libopenblas-pthread-dev libopenblas0-pthread && for p in *.deb; do dpkg -x "$p" .; done; } >&2
    PKG_CONFIG_PATH=$(dirname "$old"/blas/usr/lib/*/*/pkgconfig/openblas.pc)
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
    sed -i "s#=/usr/#=$old/blas/usr/#" "$PKG_CONFIG_PATH/openblas.pc"
    cd "$work" && pkg-config --exists openblas
}

build_old() { # version commit
    [ ! -x "$old/$1/src/build/rws" ] || return 0
    mkdir -p "$old/$1/src" && git -C "$root" archive "$2" | tar x -C "$old/$1/src" || return 1
    (cd "$old/$1/src" && { [ -f build/build.ninja ] || meson setup build; } && ninja -C build rws) >"$old/$1/log" 2>&1
}

build_more() { # version: the example and the Python package, where there are any
    (cd "$old/$1/src" && ninja -C build $(ninja -C build -t targets all |
        sed -nE 's#^(examples/burglary\.so|python/rws/[^/:]*):.*#\1#p')) >>"$old/$1/log" 2>&1
}

python=python3 # Debian's may have numpy where the first in the path has not
/usr/bin/python3 -c 'import numpy' 2>/dev/null && python=/usr/bin/python3
small_python='
import sys, numpy as np, rws
class Mixture(rws.Model):
    def setup(self, s):
        s.field("x", 1)
        self.prior = s.param("theta.prior", 3)
        self.net = s.mlp("phi.net", [1, 4, 3])
    def guide(self, p):
        p.categorical("z", self.net(p.observed("x")))
    def model(self, p):
        z = p.categorical("z", self.prior)
        p.report("cluster", z)
        p.normal("x", 4 * z, 1)
x = np.linspace(-2, 10, 40).astype("float32")
if sys.argv[1] == "train":
    rws.train(Mixture(), data={"x": x}, method="ww", particles=4, batch=8, iterations=20, eval_every=10, out=sys.argv[2])
elif sys.argv[1] == "infer":
    assert len(rws.open(sys.argv[2], Mixture()).infer(x=3.9)) > 0
else:
    rws.resume(sys.argv[2], Mixture(), data={"x": x}, iterations=40)
'
blocks='--set images=blocks --set canvas=12 --set glimpse=6 --set what=4 --set hidden=16'
noise='--set data=noise --set pixels=20 --set layers=6,4'

make_runs() { # version
    old_rws=$old/$1/src/build/rws runs=$old/$1/runs
    [ ! -d "$runs" ] || return 0
    mkdir "$runs" && cd "$runs" || return 1
    for model in gmm pcfg sbn air burglary; do
        case $model in sbn) more=$noise ;; air) more=$blocks ;; *) more= ;; esac
        name=$model
        [ $model != burglary ] || name=$old/$1/src/build/examples/burglary.so
        # shellcheck disable=SC2086 # lists of words
        "$old_rws" train "$name" -k 4 -b 8 -n 20 --eval-every 10 $more --out $model >$model.log 2>&1 || rm -rf ./$model
    done
    [ ! -d "$old/$1/src/build/python" ] || PYTHONPATH=$old/$1/src/build/python $python -c "$small_python" train python >python.log 2>&1
    cd "$work" || return 1
}

opened=0 refused=0
outcome() { # version model action command…: opens, or is refused by a message of one line with the version
    wrote=${1%-early} about="$1 $2: $3"
    shift 3
    "$@" >out 2>err
    status=$?
    if [ $status = 0 ]; then opened=$((opened + 1)) ended=opens
    else
        ended="is refused: $(tail -n 1 err | cut -c 1-300)"
        grep -qF "ersion $wrote of rws" err
        status=$?
        [ $status != 0 ] || refused=$((refused + 1))
    fi
    report $status "$about $ended"
}

try_run() { # version model
    rm -rf run && cp -r "$old/$1/runs/$2" run
    if [ "$2" = python ]; then
        for action in infer resume; do
            outcome "$1" "$2" $action env PYTHONPATH="$build/python" $python -c "$small_python" $action run
        done
        return
    fi
    named=
    if [ "$2" = burglary ]; then
        "$rws" eval run >out 2>err
        [ $? = 2 ] && grep -qE -e '--model|ersion 0.1.0 of rws' err
        report $? "$1 $2: not named, it is refused"
        named="--model $build/examples/burglary.so --changed"
    fi
    asked='--test 0'
    # shellcheck disable=SC2086 # lists of words
    {
        outcome "$1" "$2" runs "$rws" runs run
        outcome "$1" "$2" eval "$rws" eval run $named
        outcome "$1" "$2" infer "$rws" infer run $asked $named
        outcome "$1" "$2" resume "$rws" train --out run --resume -n 40 $named
        outcome "$1" "$2" "runs, resumed," "$rws" runs run
    }
}

find_openblas
report $? "OpenBLAS is here"
echo "$versions" >list
while read -r version commit; do
    case "$wanted" in "  " | *" $version "*) ;; *) continue ;; esac
    build_old "$version" "$commit"
    report $? "$version is built"
    build_more "$version"
    make_runs "$version"
    before=$failed opened=0 refused=0
    for model in gmm pcfg sbn air burglary python; do
        [ ! -d "$old/$version/runs/$model" ] || try_run "$version" $model
    done
    printf '# %-12s %3d opened, %3d refused with the version, %3d failures; models: %s\n' "$version" $opened $refused \
        $((failed - before)) "$(cd "$old/$version/runs" && echo */ | tr -d /)" >>table
done <list
cat table
echo "# $n tries, $failed failures"
finish
