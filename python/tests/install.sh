#!/bin/sh
# The package as a newcomer installs it: the commands of docs/python.md, pasted, and its first example, pasted; then a wheel in
# an environment without a compiler.
#
#     python/tests/install.sh [PYTHON]      the Python that stands for python3
#
# Everything is written to a folder that is removed at the end. pip must reach its registry.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
python=$(command -v "${1:-python3}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/home" "$folder/wheels"
ln -s "$python" "$folder/bin/python3"

# block LANGUAGE: the first block of this language in the document
block() { awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } /^```/ { if (on) exit } on' "$root/docs/python.md"; }

block sh >"$folder/install.sh"
block python >"$folder/first.py"
grep -q 'pip install' "$folder/install.sh" && grep -q 'rws.train' "$folder/first.py"

# trained NAME: what the example printed ends with a posterior
trained() {
    tail -n 3 "$folder/$1"
    grep -q "Answer({'cluster': 1.0}, posterior=0.99" "$folder/$1" || { echo "install: $1: the example gave no posterior." >&2; exit 1; }
}

echo "== docs/python.md: the installation, then the first example"
cd "$root"
{ echo 'set -e'; cat "$folder/install.sh"; echo "cd \"$folder\" && python first.py >first.out"; } >"$folder/all.sh"
HOME="$folder/home" PATH="$folder/bin:$PATH" sh "$folder/all.sh"
trained first.out

echo "== a wheel, in an environment without a compiler"
"$folder/bin/python3" -m venv "$folder/builder"
"$folder/builder/bin/pip" wheel -q --no-deps -w "$folder/wheels" "$root"
ls -l "$folder/wheels"
"$folder/bin/python3" -m venv "$folder/clean"
cd "$folder"
clean="env -i HOME=$folder/home LANG=C.UTF-8 PATH=$folder/clean/bin"
if $clean sh -c 'command -v cc gcc meson ninja' 2>/dev/null; then exit 1; fi
env -u CC "$folder/clean/bin/pip" install -q "$folder/wheels"/*.whl
$clean python first.py >wheel.out
trained wheel.out
$clean python -m rws list | head -n 3
$clean rws --version
# letters come from the fonts of the wheel alone, as on a machine without fonts, where every letter would be the same box
fonts=$(dirname "$("$folder/clean/bin/python" -c 'import rws; print(rws.__file__)')")/fonts
sed '/<include/d' "$fonts/fonts.conf" >"$fonts/only.conf"
$clean FONTCONFIG_FILE="$fonts/only.conf" python - <<'END'
import rws
a, b = (rws.tree(f"(S {letter})")._repr_png_() for letter in "AB")
assert a[:4] == b"\x89PNG" and a != b
END
$clean python - <<'END'
import subprocess, sys, time, urllib.request
import rws
server = subprocess.Popen([rws.program(), "serve", ".", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    words = server.stdout.readline().split()
    address = next(w for w in words if w.startswith("http://")).rstrip(".,;)")
    page = urllib.request.urlopen(address, timeout=10).read()
    assert b"<html" in page.lower(), page[:200]
    print(f"rws serve answers with a page of {len(page)} bytes")
finally:
    server.terminate()
    server.wait()
END
echo "ok"
