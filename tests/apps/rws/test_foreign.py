#!/usr/bin/env python3
"""test_foreign.py PROGRAM - a run's folder from elsewhere that is made to delete or change a file, or to take for ever.

Every command that opens a store refuses it with a message and in time, the server says what is wrong and ends at once, and no
file beside the store is made, changed or removed. What a killed writer of our own left can be read and continued. Prints TAP."""
import hashlib, json, os, pathlib, shutil, signal, socket, sqlite3, struct, subprocess, sys, tempfile, time, urllib.request

rws = os.path.abspath(sys.argv[1])
SECONDS = 60
MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
ENDLESS = "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)"
n = failures = 0


def report(good, name, note=""):
    global n, failures
    n += 1
    failures += not good
    print(f"{'' if good else 'not '}ok {n} - {name}", flush=True)
    if not good and note: print("# " + note.strip().replace("\n", "\n# "))


def leave_journal(store, names=b""):
    """The journal of a transaction that was not finished, as SQLite writes it; with `names` it ends with a super-journal."""
    page = struct.unpack(">H", store.read_bytes()[16:18])[0]
    journal = (MAGIC + struct.pack(">IIIII", 0, 1, store.stat().st_size // page, 512, page)).ljust(512, b"\0")
    if names:
        total = sum(byte - 256 if byte > 127 else byte for byte in names) % 2**32
        journal += struct.pack(">I", 2**30 // page + 1) + names + struct.pack(">II", len(names), total) + MAGIC
    pathlib.Path(f"{store}-journal").write_bytes(journal)


def change(sql):
    def make(store):
        db = sqlite3.connect(store)
        db.executescript(sql)
        db.close()
    return make


def name_victim(store):
    leave_journal(store, bytes(pathlib.Path("victim").resolve()))


def enlarge(store):
    """A journal with pages of 0 bytes, which SQLite takes for the store's own: it made the store 4 TB large."""
    header = (MAGIC + struct.pack(">IIIII", 0, 0, 2**30, 512, 0)).ljust(512, b"\0")
    pathlib.Path(f"{store}-journal").write_bytes(header + bytes(600))


HOSTILE = {
    "a journal with pages of 0 bytes": (enlarge, "had other pages"),
    "a journal that names a file": (name_victim, "names another file"),
    "a view without end": (change(f"ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS SELECT * FROM r WHERE {ENDLESS} > 0"),
                           "not a store of runs"),
    "a trigger without end": (change(f"CREATE TRIGGER t BEFORE UPDATE ON runs BEGIN SELECT {ENDLESS}; END;"
                                     f"CREATE TRIGGER u BEFORE DELETE ON metrics BEGIN SELECT {ENDLESS}; END"),
                              "not a store of runs"),
    "a write-ahead log": (change("PRAGMA journal_mode = WAL"), "write-ahead log"),
}
COMMANDS = [["runs", "bad"], ["export", "bad"], ["plot", "p_error", "bad", "-o", "x.svg"], ["eval", "bad"],
            ["train", "gmm", "--out", "bad", "--resume", "-n", "60"]]


def contents():
    return {str(p): hashlib.md5(p.read_bytes()).hexdigest() for p in sorted(pathlib.Path(".").rglob("*")) if p.is_file()}


def prepare(make):
    shutil.rmtree("bad", ignore_errors=True)
    shutil.copytree("good", "bad")
    make(pathlib.Path("bad/metrics.sqlite"))
    return contents()


def run(command):
    """(status, stderr); status -1: the command did not end."""
    child = subprocess.Popen([rws] + command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             start_new_session=True)
    try: return child.wait(SECONDS), child.stderr.read()
    except subprocess.TimeoutExpired: pass
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return -1, "it did not end"


def check_commands(name, make, words):
    for command in COMMANDS:
        before = prepare(make)
        status, err = run(command)
        # eval needs only the checkpoint; it says what is wrong with the store
        good = status == (0 if command[0] == "eval" else 2) and words in err and contents() == before
        report(good, f"{name}: {command[0]}", f"status {status}: {err}")


def check_server(name, make, words):
    before = prepare(make)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([rws, "serve", "bad", "--port", str(port)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True)
    answer, until = "", time.time() + SECONDS
    while words not in answer and time.time() < until:
        time.sleep(0.1)
        try: answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs", timeout=5).read().decode()
        except OSError: pass
    server.terminate()
    try: ended = server.wait(10) == 0
    except subprocess.TimeoutExpired: ended = False
    try: os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError: pass
    report(words in answer and ended and contents() == before, f"{name}: serve", f"ended: {ended}; {answer[:500]}")


def check_links():
    """Training continues in files of the folder only: what a link in their place leads to stays as it is."""
    for name in ("config.json", "checkpoint.safetensors", "checkpoint.previous.safetensors", "metrics.sqlite"):
        def lead_away(store, name=name):
            shutil.move(store.parent / name, "target")
            (store.parent / name).symlink_to(pathlib.Path("target").resolve())
        before = prepare(lead_away)
        status, err = run(COMMANDS[-1])
        report(status == 2 and "is a link" in err and contents() == before, f"{name} is a link: train", f"status {status}: {err}")
    os.unlink("target")
    small = ["-b", "4", "-k", "2", "--eval-every", "2", "--eval-data", "2", "--out", "air"]
    blocks = [w for s in ("images=blocks", "canvas=12", "glimpse=6", "what=4", "hidden=16") for w in ("--set", s)]
    status, err = run(["train", "air", "-n", "2"] + small + blocks)
    report(status == 0, "a run with pictures is trained", err)
    os.symlink(os.path.realpath("victim"), "air/pictures/00000004.png")
    status, err = run(["train", "air", "-n", "4", "--out", "air", "--resume"])
    report(status == 0 and "link" in err and pathlib.Path("victim").read_text() == "mine", "a picture is a link: train", err)


def check_waiting():
    """A pipe that config.json names is not waited for."""
    os.mkfifo("pipe")
    status, err = run(["train", "pcfg", "-k", "2", "-b", "4", "-n", "2", "--out", "grammar"])
    report(status == 0, "a grammar is trained", err)
    os.unlink("grammar/metrics.sqlite")
    path = pathlib.Path("grammar/config.json")
    path.write_text(path.read_text().replace('"astronomers"', json.dumps(os.path.realpath("pipe"))))
    for command in ["eval", "grammar"], ["train", "--out", "grammar", "--resume", "-n", "4"]:
        status, err = run(command)
        report(status == 2 and "not a regular file" in err, f"the grammar is a pipe: {command[0]}", f"status {status}: {err}")
    os.unlink("pipe")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("victim").write_text("mine")
        trained = subprocess.run([rws, "train", "gmm", "-k", "2", "-n", "40", "--eval-every", "20", "--out", "good"],
                                 capture_output=True)
        report(trained.returncode == 0, "a run is trained")
        for name, (make, words) in HOSTILE.items():
            check_commands(name, make, words)
            check_server(name, make, words)
        for command in COMMANDS:
            before = prepare(leave_journal)
            status, err = run(command)
            kept = command[0] == "train" or {p for p in contents() if p != "x.svg"} == {p for p in before if p != "x.svg"}
            report(status == 0 and not err and kept, f"what a killed writer left: {command[0]}", f"status {status}: {err}")
        report(not os.path.exists("bad/metrics.sqlite-journal"), "the next writer removes it")
        check_links()
        check_waiting()
        os.chdir("/")
    print(f"1..{n}")
    return failures > 0


sys.exit(main())
