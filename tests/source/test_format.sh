#!/bin/sh
# test_format.sh FOLDER... - checks that the C files are as `make format` leaves them. Skipped without clang-format 14: other
# versions format differently.
set -u
for tool in clang-format-14 clang-format; do
    command -v $tool >/dev/null && $tool --version | grep -q 'version 14\.' && break
    tool=
done
[ -n "$tool" ] || {
    echo "skipped: there is no clang-format 14 here (scripts/setup extra installs it)."
    exit 77
}
find "$@" -name '*.[ch]' -o -name '*.cpp' | xargs $tool --dry-run -Werror
