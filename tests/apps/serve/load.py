#!/usr/bin/env python3
"""load.py PROGRAM [PART...] [--seconds S] [--minutes M] - rws serve under load, on the same machine.

PART is one of the following; without one, the first three are measured.

    requests   requests per second, median and 99th percentile of the latency, and the server's memory before and after: the
               page, the list of runs, the curves of 200 runs, and questions to gmm and pcfg, from wrk with 32 connections;
               the questions with one and with two threads
    training   time per iteration of a run that trains while 10 watchers look at it, beside that of the same run alone
    page       500 runs, one of which has a million numbers, in chromium: time until the list is drawn, until a comparison
               of 200 runs is drawn and drawn again, the longest time for which the page does not respond, and the server's
               memory
    memory     questions and curves for --minutes; prints the server's memory every ten seconds

--before "CMD" puts a command, such as "nice -n 19", in front of every wrk.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, missing  # noqa: E402


BEFORE = []  # what stands in front of wrk


def rws(program, *arguments):
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL)


class Server:
    def __init__(self, program, folder, *more):
        self.process = subprocess.Popen([program, "serve", folder, "--port", "0", *more], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def get(self, path):
        return json.load(urllib.request.urlopen(self.address + path))

    def memory(self):
        """Resident megabytes of the child."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            child = file.read().split()[0]
        with open(f"/proc/{child}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def make_runs(program, folder):
    """200 runs of 500 evaluations each in the store of a sweep, made from one real run; and one run of gmm and of pcfg."""
    rws(program, "train", "gmm", "-k", "10", "--iterations", "5000", "--eval-every", "10", "--out", os.path.join(folder, "gmm"))
    rws(program, "train", "pcfg", "--method", "ws", "-k", "10", "--iterations", "200", "--set", "rules=grammar", "--out", os.path.join(folder, "pcfg"))
    many = os.path.join(folder, "many")
    os.makedirs(many)
    db = sqlite3.connect(os.path.join(many, "metrics.sqlite"))
    sqlite3.connect(os.path.join(folder, "gmm", "metrics.sqlite")).backup(db)
    for i in range(1, 200):
        for table, columns in (("runs", "config, host, version, started, iteration, seconds"), ("metrics", "iteration, seconds, name, value")):
            db.execute(f"INSERT INTO {table}(run, {columns}) SELECT 'copy-{i}', {columns} FROM {table} WHERE run = 'gmm'")
        db.execute("UPDATE runs SET config = json_set(config, '$.seed', ?) WHERE run = ?", (i, f"copy-{i}"))
    db.commit()
    points = db.execute("SELECT count(*) FROM metrics").fetchone()[0]
    db.close()
    return points


def wrk(url, seconds, body=None, connections=32):
    command = [*BEFORE, "wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--latency", url]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        if body is not None:
            script.write(f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[{json.dumps(body)}]==]\n')
            script.flush()
            command[len(BEFORE) + 1:len(BEFORE) + 1] = ["-s", script.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    find = lambda pattern: (re.search(pattern, text, re.M) or [None, "-"])[1]
    return float(find(r"Requests/sec:\s+([\d.]+)")), find(r"^ +50%\s+(\S+)"), find(r"^ +99%\s+(\S+)"), find(r"Non-2xx or 3xx responses: (\d+)")


def table(program, folder, seconds):
    print(f"{'request':44} {'threads':>7} {'req/s':>9} {'median':>9} {'99 %':>9} {'errors':>7} {'MB before':>10} {'after':>7}")
    rates = {}
    for threads in (1, 2):
        server = Server(program, folder, "--threads", str(threads))
        runs = {r["name"]: r["id"] for r in server.get("api/runs")["runs"] if "/many/" not in r["store"]}
        questions = [("infer gmm, 100 particles", f"api/runs/{runs['gmm']}/infer", {"fields": {"x": 30}, "particles": 100, "marginals": True}),
                     ("infer pcfg, 5 words, 100 particles", f"api/runs/{runs['pcfg']}/infer", {"text": "stars saw ears with telescopes", "particles": 100})]
        reads = [("the page", "", None), ("app.js", "app.js", None), ("list of 202 runs", "api/runs", None),
                 ("curves of 200 runs, 200 points each", "api/metrics?metric=p_error&points=200&where=model=gmm", None),
                 ("comparison of 200 runs", "api/compare?metric=p_error&where=model=gmm", None)]
        for name, path, body in (reads if threads == 2 else []) + questions:
            before = server.memory()
            rate, median, high, errors = wrk(server.address + path, seconds, body)
            rates[name, threads] = rate
            print(f"{name:44} {threads:7} {rate:9.1f} {median:>9} {high:>9} {errors:>7} {before:10.1f} {server.memory():7.1f}", flush=True)
        server.stop()
    print("from one to two threads: " + ", ".join(f"{name.split(',')[0]} {rates[name, 2] / rates[name, 1]:.2f} times" for name, _, _ in questions))


def train_time(program, folder, n_watchers, iterations=200000):
    """Seconds per iteration of a run, as its own clock has them."""
    out = os.path.join(folder, "watched")
    shutil.rmtree(out, ignore_errors=True)
    server = Server(program, folder) if n_watchers else None
    stop = threading.Event()

    def look():
        port = int(re.search(r":(\d+)/", server.address).group(1))
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.sendall(f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            while not stop.is_set():
                try:
                    if b"event:" in s.recv(1 << 16):
                        server.get("api/compare?metric=p_error&where=model=gmm")
                except OSError:
                    pass
    watchers = [threading.Thread(target=look) for _ in range(n_watchers)]
    for w in watchers:
        w.start()
    rws(program, "train", "gmm", "--method", "ww", "-k", "20", "--threads", "1", "--iterations", str(iterations), "--eval-every", "500", "--out", out)
    stop.set()
    for w in watchers:
        w.join()
    if server:
        server.stop()
    db = sqlite3.connect(os.path.join(out, "metrics.sqlite"))
    return db.execute("SELECT seconds FROM runs").fetchone()[0] / iterations


def watched(program, folder):
    alone, seen = [], []
    for _ in range(6):  # interleaved, the best of six
        alone.append(train_time(program, folder, 0))
        seen.append(train_time(program, folder, 10))
    print(f"\ntime per iteration: alone {1e6 * min(alone):.2f} µs, with 10 watchers {1e6 * min(seen):.2f} µs: {100 * (min(seen) / min(alone) - 1):+.1f} %"
          f"   (all: {', '.join(f'{1e6 * t:.1f}' for t in alone)}; {', '.join(f'{1e6 * t:.1f}' for t in seen)})")


def flat(program, folder, minutes):
    server = Server(program, folder)
    runs = {r["name"]: r["id"] for r in server.get("api/runs")["runs"] if "/many/" not in r["store"]}
    path, body = f"api/runs/{runs['pcfg']}/infer", {"text": "stars saw ears with telescopes", "particles": 100}
    numbers = [server.memory()]
    for _ in range(round(6 * minutes)):
        wrk(server.address + path, 5, body)
        wrk(server.address + "api/metrics?metric=p_error&points=200", 5)
        numbers.append(server.memory())
    print(f"\nmemory over {minutes:g} minutes, MB every 10 s: " + " ".join(f"{n:.0f}" for n in numbers))
    server.stop()


# ---- the page in a browser

def copy_store(source, folder, name, seed, method):
    """A run of its own that is a copy of another, with another name, seed and method."""
    out = os.path.join(folder, name)
    shutil.copytree(source, out)
    db = sqlite3.connect(os.path.join(out, "metrics.sqlite"))
    for table in ("runs", "metrics", "snapshots"):
        db.execute(f"UPDATE {table} SET run = ?", (name,))
    db.execute("DELETE FROM checksums")
    db.execute("UPDATE runs SET config = json_set(config, '$.seed', ?, '$.method', ?)", (seed, method))
    db.execute("UPDATE metrics SET value = value * ?", (1 + 0.001 * seed,))
    db.commit()
    db.close()


def make_long(source, folder, numbers):
    """A run with so many numbers: noise around a curve that falls."""
    out = os.path.join(folder, "long")
    shutil.copytree(source, out)
    db = sqlite3.connect(os.path.join(out, "metrics.sqlite"))
    names = [r[0] for r in db.execute("SELECT DISTINCT name FROM metrics")]
    n = numbers // len(names)
    db.execute("DELETE FROM metrics")
    draw = random.Random(1)
    db.executemany("INSERT INTO metrics VALUES('long', ?, ?, ?, ?)",
                   ((10 * i, 0.001 * i, name, 1 / (1 + 0.0001 * i) + 0.05 * draw.random()) for i in range(n) for name in names))
    db.execute("UPDATE runs SET run = 'long', iteration = ?, config = json_set(config, '$.iterations', ?)", (10 * n, 10 * n))
    db.execute("UPDATE snapshots SET run = 'long'")
    db.execute("DELETE FROM checksums")
    db.commit()
    db.close()


# Runs in every document before its own scripts: the longest stretch without a response, and the moment at which the wanted
# elements are on the screen.
WATCH = """
window.load = { longest: 0, tasks: 0, shown: null };
new PerformanceObserver(l => { for (const e of l.getEntries()) { load.longest = Math.max(load.longest, e.duration); load.tasks++; } }).observe({ type: "longtask", buffered: true });
window.until = condition => new Promise(done => {
  const look = () => condition() ? requestAnimationFrame(() => setTimeout(done)) : requestAnimationFrame(look);
  look();
});
window.reset = () => { load.longest = 0; load.tasks = 0; };
"""


class Page:
    def __init__(self, address):
        self.browser = Browser()
        self.browser.size(1360, 900)
        self.browser.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.address = address

    def open(self, name, hash, condition):
        """Time from the beginning of a new page until the condition holds and was painted."""
        self.browser.go("about:blank")
        self.browser.go(self.address + hash)
        self.browser.js_async(f"until(() => {condition}).then(() => done(0))")
        self.report(name, self.browser.js("return performance.now()"))

    def act(self, name, script, condition):
        """Time from the script until the condition holds and was painted."""
        self.browser.js("reset()")
        took = self.browser.js_async(f"const began = performance.now(); {script}; until(() => {condition}).then(() => done(performance.now() - began))")
        time.sleep(0.2)
        self.report(name, took)

    def report(self, name, took):
        longest = self.browser.js("return load.longest")
        print(f"{name:64} {took:8.0f} ms {longest:18.0f} ms", flush=True)


INK = "[...document.querySelectorAll('.plot canvas')].some(c => c.width > 0 && c.getContext('2d').getImageData(c.width / 2, 0, 8, c.height).data.some(v => v > 0))"


def page(program, folder):
    rws(program, "train", "gmm", "-k", "10", "--iterations", "5000", "--eval-every", "10", "--out", os.path.join(folder, "gmm"))
    many = os.path.join(folder, "many")
    os.makedirs(many)
    methods = ["ww", "ws", "vimco", "rws", "dww"]
    for i in range(499):
        copy_store(os.path.join(folder, "gmm"), many, f"copy-{i}", i, methods[i % 5])
    make_long(os.path.join(folder, "gmm"), many, 1000000)
    began = time.time()
    server = Server(program, many)
    runs = server.get("api/runs")["runs"]
    print(f"500 runs in 500 stores, of which one has a million numbers: the server answers after {time.time() - began:.1f} s, {server.memory():.0f} MB resident")
    view = Page(server.address)
    train = None
    try:
        print(f"{'':64} {'until shown':>11} {'longest busy stretch':>21}")
        rows = "document.querySelectorAll('tr[data-id]').length"
        view.open("the list, from nothing: its first 100 rows", "#/runs", f"{rows} >= 100")
        view.act("show all 500 rows", "[...document.querySelectorAll('.more button')].pop().click()", f"{rows} >= 500")
        view.act("sort it", "[...document.querySelectorAll('th button.sort')].find(b => b.textContent.startsWith('ess')).click()", "document.querySelector('th[aria-sort]')")
        view.act("type a filter", "const f = document.getElementById('filter'); f.value = 'method=ww'; f.dispatchEvent(new Event('input'))", f"{rows} <= 101")
        view.act("clear it", "const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input'))", f"{rows} >= 500")
        ids = ",".join(r["id"] for r in runs if r["name"] != "long")
        view.open("comparison of 499 runs, from nothing", "#/compare?metrics=p_error,log_evidence&filter=seed%3C499", INK)
        ids = ",".join([r["id"] for r in runs if r["name"] != "long"][:200])
        view.open("comparison of 200 runs, from nothing", f"#/compare?metrics=p_error,log_evidence&runs={ids}", INK)
        view.act("the same over seconds", "[...document.querySelectorAll('.toggle')].find(t => t.textContent === 'seconds').click()", f"document.querySelector('.x-name').textContent.includes('(s)') && {INK}")
        view.act("a logarithmic axis", "[...document.querySelectorAll('.toggle')].find(t => t.textContent === 'log y').click()", f"location.hash.includes('log=y') && {INK}")
        view.act("hide a curve", "document.querySelector('.legend .key').click()", "document.querySelector('.legend .key[aria-pressed=\"false\"]')")
        long = next(r["id"] for r in runs if r["name"] == "long")
        view.open("the run with a million numbers, from nothing", f"#/run/{long}", f"document.querySelectorAll('.chart canvas').length >= 10 && {INK}")
        out = os.path.join(many, "live")
        train = subprocess.Popen([program, "train", "gmm", "-k", "5", "--iterations", "100000000", "--eval-every", "500", "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, hash in (("the list", "#/runs"), ("the comparison of all runs", "#/compare?metrics=p_error,log_evidence")):
            view.open(f"{name}, while a run trains", hash, INK if "compare" in hash else f"{rows} >= 100")
            view.browser.js("reset()")
            time.sleep(10)
            longest, n = view.browser.js("return [load.longest, load.tasks]")
            print(f"{'  10 s of it':64} {n:8} long tasks {longest:11.0f} ms", flush=True)
        print(f"server: {server.memory():.0f} MB resident")
    finally:
        view.browser.close()
        if train:
            train.send_signal(signal.SIGTERM)
            train.wait(30)
        server.stop()


PARTS = ("requests", "training", "page", "memory")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--before", default="")
    arguments = parser.parse_args()
    BEFORE.extend(arguments.before.split())
    parts = arguments.parts or PARTS[:3]
    wrong = [p for p in parts if p not in PARTS]
    if wrong:
        sys.exit(f"load.py: there is no part {wrong[0]}; the parts are {', '.join(PARTS)}")
    if not shutil.which("wrk"):
        sys.exit("load.py: there is no wrk; on Debian, install wrk")
    program = os.path.realpath(arguments.program)
    if set(parts) - {"page"}:
        with tempfile.TemporaryDirectory(prefix="rws-load-") as folder:
            points = make_runs(program, folder)
            print(f"202 runs, {points:,} numbers in the store of the sweep; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; 32 connections, {arguments.seconds} s each")
            if "requests" in parts:
                table(program, folder, arguments.seconds)
            if "training" in parts:
                watched(program, folder)
            if "memory" in parts:
                flat(program, folder, arguments.minutes)
    if "page" in parts and missing():
        print(f"page: {missing()}")
    elif "page" in parts:
        with tempfile.TemporaryDirectory(prefix="rws-load-") as folder:
            page(program, folder)


main()
