#!/bin/sh
# test_headers.sh VERSION PROGRAM HEADER... - every public header compiles alone, as C11 and as C++17, without a warning
# by any compiler that is here; header, build and program name the same version.
set -u
version=$1 rws=$(realpath "$2")
shift 2
for header; do set -- "$@" "$(realpath "$header")" && shift; done
. "$(dirname "$0")/../tap.sh"

n_compilers=0
compile() { # compiler language standard
    command -v "$1" >/dev/null || return 0
    n_compilers=$((n_compilers + 1))
    for header in $headers; do
        printf '#include "%s"\n#include "%s"\nint main(void) { return 0; }\n' "$header" "$header" >alone
        "$1" -x "$2" -std="$3" -Wall -Wextra -pedantic -Werror -I "$(dirname "$header")" -c alone -o alone.o >out 2>err
        report $? "$(basename "$header") as $3 by $1"
    done
}

headers=$*
for compiler in gcc clang; do compile $compiler c c11; done
for compiler in g++ clang++; do compile $compiler c++ c++17; done
[ $n_compilers -gt 0 ] || { compile cc c c11 && compile c++ c++ c++17; }
[ $n_compilers -gt 0 ]
report $? "there is a compiler"

# ---- the version

{
    echo "#include \"$1\""
    echo 'is RWS_VERSION_MAJOR.RWS_VERSION_MINOR.RWS_VERSION_PATCH RWS_VERSION_STRING'
} >version.c
${CC:-cc} -E -P -I "$(dirname "$1")" version.c | sed -n 's/ *\. */./g; s/^is //p' >out
[ "$(cat out)" = "$version \"$version\"" ]
report $? "the header's version is the build's, $version"
run --version
[ "$(cat out)" = "rws $version" ]
report $? "and the program's"

finish
