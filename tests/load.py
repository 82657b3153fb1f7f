#!/usr/bin/env python3
"""load.py PROGRAM [--seconds S] [--watch MINUTES] - rws serve under load from wrk on the same machine.

Prints a table: requests per second, median and 99th percentile of the latency, and the server's memory before and after,
for the page, the list of runs, the curves of 200 runs, and questions to gmm and pcfg with 32 connections; the questions
with one and with two threads. Then the time per iteration of a run that trains while 10 watchers look at it, beside that
of the same run alone. --watch asks for so many minutes and prints the memory every ten seconds.
"""
import argparse
import json
import os
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
    command = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--latency", url]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        if body is not None:
            script.write(f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[{json.dumps(body)}]==]\n')
            script.flush()
            command[1:1] = ["-s", script.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    find = lambda pattern: (re.search(pattern, text) or [None, "-"])[1]
    return float(find(r"Requests/sec:\s+([\d.]+)")), find(r"50%\s+(\S+)"), find(r"99%\s+(\S+)"), find(r"Non-2xx or 3xx responses: (\d+)")


def table(program, folder, seconds):
    print(f"{'request':44} {'threads':>7} {'req/s':>9} {'median':>9} {'99 %':>9} {'errors':>7} {'MB before':>10} {'after':>7}")
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
            print(f"{name:44} {threads:7} {rate:9.1f} {median:>9} {high:>9} {errors:>7} {before:10.1f} {server.memory():7.1f}", flush=True)
        server.stop()


def train_time(program, folder, n_watchers, iterations=300000):
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
    for _ in range(3):  # interleaved, the best of three
        alone.append(train_time(program, folder, 0))
        seen.append(train_time(program, folder, 10))
    print(f"\ntime per iteration: alone {1e6 * min(alone):.2f} µs, with 10 watchers {1e6 * min(seen):.2f} µs: {100 * (min(seen) / min(alone) - 1):+.1f} %"
          f"   (all: {', '.join(f'{1e6 * t:.1f}' for t in alone)}; {', '.join(f'{1e6 * t:.1f}' for t in seen)})")


def flat(program, folder, minutes):
    server = Server(program, folder)
    runs = {r["name"]: r["id"] for r in server.get("api/runs")["runs"] if "/many/" not in r["store"]}
    path, body = f"api/runs/{runs['pcfg']}/infer", {"text": "stars saw ears with telescopes", "particles": 100}
    until = time.time() + 60 * minutes
    numbers = [server.memory()]
    while time.time() < until:
        wrk(server.address + path, 5, body)
        wrk(server.address + "api/metrics?metric=p_error&points=200", 5)
        numbers.append(server.memory())
    print(f"\nmemory over {minutes:g} minutes, MB every 10 s: " + " ".join(f"{n:.0f}" for n in numbers))
    server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--watch", type=float, default=0)
    parser.add_argument("--no-training", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("load.py: there is no wrk; on Debian, install wrk")
    program = os.path.realpath(arguments.program)
    with tempfile.TemporaryDirectory(prefix="rws-load-") as folder:
        points = make_runs(program, folder)
        print(f"202 runs, {points:,} numbers in the store of the sweep; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; 32 connections, {arguments.seconds} s each")
        table(program, folder, arguments.seconds)
        if not arguments.no_training:
            watched(program, folder)
        if arguments.watch:
            flat(program, folder, arguments.watch)


main()
