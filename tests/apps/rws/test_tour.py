"""test_tour.py PROGRAM README - the tour of the README on a terminal of 80 x 24: no line is wider, and its commands work.

Prints TAP. The commands are those of the README, with fewer iterations and without the page, and some that list things.
"""
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

rws, readme = (os.path.abspath(p) for p in sys.argv[1:3])
count = failed = 0


def report(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in str(detail).splitlines()[:8] if not good else []:
        print(f"# {line}")


def on_terminal(command):
    """The exit status, and what a terminal is sent."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(["sh", "-c", command], stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
                               env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the last writer has closed it
            break
        if not part:
            break
        text += part
    os.close(leader)
    return process.wait(), text.decode()


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def tour():
    text = open(readme).read()
    block = text[text.index("## A tour of five commands"):]
    lines = [line[4:].split("  #")[0].strip() for line in block.split("\n## ")[0].splitlines() if line.startswith("    ")]
    assert len(lines) == 6, lines
    return [re.sub(r"iterations( |\W)20000", r"iterations\g<1>400", line) for line in lines if " serve " not in line]


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.makedirs("build")
    os.symlink(rws, "build/rws")
    more = ["runs my", "runs my --compare", "list", "list ww", "eval run", "bench gmm -n 10 --repeat 2", "sweep my.sweep --status",
            "check gmm", "infer run 42 --choices --top 3", "sample run --count 3", "train air --set images=blocks -n 2 -k 2",
            "train gmm -n 1000 --eval-every 30", "calibrate run --simulations 50",
            "--help", "train --help", "infer --help", "plot --help"]
    for command in tour() + ["build/rws " + m for m in more]:
        status, text = on_terminal(command)
        shown = [part for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).split("\n") for part in line.split("\r")]
        wide = [f"{width(line)}: {line}" for line in shown if width(line) > 80]
        report(status == 0 and not wide, command, f"status {status}\n" + "\n".join(wide or shown[-4:]))
        if command.startswith("build/rws train gmm --method"):
            report("Next: rws infer run" in text, "the end of training says what to do next", text[-300:])
        if "--eval-every 30" in command:
            report(text.count("iteration  ") >= 2, "headings come again with every screen")
print(f"1..{count}")
sys.exit(failed > 0)
