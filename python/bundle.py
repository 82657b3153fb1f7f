"""Prints the shared libraries that a wheel brings along: soname, path and, where it is known, the file of the licence.

    bundle.py CC PKG_CONFIG_NAME...

Everything that the named libraries need, themselves included, but the C library, which every system has. The compiler says
where a library lies, so that the libraries of another system's folder are found too (CC="gcc --sysroot=FOLDER")."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SYSTEM = ("ld-linux", "libc.so", "libm.so", "libmvec.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so", "libutil.so", "libnsl.so")

cc, names = sys.argv[1].split(), sys.argv[2:]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(path):
    listed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path))
    return [soname for soname in listed if not soname.startswith(SYSTEM)]


def licence(path):
    """Debian keeps the licence of a package in usr/share/doc. One that is built by scripts/wheels has put it there too."""
    root, file = path.split("/usr/lib/")[0], os.path.basename(path)
    owner = shutil.which("dpkg") and output("sh", "-c", 'dpkg --root="$1/" -S "*/$2" || true', "sh", root, file)
    package = owner.split(":")[0] if owner else file.split(".so")[0]
    return "".join(glob.glob(f"{root}/usr/share/doc/{package}/copyright")[:1])


with tempfile.TemporaryDirectory() as folder:
    source, program = os.path.join(folder, "all.c"), os.path.join(folder, "all")
    with open(source, "w") as f:
        f.write("int main(void) { return 0; }\n")
    subprocess.run([*cc, source, "-o", program, "-Wl,--no-as-needed", *output("pkg-config", "--libs", *names).split()], check=True)
    waiting, found = needed(program), set()
while waiting:
    soname = waiting.pop(0)
    if soname in found:
        continue
    found.add(soname)
    path = os.path.realpath(output(*cc, "-print-file-name=" + soname).strip())
    if not os.path.exists(path):
        sys.exit(f"{soname} is not found.")
    print(soname, path, licence(path))
    waiting += needed(path)
