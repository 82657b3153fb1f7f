"""Prints the shared libraries that a wheel brings along: soname and path, one on each line.

    bundle.py CC PKG_CONFIG_NAME...

Everything that the named libraries need, themselves included, but the C library, which every system has."""

import os
import subprocess
import sys
import tempfile

SYSTEM = ("ld-linux", "linux-vdso", "libc.so", "libm.so", "libmvec.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so",
          "libutil.so", "libnsl.so")

cc, names = sys.argv[1].split(), sys.argv[2:]
flags = subprocess.run(["pkg-config", "--libs", *names], check=True, capture_output=True, text=True).stdout.split()
with tempfile.TemporaryDirectory() as folder:
    source, program = os.path.join(folder, "all.c"), os.path.join(folder, "all")
    with open(source, "w") as f:
        f.write("int main(void) { return 0; }\n")
    subprocess.run([*cc, source, "-o", program, "-Wl,--no-as-needed", *flags], check=True)
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
for line in listed.splitlines():
    soname, arrow, rest = line.strip().partition(" => ")
    path = rest.split(" (")[0]
    if not arrow or soname.startswith(SYSTEM):
        continue
    if not os.path.exists(path):
        sys.exit(f"{soname} is not found.")
    print(soname, os.path.realpath(path))
