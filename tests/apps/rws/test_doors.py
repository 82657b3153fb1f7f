"""test_doors.py PROGRAM DOOR.so OTHER.so KEPT.so KEPT2.so NEEDY.so LIBRARY - no file of a run's folder makes a program run
code: every door (command, HTTP, Python) against every way in which a file can name a shared object, and the ways in which users name their own.

The objects write their number to $RWS_DOOR_MARK when they are loaded; the loader keeps KEPT.so and KEPT2.so, and NEEDY.so needs
LIBRARY in its own folder. Prints TAP, and the table of doors as comments.
"""
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zlib

RWS, DOOR, OTHER, KEPT, KEPT2, NEEDY, LIBRARY = (os.path.realpath(path) for path in sys.argv[1:8])
WORK = tempfile.mkdtemp(prefix="rws-doors-")
MARK = os.path.join(WORK, "mark")
PARTS = ("config", "checkpoint", "store")
FILES = {"config": "config.json", "checkpoint": "checkpoint.safetensors", "store": "metrics.sqlite"}
SMALL = ("-k", "2", "-b", "4", "-n", "4", "--eval-data", "3")
HERE = os.path.join(WORK, "here")  # where commands are started
count = failed = 0
table = {}  # door -> way -> [tried, ran]


def report(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good and detail != "":
        print(f"# {str(detail)[:900]}".replace("\n", "\n# "), flush=True)


def environment(state):
    return dict(os.environ, XDG_STATE_HOME=os.path.join(WORK, state), RWS_DOOR_MARK=MARK, OPENBLAS_NUM_THREADS="1")


def rws(*arguments, state="user"):
    return subprocess.run([RWS, *arguments], capture_output=True, text=True, cwd=HERE, env=environment(state), timeout=120)


def which_ran():
    """The numbers of the objects that were loaded since the last call."""
    if not os.path.exists(MARK):
        return []
    with open(MARK) as f:
        numbers = [int(line) for line in f]
    os.unlink(MARK)
    return numbers


def ran():
    """Whether an object was loaded since the last call."""
    return which_ran() != []


def entered(door, way):
    """Counts a try in the table; whether the stranger's code ran."""
    cell = table.setdefault(door, {}).setdefault(way, [0, 0])
    code = ran()
    cell[0] += 1
    cell[1] += code
    return code


# ---- folders of a stranger

def folder_of(parts, form, built_in, stranger, runs):
    """A run in whose files `parts` the stranger's object is the model, under a path of that form; the other files have gmm."""
    name = "-".join([*parts, form])
    folder = os.path.join(runs, name)
    os.makedirs(folder)
    path = {"absolute": os.path.join(WORK, "stranger.so"), "relative": "./near.so", "inside": f"../runs/{name}/in.so"}[form]
    if form == "inside":
        shutil.copy(DOOR, os.path.join(folder, "in.so"))
    for part in PARTS:
        shutil.copy(os.path.join(stranger if part in parts else built_in, FILES[part]), folder)
    if "config" in parts:
        config = json.load(open(os.path.join(folder, "config.json")))
        json.dump(dict(config, model=path), open(os.path.join(folder, "config.json"), "w"))
    if "store" in parts:
        store = sqlite3.connect(os.path.join(folder, "metrics.sqlite"))
        store.execute("UPDATE runs SET config = replace(config, ?, ?)", (os.path.join(WORK, "stranger.so"), path))
        store.commit()
        store.close()
    return folder


COMMANDS = {
    "eval": lambda f: ("eval", f),
    "infer": lambda f: ("infer", f, "--test", "0"),
    "sample": lambda f: ("sample", f),
    "bench --resume": lambda f: ("bench", "--out", f, "--resume", "--iterations", "1", "--repeat", "1"),
    "train --resume": lambda f: ("train", "--out", f, "--resume", "-n", "8"),
}
READERS = {
    "runs": lambda f: ("runs", f),
    "export": lambda f: ("export", f, "--out", os.path.join(WORK, "out.csv")),
    "plot": lambda f: ("plot", f, "--out", os.path.join(WORK, "out.svg")),
}


def test_commands(folders):
    for way, folder in folders.items():
        for door, arguments in COMMANDS.items():
            done = rws(*arguments(folder))
            code = entered(door, way)
            report(not code and done.returncode == 2 and done.stderr.count("\n") == 1, f"{door}, {way}: refused, nothing runs", done)
        for door, arguments in READERS.items():
            done = rws(*arguments(folder))
            report(not entered(door, way) and done.returncode in (0, 2), f"{door}, {way}: nothing runs", done)


class Server:
    def __init__(self, *arguments, state="user"):
        self.process = subprocess.Popen([RWS, "serve", "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=HERE, env=environment(state))
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline()).group(1))

    def ask(self, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET" if body is None else "POST", path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        got = answer.status, answer.read()
        connection.close()
        return got

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


def has_serve():
    return "built without" not in rws("serve", "--port", "0", "--model", "x", os.path.join(WORK, "nowhere")).stderr


def test_serve(folders):
    for way, folder in folders.items():
        server = Server(folder)
        try:
            runs = json.loads(server.ask("/api/runs")[1])["runs"]
            for run in runs:
                for door, route, body in (("serve GET ask", "ask", None), ("serve POST sample", "sample", {"n": 1}),
                                          ("serve POST infer", "infer", {"test": 0, "particles": 2})):
                    status, answer = server.ask(f"/api/runs/{run['id']}/{route}", body)
                    report(not entered(door, way) and status >= 400, f"{door}, {way}: refused, nothing runs", (status, answer))
        finally:
            server.stop()


PYTHON = """
import json, os, sys
import rws
for way, folder in json.load(sys.stdin).items():
    for door, call in (("rws.open", lambda: rws.open(folder)), ("rws.resume", lambda: rws.resume(folder, iterations=8, progress=False))):
        try:
            call()
            said = ""
        except rws.Error as e:
            said = str(e)
        mark = os.path.exists(os.environ["RWS_DOOR_MARK"])
        if mark:
            os.unlink(os.environ["RWS_DOOR_MARK"])
        print(json.dumps([door, way, mark, said]), flush=True)
"""


def python(program, *arguments, stdin="", state="user"):
    return subprocess.run([sys.executable, "-c", program, *arguments], input=stdin, capture_output=True, text=True, cwd=HERE,
                          env=environment(state), timeout=120)


def test_python(folders):
    done = python(PYTHON, stdin=json.dumps(folders))
    for line in done.stdout.splitlines():
        door, way, mark, said = json.loads(line)
        cell = table.setdefault(door, {}).setdefault(way, [0, 0])
        cell[0] += 1
        cell[1] += mark
        report(not mark and said != "", f"{door}, {way}: refused, nothing runs", said)
    report(done.returncode == 0 and len(done.stdout.splitlines()) == 2 * len(folders), "every folder was tried from Python", done.stderr)


def strangers():
    """The folders of the stranger, by way."""
    shutil.copy(DOOR, os.path.join(WORK, "stranger.so"))
    shutil.copy(DOOR, os.path.join(HERE, "near.so"))
    built_in, stranger = os.path.join(WORK, "a", "run"), os.path.join(WORK, "b", "run")
    for model, out in (("gmm", built_in), (os.path.join(WORK, "stranger.so"), stranger)):
        done = rws("train", model, *SMALL, "--out", out, state="stranger")
        if done.returncode:
            raise RuntimeError(done.stderr)
    ran()
    runs = os.path.join(WORK, "runs")
    return {f"{' + '.join(parts)}, {form}": folder_of(parts, form, built_in, stranger, runs)
            for n in (1, 2, 3) for parts in itertools.combinations(PARTS, n)
            for form in (("absolute", "relative", "inside") if "config" in parts else ("absolute",))}


# ---- what a user does with an object of their own

def succeeds(name, *arguments, code=True, **options):
    done = rws(*arguments, **options)
    loaded = ran()
    report(done.returncode == 0 and loaded == code, f"{name}: rws {' '.join(a.replace(WORK, '') for a in arguments)}", (done, loaded))
    return done


def refuses(name, words, *arguments, **options):
    done = rws(*arguments, **options)
    loaded = ran()
    report(done.returncode == 2 and not loaded and all(w in done.stderr for w in words),
           f"{name}: rws {' '.join(a.replace(WORK, '') for a in arguments)}", (done, loaded))


def test_quotes(folder):
    """A path of the stranger's does not leave the quotes of the command that a message offers."""
    path = os.path.join(folder, "config.json")
    os.unlink(os.path.join(folder, "metrics.sqlite"))  # which disagrees
    config = json.load(open(path))
    json.dump(dict(config, model="/nowhere/x'; touch owned; '.so"), open(path, "w"))
    done = rws("eval", folder)
    report(done.returncode == 2 and "--model 'PATH'" in done.stderr, "a quote in a path is not part of the command", done)


def test_user():
    mine = os.path.join(HERE, "mine.so")
    shutil.copy(DOOR, mine)
    succeeds("a new run", "train", "./mine.so", *SMALL, "--out", "run")
    known = os.path.join(WORK, "user", "rws", "objects")
    report(os.stat(known).st_mode & 0o777 == 0o600 and mine in open(known).read(), "the object is on the user's list", open(known).read())
    for arguments in (("eval", "run"), ("infer", "run", "--test", "0"), ("sample", "run"), ("train", "--out", "run", "--resume", "-n", "5")):
        succeeds("named before", *arguments)
    succeeds("named as MODEL", "train", "./mine.so", "--out", "run", "--resume", "-n", "6", state="empty1")
    digits = json.load(open(os.path.join(HERE, "run", "config.json")))["model_fingerprint"][:23]
    for door, arguments in COMMANDS.items():
        refuses("not named", ["run", mine, digits, f"rws eval 'run' --model '{mine}'"], *arguments("run"), state="empty2")
        succeeds("named by --model", *arguments("run"), "--model", "./mine.so", state=f"new-{door.split()[0]}")
    os.chmod(known, 0o620)
    refuses("a list that others may write is ignored", ["--model"], "eval", "run")
    os.chmod(known, 0o600)

    shutil.copy(mine, os.path.join(HERE, "keep.so"))
    os.unlink(mine)
    shutil.copy(OTHER, mine)
    refuses("a changed object is not the one that was named", ["--model"], "eval", "run")
    for door, arguments in COMMANDS.items():
        refuses("a changed object", ["mine.so", "has changed", "--changed"], *arguments("run"), "--model", "./mine.so")
    succeeds("a changed object is accepted", "eval", "run", "--model", "./mine.so", "--changed")
    succeeds("now that it was named, --changed is enough", "sample", "run", "--changed")
    refuses("--changed without a name", ["--model"], "eval", "run", "--changed", state="empty2")
    refuses("a path without a slash", ["path of a shared object"], "eval", "run", "--model", "mine.so")
    os.unlink(mine)
    shutil.copy(os.path.join(HERE, "keep.so"), mine)

    with open(os.path.join(HERE, "two.sweep"), "w") as f:
        f.write("model ./mine.so\nmethods ww\nparticles 2\nseeds 1-2\niterations 4\nbatch 4\neval-data 3\nfinal 5 3\n")
    succeeds("a sweep is listed", "sweep", "two.sweep", "--list", code=False, state="empty3")
    table.setdefault("sweep --list", {})["the sweep file"] = [1, 0]
    succeeds("a sweep is run", "sweep", "two.sweep", state="empty4")
    os.makedirs(os.path.join(WORK, "blocked"))
    open(os.path.join(WORK, "blocked", "rws"), "w").close()
    succeeds("a list that cannot be written is no failure", "eval", "run", "--model", "./mine.so", state="blocked")


def test_user_elsewhere():
    mine = os.path.join(HERE, "mine.so")
    if has_serve():
        for arguments, good in ((("run", "--model", "./mine.so"), True), (("run",), False)):
            server = Server(*arguments, state="empty5")
            try:
                run = json.loads(server.ask("/api/runs")[1])["runs"][0]["id"]
                status, answer = server.ask(f"/api/runs/{run}/sample", {"n": 1})
                report(ran() == good and (status == 200) == good, f"rws serve {' '.join(arguments)}: {status}", answer)
            finally:
                server.stop()
    if "PYTHONPATH" not in os.environ:
        return
    for call, good in (("rws.open('run', './mine.so').sample(1)", True), ("rws.open('run')", False),
                       ("rws.resume('run', './mine.so', iterations=9, progress=False)", True),
                       ("rws.resume('run', iterations=10, progress=False)", False)):
        done = python(f"import rws; {call}", state="new-" + str(abs(hash(call))))
        report(ran() == good and (done.returncode == 0) == good, f"Python: {call}", done.stderr)
    shutil.copy(OTHER, mine + ".new")
    os.rename(mine + ".new", mine)
    for call, good in (("rws.open('run', './mine.so')", False), ("rws.open('run', './mine.so', changed=True)", True),
                       ("rws.resume('run', './mine.so', iterations=11, progress=False, changed=True)", True)):
        done = python(f"import rws; {call}", state="empty6")
        report(ran() == good and (done.returncode == 0) == good, f"Python, changed: {call}", done.stderr)


def put(object, path):
    """Replaces a file by a new one, as a compiler does."""
    shutil.copy(object, path + ".new")
    os.rename(path + ".new", path)


def without_fingerprint(path):
    """Takes the fingerprint of the model out of a checkpoint, whose checksum fits."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    del header["__metadata__"]["model_fingerprint"]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    at = text.index(b'"header_crc32":"') + 16
    zeros = text[:at] + b"00000000" + text[at + 8:]
    text = text[:at] + b"%08x" % zlib.crc32(zeros) + text[at + 8:]
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data[8 + size:])


def test_accepted():
    """A change that a resume accepts is written down; one that was interrupted, and a folder that disagrees, are refused."""
    put(DOOR, os.path.join(HERE, "mine.so"))
    succeeds("a run", "train", "./mine.so", *SMALL, "--out", "accepted")
    shutil.copytree(os.path.join(HERE, "accepted"), os.path.join(HERE, "half"))
    put(OTHER, os.path.join(HERE, "mine.so"))
    train = ("train", "./mine.so", "--resume", "-n", "6", "--out")
    refuses("a changed object", ["--changed"], *train, "accepted")
    succeeds("accepted", *train, "accepted", "--changed")
    for arguments in (("eval", "accepted"), ("train", "--out", "accepted", "--resume", "-n", "7")):
        succeeds("from then on", *arguments)
    shutil.copy(os.path.join(HERE, "accepted", "config.json"), os.path.join(HERE, "half"))
    refuses("accepted by half", ["disagree", "once more"], *train, "half")
    succeeds("and again", *train, "half", "--changed")
    succeeds("is whole", "eval", "half")
    put(DOOR, os.path.join(HERE, "mine.so"))
    refuses("the object of the first iterations", ["--changed"], "eval", "accepted", "--model", "./mine.so")
    put(OTHER, os.path.join(HERE, "mine.so"))
    without_fingerprint(os.path.join(HERE, "half", "checkpoint.safetensors"))
    refuses("a checkpoint without a fingerprint", ["disagree", "no fingerprint"], "eval", "half", "--model", "./mine.so")


def test_accepted_sweep():
    """A sweep continues its runs with an object that has changed, and measures them."""
    def sweep(*arguments):
        with open(os.path.join(HERE, "more.sweep"), "w") as f:
            f.write(f"model ./mine.so\nmethods ww\nparticles 2\niterations {iterations}\nbatch 4\neval-data 3\nfinal 5 3\n")
        return rws("sweep", "more.sweep", *arguments)
    put(DOOR, os.path.join(HERE, "mine.so"))
    iterations = 4
    first = sweep()
    put(OTHER, os.path.join(HERE, "mine.so"))
    iterations = 6
    second, third = sweep(), sweep("--changed")
    iterations = 8
    done = first, second, third, sweep()
    report([d.returncode for d in done] == [0, 2, 0, 0] and "--changed accepts it" in second.stdout, "rws sweep --changed", done)
    ran()


def test_disagreement():
    """A store with another path is accepted only if the user names the object, and its fingerprint says that it is the run's."""
    shutil.copytree(os.path.join(HERE, "accepted"), os.path.join(HERE, "paths"))
    store = sqlite3.connect(os.path.join(HERE, "paths", "metrics.sqlite"))
    store.execute("UPDATE runs SET config = replace(config, 'mine.so', 'other.so')")
    store.execute("DELETE FROM checksums")
    store.commit()
    store.close()
    refuses("two paths", ["disagree", "the store has"], "eval", "paths")
    succeeds("two paths, the object is named", "eval", "paths", "--model", "./mine.so")
    path = os.path.join(HERE, "paths", "config.json")
    config = json.load(open(path))
    del config["model_fingerprint"]
    json.dump(config, open(path, "w"))
    without_fingerprint(os.path.join(HERE, "paths", "checkpoint.safetensors"))
    refuses("two paths and no fingerprint", ["disagree", "the store has"], "eval", "paths", "--model", "./mine.so")


# ---- what runs is what was checked

def test_needy():
    """A library beside an object is found also if the object is on the user's list."""
    folder = os.path.join(HERE, "needy")
    os.makedirs(folder)
    for path in (NEEDY, LIBRARY):
        shutil.copy(path, folder)
    succeeds("with a library beside it", "train", "./needy/door4.so", *SMALL, "--out", "needy/run")
    succeeds("also if it was named before", "eval", "needy/run")


def test_rebuilt_in_server():
    mine = os.path.join(HERE, "again.so")
    for object, run in ((DOOR, "one"), (OTHER, "two"), (DOOR, None)):
        put(object, mine)
        if run:
            succeeds("a run", "train", "./again.so", *SMALL, "--out", "again/" + run)
    server = Server("again", "--model", "./again.so")
    try:
        runs = {run["name"]: run["id"] for run in json.loads(server.ask("/api/runs")[1])["runs"]}
        for name, number in (("one", 0), ("two", 1)):
            status, answer = server.ask(f"/api/runs/{runs[name]}/sample", {"n": 1})
            report(status == 200 and which_ran() == [number], f"rws serve runs the object of run {name}", answer)
            put(OTHER, mine)
    finally:
        server.stop()


REBUILT = """
import os, shutil, rws
def put(number):
    shutil.copy(f"{number}.so", "new.so")
    os.rename("new.so", "mine.so")
def train(out):
    return rws.train("./mine.so", out="rebuilt/" + out, particles=2, batch=4, iterations=4, n_test=3, progress=False)
put(0); os.link("mine.so", "first.so"); one = train("one")
put(1); two = train("two")
rws.open("rebuilt/two")
one.close()
rws.open("rebuilt/one", "./first.so").close()
put(2); train("three").close()
put(3); train("four").close()
rws.open("rebuilt/four").close()
shutil.copy("2.so", "mine.so")
try:
    train("five")
except rws.Error as e:
    print(e, flush=True)
os._exit(0)  # without the end of the library, whose code is gone
"""


def test_rebuilt_in_python():
    """Every object of one session runs its own code, also if others of its path are loaded; one that is overwritten is refused."""
    for number, path in enumerate((DOOR, OTHER, KEPT, KEPT2)):
        shutil.copy(path, os.path.join(HERE, f"{number}.so"))
    done = python(REBUILT)
    numbers = which_ran()
    report(done.returncode == 0 and numbers == [0, 1, 0, 2, 3], "Python: a rebuilt object runs", (numbers, done))
    report("start the program again" in done.stdout, "Python: an object that is overwritten is refused", done)


def print_table():
    print("# door: times that a file named the object / times that it was loaded")
    for door, ways in table.items():
        print(f"# {door:20} {sum(n for n, _ in ways.values()):3} / {sum(r for _, r in ways.values())}"
              + "".join(f"\n#     LOADED: {way}" for way, (_, r) in ways.items() if r))


os.makedirs(HERE)
try:
    folders = strangers()
    test_commands(folders)
    if has_serve():
        test_serve(folders)
    if "PYTHONPATH" in os.environ:
        test_python(folders)
    test_quotes(folders["config + checkpoint, absolute"])
    test_user()
    test_user_elsewhere()
    test_accepted()
    test_accepted_sweep()
    test_disagreement()
    test_needy()
    if has_serve():
        test_rebuilt_in_server()
    if "PYTHONPATH" in os.environ:
        test_rebuilt_in_python()
finally:
    print_table()
    shutil.rmtree(WORK, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
