#!/bin/sh
# lda.sh FILE.csv - the manual pages of Linux as a table for lda.c: a row for each page, and how often each of 400 words is in it.
# Debian's package manpages-dev is fetched by apt, which checks its signature; it is not installed.
set -eu
out=$(realpath "${1:?usage: lda.sh FILE.csv}")
for program in apt-get dpkg-deb zcat awk; do
    command -v $program >/dev/null || { echo "lda.sh: $program is missing: run this on Debian or Ubuntu." >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 755 . # apt fetches as a user of its own
apt-get download manpages-dev 2>log >&2 || { cat log >&2; echo 'lda.sh: apt could not fetch the package; try `apt update`.' >&2; exit 1; }
dpkg-deb -x manpages-dev_*.deb .

# Text lines without macros and fonts, in lower case, one page after the other. A page that only names another one is left out.
find usr/share/man -name '*.gz' -type f | LC_ALL=C sort | while read -r page; do
    zcat "$page" | grep -q '^\.so ' && continue
    echo "page $page"
    zcat "$page" | LC_ALL=C sed '/^\.SH SEE ALSO/,$d; /^[.'\'']/d; s/\\f.//g; s/\\[(&-][a-z]*/ /g' | LC_ALL=C tr 'A-Z' 'a-z'
done >text

# The 400 words that most pages have, without words of three letters or fewer and words in more than an eighth of the pages.
LC_ALL=C awk '
    /^page / { page++; next }
    { gsub(/[^a-z]+/, " "); n = split($0, word, " ")
      for (i = 1; i <= n; i++) if (length(word[i]) > 3) { if (!((page, word[i]) in count)) pages[word[i]]++; count[page, word[i]]++ } }
    END {
        for (w in pages) if (pages[w] <= page / 8) print pages[w], w | "sort -k1,1nr -k2 | head -n 400 >chosen"
        close("sort -k1,1nr -k2 | head -n 400 >chosen")
        while ((getline line <"chosen") > 0) { split(line, part, " "); words[++m] = part[2] }
        printf "n"; for (j = 1; j <= m; j++) printf ",%s", words[j]; print ""
        for (p = 1; p <= page; p++) {
            n = 0; row = ""
            for (j = 1; j <= m; j++) { c = count[p, words[j]] + 0; n += c; row = row "," c }
            if (n >= 10) print n row
        }
    }' text >table
cp table "$out"
echo "$(($(wc -l <"$out") - 1)) pages are in $out"
