#!/bin/sh
# test_install.sh BUILD SOURCE HEADER... - what is installed is enough: programs and models are built against it alone,
# with pkg-config, as C and as C++, and run.
set -u
build=$(realpath "$1") source=$(realpath "$2")
shift 2
for header; do set -- "$@" "$(basename "$header")" && shift; done
. "$(dirname "$0")/../tap.sh"
CC=${CC:-cc} CXX=${CXX:-c++}

root=$work/root
meson install -C "$build" --no-rebuild --quiet --destdir "$root" >out 2>err
report $? "meson install"
prefix=$root$(sed -n 's/^prefix=//p' "$build/meson-private/rws.pc")
library=$(dirname "$(find "$prefix" -name librws.so ! -path "*/glibc-hwcaps/*")")
rws=$prefix/bin/rws
for header; do
    [ -f "$prefix/include/$header" ]
    report $? "$header is installed"
done
for file in bin/rws share/man/man1/rws.1 share/bash-completion/completions/rws share/zsh/site-functions/_rws \
    share/fish/vendor_completions.d/rws.fish; do
    [ -s "$prefix/$file" ]
    report $? "$file is installed"
done
for model in coal dp expressions gp hmm lda rules slds tracking; do
    [ -f "$prefix/lib/rws/examples/$model.so" ]
    report $? "the gallery's $model.so is installed"
done
[ -x "$prefix/lib/rws/examples/lda.sh" ]
report $? "with the script that fetches a corpus"
[ -z "$(find "$root" -name '*test*' -o -name '*.so' ! -name 'librws.so*' ! -name 'librws-*.so' ! -path '*/rws/examples/*')" ]
report $? "no test is"

# Installed for any x86-64: the program takes the build for the highest level of the processor, and lower ones if features are
# hidden from the loader; their metrics agree.
if [ -d "$library/glibc-hwcaps" ]; then
    for one in x86-64-v4:-ERMS x86-64-v3:-AVX512F rws/librws-program.so:-AVX512F,-AVX2; do
        level=${one%:*} mask=glibc.cpu.hwcaps=${one#*:}
        [ "$level" != x86-64-v4 ] || grep -qw avx512vl /proc/cpuinfo || continue
        [ "$level" != x86-64-v3 ] || grep -qw avx2 /proc/cpuinfo || continue
        GLIBC_TUNABLES=$mask LD_TRACE_LOADED_OBJECTS=1 "$rws" | grep -q "librws-program.so.*$level"
        report $? "the program takes $level"
        GLIBC_TUNABLES=$mask "$rws" train air -k 4 -b 8 --eval-data 20 --pictures 0 --set images=blocks -n 3 --json -t 2 >out 2>err &&
            sed -n 's/.*"log_evidence":\(-[0-9]*\)[.].*/\1/p' out >evidence.new && { [ -f evidence ] || cp evidence.new evidence; } &&
            [ -s evidence ] && cmp evidence evidence.new
        report $? "and trains to the same metrics"
    done
fi

# Everything below sees the installed files and none of the tree's.
PKG_CONFIG_PATH=$library/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
cp "$source"/tests/source/linked.c "$source"/tests/toy.c "$source"/tests/source/coin.cpp "$source"/examples/*.c .
cp linked.c linked.cpp
cp embed.c embed.cpp
strict='-Wall -Wextra -pedantic -Werror'
c="$CC -std=c11 $strict" cxx="$CXX -std=c++17 $strict"

pkg-config --modversion rws >out 2>err && [ "rws $(cat out)" = "$("$rws" --version)" ]
report $? "rws.pc has the program's version"

builds() { # name compiler arguments…: compiles, with flags of pkg-config in the arguments
    what=$1
    shift
    "$@" >out 2>err
    report $? "$what is built"
}

builds "a program" $c linked.c -o linked $(pkg-config --cflags --libs rws)
./linked >out 2>err && ldd linked | grep -q 'librws\.so\.[0-9]*\.[0-9]* '
report $? "and runs with the library of its minor version"
if command -v cmake >/dev/null; then
    mkdir cmade && cat >cmade/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(linked C)
find_package(rws 0.9 REQUIRED)
add_executable(linked ../linked.c)
target_link_libraries(linked rws::rws)
END
    cmake -S cmade -B cmade/build -DCMAKE_PREFIX_PATH="$prefix" >out 2>err && cmake --build cmade/build >out 2>err
    report $? "a program is built by CMake"
    cmade/build/linked >out 2>err
    report $? "and runs"
    sed -i 's/rws 0.9/rws 0.8/' cmade/CMakeLists.txt
    ! cmake -S cmade -B cmade/older -DCMAKE_PREFIX_PATH="$prefix" >out 2>err
    report $? "another version is not accepted"
fi
builds "a program in C++" $cxx linked.cpp -o linked++ $(pkg-config --cflags --libs rws)
./linked++ >out 2>err
report $? "and runs"
[ "$(pkg-config --cflags rws | wc -w)" -le 1 ]
report $? "pkg-config --cflags has no path but that of rws.h"

# The static library with the shared ones that it needs.
builds "a program with librws.a" $c linked.c -o linked_static $(pkg-config --cflags rws) "$library/librws.a" \
    $(sed -n 's/^Libs.private: *//p' "$library/pkgconfig/rws.pc")
./linked_static >out 2>err && ! ldd linked_static | grep -q librws
report $? "and runs without librws.so"

# The example, as it is and as C++: two threads get the same answer.
for language in c cpp; do
    case $language in c) compiler=$c ;; *) compiler=$cxx ;; esac
    builds "embed.$language" $compiler embed.$language -o embed_$language $(pkg-config --cflags --libs rws) -pthread
    ./embed_$language >out 2>err && [ "$(wc -l <out)" = 2 ] && [ "$(uniq out | wc -l)" = 1 ]
    report $? "and gives both threads one answer"
    mv out answer_$language
done
cmp -s answer_c answer_cpp
report $? "the same in both languages"

builds "a model" $c -shared -fPIC toy.c -o toy.so $(pkg-config --cflags rws)
gives 0 "and trained" train ./toy.so -n 20 --out toy
builds "a model that is linked with the library" $c -shared -fPIC -fvisibility=hidden toy.c -o toy_linked.so \
    $(pkg-config --cflags --libs rws)
gives 0 "and trained" train ./toy_linked.so -n 20 --out toy_linked
# The checkpoints differ in the fingerprint of the object.
for one in toy toy_linked; do "$rws" eval $one --params 2>err | grep -v '^seconds' >params_$one; done
[ -s params_toy ] && cmp params_toy params_toy_linked
report $? "the same"
builds "the example" $c -shared -fPIC burglary.c -o burglary.so $(pkg-config --cflags rws) -lm
gives 0 "and trained" train ./burglary.so -n 20
# The gallery as it is installed: a command of its documents, and the sweep, whose models are found without an option.
gives 0 "an installed model is trained" train "$prefix/lib/rws/examples/hmm.so" --method ww -n 3 --eval-data 20 --json
grep -q '"truth":-[0-9]' out
report $? "and compared with the truth"
gives 0 "the installed gallery" reproduce gallery --sweep
[ "$(grep -c "^model  *$prefix/lib/rws/examples/[a-z]*\.so$" out)" -ge 8 ]
report $? "is found beside the program"
builds "a model in C++" $cxx -shared -fPIC coin.cpp -o coin.so $(pkg-config --cflags rws)
gives 0 "and trained" train ./coin.so -n 20

finish
