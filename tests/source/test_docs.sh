#!/bin/sh
# test_docs.sh ROOT - links of the documents lead to files, and names of functions and files in ARCHITECTURE.md exist.
set -u
root=$(realpath "${1:?usage: test_docs.sh ROOT}")
. "$(dirname "$0")/../tap.sh"

: >err
for document in README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs/*.md docs/gallery/*.md docs/reproduction/README.md bench/README.md; do
    for path in "$root"/$document; do
        : >out
        grep -oE '\]\([^)#]+' "$path" | sed 's/^](//' | grep -v '^https*:' | while read -r link; do
            [ -e "$(dirname "$path")/$link" ] || echo "$link"
        done >out
        [ ! -s out ]
        report $? "the links of ${path#"$root"/}"
    done
done

# Every word of the code, once.
find "$root/include" "$root/lib" "$root/models" "$root/apps" "$root/tests" -name '*.[ch]' -exec grep -ohE 'rws_[a-z0-9_]+' {} + | sort -u >words
grep -oE '\brws_[a-z0-9_]*[a-z0-9]\b' "$root/ARCHITECTURE.md" | sort -u | comm -23 - words >out
[ -s words ] && [ ! -s out ]
report $? "names in ARCHITECTURE.md are names in the code"

folders=$(cd "$root" && echo lib/* apps/* models | sed 's#[a-z]*/##g; s/ /|/g')
grep -oE "\b($folders|lib/[a-z]+|apps/[a-z]+|tests|docs|include)/[a-z0-9_/]+\.[a-zS0-9]+(\.in)?\b" "$root/ARCHITECTURE.md" | sort -u |
    while read -r file; do
        [ -e "$root/$file" ] || [ -e "$root/lib/$file" ] || [ -e "$root/apps/$file" ] || [ -e "$root/python/$file" ] || echo "$file"
    done >out
[ ! -s out ]
report $? "files in ARCHITECTURE.md are files of the tree"
finish
