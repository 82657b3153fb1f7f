"""test_serve.py PROGRAM - rws serve over HTTP: the API against its own description, live runs, safety, crashes, draining.

Prints TAP. Uses the standard library only, and raw sockets where a client must misbehave.
"""
import collections
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

RWS = os.path.realpath(sys.argv[1])
WORK = tempfile.mkdtemp(prefix="rws-serve-")
RUNS = os.path.join(WORK, "runs")
os.environ["XDG_STATE_HOME"] = os.path.join(WORK, "state")  # which objects were named
HERE = os.path.dirname(os.path.abspath(__file__))
count = failed = 0
tries = collections.defaultdict(collections.Counter)  # bad requests: kind -> status -> number


def tried(kind, status, good, name, detail=""):
    """A bad request: counts the status that came of it, 0 being a connection that was closed without a reply."""
    tries[kind][status] += 1
    report(good, name, detail)


def report(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good and detail != "":
        print(f"# {str(detail)[:600]}", flush=True)


def rws(*arguments, check=True):
    done = subprocess.run([RWS, *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"rws {' '.join(arguments)}: {done.stderr}")
    return done


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([RWS, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(self.process.stderr.read())
        self.port = int(re.search(r":(\d+)/", self.address).group(1))
        self.host = f"127.0.0.1:{self.port}"

    def ask(self, path, body=None, method=None, headers=None, timeout=30):
        """(status, headers, bytes)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, path, body=None, **rest):
        status, headers, data = self.ask(path, body, **rest)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {data[:300]}")
        return json.loads(data)

    def raw(self, data, timeout=5, pause=0):
        """Sends bytes (or several, with a pause between them) and returns all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            try:
                for part in data if isinstance(data, list) else [data]:
                    s.sendall(part)
                    time.sleep(pause)
            except OSError:
                pass
            got = b""
            try:
                while True:
                    more = s.recv(65536)
                    if not more:
                        break
                    got += more
            except (OSError, socket.timeout):
                pass
            return got

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


def wait(condition, seconds=20):
    until = time.time() + seconds
    while time.time() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    return None


# ---- a small reader of JSON schemas, as much of it as the description uses

def check_schema(value, schema, root, where="reply"):
    if "$ref" in schema:
        at = root
        for part in schema["$ref"][2:].split("/"):
            at = at[part]
        return check_schema(value, at, root, where)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    wanted = schema.get("type")
    if wanted:
        wanted = wanted if isinstance(wanted, list) else [wanted]
        good = any((isinstance(value, (int, float)) and not isinstance(value, bool)) if kind in ("number", "integer")
                   else isinstance(value, kinds[kind]) for kind in wanted)
        if not good:
            return f"{where} is {json.dumps(value)[:80]}, not {wanted}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is {value!r}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{where} is {value!r}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            wrong = check_schema(item, schema.get("items", {}), root, f"{where}[{i}]")
            if wrong:
                return wrong
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                return f"{where} lacks {key!r}"
        for key, item in value.items():
            properties, extra = schema.get("properties", {}), schema.get("additionalProperties", True)
            if key not in properties and extra is False:
                return f"{where} has {key!r}, which is not described"
            inner = properties.get(key, extra if isinstance(extra, dict) else {})
            wrong = check_schema(item, inner, root, f"{where}.{key}")
            if wrong:
                return wrong
    return None


def example_path(path, operation, run, skip=()):
    query = []
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", run if parameter["name"] == "run" else "1")
        elif "example" in parameter and parameter["name"] not in skip:
            query.append(f"{parameter['name']}={parameter['example']}")
    return path + ("?" + "&".join(query) if query else "")


def test_validator(root):
    """Checks the description with openapi-spec-validator, where it is installed."""
    name = "openapi-spec-validator accepts the description"
    try:
        import openapi_spec_validator
    except ImportError:
        return report(True, name + " # SKIP not installed")
    wrong = [str(e) for e in openapi_spec_validator.OpenAPIV31SpecValidator(root).iter_errors()]
    report(not wrong, name, wrong)


def test_description(server, run):
    root = server.json("/api/openapi.json")
    routes = set(server.json("/api")["routes"])
    described = {f"{method.upper()} {path}" for path, item in root["paths"].items() for method in item}
    report(routes == described, "the description has every address of the server, and no other", routes ^ described)
    test_validator(root)
    schemas = root["components"]["schemas"]
    names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(root)))
    report(names == set(schemas), "every schema that is named is described, and no other", names ^ set(schemas))
    limits = server.json("/api")["limits"]
    points = next(p for p in root["paths"]["/api/compare"]["get"]["parameters"] if p["name"] == "points")["schema"]
    described = (points["maximum"], schemas["Sampling"]["properties"]["n"]["maximum"])
    report(described == (limits["points"], limits["samples"]), "the limits in the description are the server's", described)
    for path, item in root["paths"].items():
        for method, operation in item.items():
            content = operation["responses"]["200"]["content"]
            if path == "/api/events" or path.endswith("{iteration}"):
                continue
            if method == "get":
                status, headers, data = server.ask(example_path(path, operation, run))
                kind = headers["content-type"].split(";")[0]
                wrong = None if status == 200 and kind in content else f"{status} {kind} {data[:200]}"
                schema = content.get(kind, {}).get("schema")
                if not wrong and schema:
                    wrong = check_schema(json.loads(data), schema, root)
                report(not wrong, f"GET {path} is as described", wrong)
                bad, _, data = server.ask(path.replace("{run}", "0" * 16).replace("{iteration}", "1"))
                if "{run}" in path:
                    report(bad == 404 and "error" in json.loads(data), f"GET {path} of no run is 404", (bad, data))
                continue
            media = operation["requestBody"]["content"]["application/json"]
            for name, example in media["examples"].items():
                wrong = check_schema(example["value"], media["schema"], root, "example")
                status, headers, data = server.ask(path.replace("{run}", run), example["value"])
                kind = headers["content-type"].split(";")[0]
                if not wrong and (status != 200 or kind not in content):
                    wrong = f"{status} {kind} {data[:200]}"
                schema = content["application/json"]["schema"]
                for line in data.splitlines() if not wrong else []:
                    wrong = wrong or check_schema(json.loads(line), schema, root)
                report(not wrong, f"POST {path}, {name}, is as described", wrong)
                status, _, data = server.ask(path.replace("{run}", run), {**example["value"], "nonsense": 1})
                report(status == 400 and b"nonsense" in data, f"POST {path}, {name}: a key that does not exist is refused", data)


# ---- the API

def test_api(server, runs):
    by_name = {r["name"]: r for r in server.json("/api/runs")["runs"]}
    report(set(by_name) == set(runs), "all runs are listed", (set(by_name), set(runs)))
    report(all(r["state"] == "finished" for r in by_name.values()), "with their state", {n: r["state"] for n, r in by_name.items()})
    gmm, pcfg = by_name["ww-1"], by_name["grammar"]
    listed = rws("runs", RUNS, "--json").stdout.splitlines()
    last = {j["run"]: j["metrics"] for j in map(json.loads, listed)}
    good = all(abs(by_name[n]["last"][m] - v) <= 1e-6 * abs(v) + 1e-9 for n in last for m, v in last[n].items() if v is not None and m in by_name[n]["last"])
    report(good, "the last values are those of rws runs")
    some = server.json("/api/runs?where=method=ww&where=seed=2")["runs"]
    report([r["name"] for r in some] == ["ww-2"], "where selects", [r["name"] for r in some])
    report(server.ask("/api/runs?where=nonsense")[0] == 400, "a condition without = is refused")
    for bad, why in (("nonsense=1", "configuration"), ("state=ended", "states")):
        status, _, data = server.ask(f"/api/runs?where={bad}")
        report(status == 400 and why in data.decode(), f"so is {bad}, with a message", data)
    named = sorted(r["name"] for r in server.json("/api/runs?where=state=finished")["runs"])
    same = sorted(json.loads(line)["run"] for line in rws("runs", RUNS, "--where", "state=finished", "--json").stdout.splitlines())
    report(named == same and named, "states are those of rws runs", (named, same))
    curves = server.json(f"/api/runs/{gmm['id']}/metrics?metric=p_error")["metrics"]
    db = sqlite3.connect(os.path.join(RUNS, "ww-1", "metrics.sqlite"))
    rows = db.execute("SELECT iteration, value FROM metrics WHERE name = 'p_error' ORDER BY iteration").fetchall()
    db.close()
    good = curves[0]["iterations"] == [r[0] for r in rows] and all(abs(a - b[1]) < 1e-8 for a, b in zip(curves[0]["values"], rows))
    report(len(curves) == 1 and good, "a curve is what the store has")
    after = server.json(f"/api/runs/{gmm['id']}/metrics?metric=p_error&since={rows[-2][0]}")["metrics"][0]
    report(after["iterations"] == [rows[-1][0]], "since gives what is new", after["iterations"])
    thin = server.json(f"/api/runs/{gmm['id']}/metrics?metric=p_error&points=5")["metrics"][0]
    report(len(thin["values"]) == 5 and thin["iterations"][0] == rows[0][0] and thin["iterations"][-1] == rows[-1][0] and max(r[1] for r in rows) - max(thin["values"]) < 1e-8,
           "points thins out, and keeps both ends and the largest", thin)
    groups = server.json("/api/compare?metric=p_error&where=model=gmm&panel=none")["groups"]
    ww = [g for g in groups if g["method"] == "ww"][0]
    values = sorted(by_name[n]["last"]["p_error"] for n in ("ww-1", "ww-2", "ww-3"))
    report(len(groups) == 2 and len(ww["runs"]) == 3 and abs(ww["median"][-1] - values[1]) < 1e-8 and abs(ww["low"][-1] - (values[0] + values[1]) / 2) < 1e-8,
           "a comparison has the median and the quartiles over seeds", groups)
    none = server.json("/api/compare?metric=p_error&where=model=gmm%02panel=none")["groups"]
    some = server.json("/api/compare?metric=p_error&where=model=gmm&panel=none")["groups"]
    report(none == [] and len(some) == 2, "queries that look alike have replies of their own", (len(none), len(some)))
    report(server.ask("/api/compare")[0] == 400, "a comparison needs a metric")
    empty = server.ask("/api/compare.svg?metric=p_error&from=5&to=1"), server.ask("/api/compare.svg?metric=nonsense")
    report([e[0] for e in empty] == [400, 400] and b'from \\"from\\" to' in empty[0][2] and b"from" not in empty[1][2], "a figure of nothing is refused, with the reason", empty)
    negative = server.ask("/api/compare.svg?metric=log_evidence&where=model=gmm&log=y")
    report(negative[0] == 400 and b"above 0" in negative[2], "a logarithmic axis without a number above 0 is refused", negative)
    for ending, head in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG"), ("csv", b"curve,")):
        status, headers, data = server.ask(f"/api/compare.{ending}?metric=p_error&where=model=gmm")
        report(status == 200 and data.startswith(head) and f"p_error.{ending}" in headers["content-disposition"], f"as {ending}", data[:100])
    shots = server.json(f"/api/runs/{gmm['id']}/snapshots")["snapshots"]
    report({s["name"] for s in shots} >= {"p", "true_p"} and all(len(s["values"]) == 20 for s in shots), "snapshots")
    status, headers, data = server.ask("/api/runs", method="HEAD")
    report(status == 200 and not data, "HEAD has no body")

    answer = server.json(f"/api/runs/{pcfg['id']}/infer", {"text": "stars saw ears", "particles": 500, "seed": 3})
    cli = json.loads(rws("infer", os.path.join(RUNS, "grammar"), "stars saw ears", "-k", "500", "--seed", "3", "--json").stdout)
    asked = cli.pop("asked")
    answer["answers"] = answer["answers"][:len(cli["answers"])]
    report(asked == "stars saw ears" and answer == cli, "an answer is that of rws infer", (answer, cli))
    answer = server.json(f"/api/runs/{gmm['id']}/infer", {"fields": {"x": 30}, "particles": 500, "seed": 3, "marginals": True, "particles_listed": True})
    cli = json.loads(rws("infer", os.path.join(RUNS, "ww-1"), "30", "-k", "500", "--seed", "3", "--marginals", "--choices", "--top", "0", "--json").stdout)
    report(answer["marginals"] and answer == {k: v for k, v in cli.items() if k != "asked"}, "marginals and particles are those of rws infer", (answer, cli))
    text = rws("infer", os.path.join(RUNS, "grammar"), "stars stars saw", "-k", "20", "--marginals").stdout
    report("No particle is possible, so that no choice has a posterior.\n" in text, "a datum that no particle explains has no marginals, and a sentence", text)
    lines = server.ask(f"/api/runs/{pcfg['id']}/infer", {"data": [{"text": "stars saw ears"}, {"text": "foo"}, {"text": "ears saw stars"}], "particles": 50})[2].splitlines()
    report(len(lines) == 3 and "answers" in json.loads(lines[0]) and "foo" in json.loads(lines[1])["error"] and "answers" in json.loads(lines[2]),
           "many data are answered line by line, and a bad one has its sentence", lines)
    lines = server.ask(f"/api/runs/{gmm['id']}/sample", {"n": 2500}, headers={"Accept": "application/x-ndjson"})[2].splitlines()
    report(len(lines) == 2500 and all("x" in json.loads(l)["fields"] for l in lines[:50]), "samples line by line", len(lines))
    report(server.ask(f"/api/runs/{gmm['id']}/sample", {"n": 2500})[0] == 400, "so many do not come in one piece")
    listed = server.json(f"/api/runs/{gmm['id']}/infer", {"fields": {"x": 30}, "particles_listed": True})["particles_listed"][0]
    score = server.json(f"/api/runs/{gmm['id']}/score", {"fields": {"x": 30}, "choices": listed["choices"]})
    report(abs(score["log_p"] - listed["log_p"]) < 1e-4 and abs(score["log_q"] - listed["log_q"]) < 1e-4, "the score of a particle's choices is that of the particle", (listed, score))
    bad = [({"text": "foo bar"}, "foo"), ({}, "Which datum"), ({"text": 3}, "text"), ({"fields": {"y": 1}}, "no field"), ({"text": "stars", "particles": 0}, "particles"),
           ({"text": "stars", "particles": 10 ** 9}, "particles"), ({"text": "stars", "test": 1}, "either"), ([], "object"), ({"picture": {"wide": 2, "high": 2, "grey": [1]}}, "picture"),
           ({"text": "stars", "seed": -1}, "seed"), ({"data": []}, "data"), ({"test": 1.5}, "test"), ({"": 1}, "no key"), ({" text": "a"}, "no key"), ({"text picture": "a"}, "no key"),
           ({"text": "stars", "given": 3}, "given"), ({"text": "stars", "given": [{"site": "z"}]}, "choice"), ({"text": "stars", "given": [{"site": "nowhere", "visit": 0, "value": 1}]}, "nowhere")]
    for body, words in bad:
        status, _, data = server.ask(f"/api/runs/{pcfg['id']}/infer", body)
        tried("bodies that are no question", status, status == 400 and words in json.loads(data)["error"], f"refused: {json.dumps(body)[:60]}", data)
    for body in (b"", b"{", b'{"text":"a","text":"b"}', b"[" * 5000, b'{"text":"\\ud800"}', b"\xff\xfe", b'{"text":"a\\u0000b"}', b"nul"):
        status, _, data = server.ask(f"/api/runs/{pcfg['id']}/infer", body, headers={"Content-Type": "application/json"})
        tried("bodies that are not JSON", status, status == 400 and "error" in json.loads(data), f"refused: {body[:24]!r}", (status, data))
    threads = []
    answers = []
    for i in range(24):
        thread = threading.Thread(target=lambda: answers.append(server.json(f"/api/runs/{pcfg['id']}/infer", {"text": "stars saw ears with stars", "particles": 300, "seed": 9})))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    report(len(answers) == 24 and all(a == answers[0] for a in answers), "24 clients at once get the same answer")


def events(server, seconds, stop):
    """Server-sent events until stop(list) or the time is over."""
    got = []
    with socket.create_connection(("127.0.0.1", server.port), timeout=1) as s:
        s.sendall(f"GET /api/events HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        until, text = time.time() + seconds, b""
        while time.time() < until and not stop(got):
            try:
                more = s.recv(65536)
                if not more:
                    break
                text += more
            except socket.timeout:
                continue
            got = [json.loads(m) for m in re.findall(rb"data: (\{.*\})\n", text)]
    return got


def test_live(server):
    root = server.json("/api/openapi.json")
    train = subprocess.Popen([RWS, "train", "gmm", "--method", "ww", "-k", "5", "--iterations", "100000000", "--eval-every", "400", "--save-every", "0", "--out", os.path.join(RUNS, "live")],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        is_live = lambda r: r["name"] == "live" and r["state"] == "training"
        got = events(server, 30, lambda g: len({r["iteration"] for e in g for r in e["runs"] if is_live(r)}) >= 3)
        steps = [r["iteration"] for e in got for r in e["runs"] if is_live(r)]
        report(len(set(steps)) >= 3 and steps == sorted(steps), "a run that begins meanwhile appears, and moves", steps)
        wrong = [w for w in (check_schema(e, root["components"]["schemas"]["Changes"], root, "event") for e in got) if w]
        report(not wrong, "events are as described", wrong)
        run = [r for r in server.json("/api/runs")["runs"] if r["name"] == "live"][0]
        report(run["state"] == "training" and run["time_left"] > 0, "with the time that is left", run["time_left"])
        first = server.json(f"/api/runs/{run['id']}/ask")["iteration"]
        newer = wait(lambda: server.json(f"/api/runs/{run['id']}/ask")["iteration"] > first, 30)
        report(newer, "questions see the newest checkpoint")
    finally:
        train.send_signal(signal.SIGTERM)
        train.wait(30)
    stopped = wait(lambda: [r for r in server.json("/api/runs?where=state=stopped")["runs"] if r["name"] == "live"])
    report(stopped, "a run that was stopped is said to be stopped")
    shutil.rmtree(os.path.join(RUNS, "live"))
    report(wait(lambda: not any(r["name"] == "live" for r in server.json("/api/runs")["runs"])), "a run that is removed disappears")


# ---- safety

def head(server, path="/api", host=None, extra=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host or server.host}\r\nConnection: close\r\n{extra}\r\n".encode()


def status_of(data):
    match = re.match(rb"HTTP/1\.[01] (\d+)", data)
    return int(match.group(1)) if match else 0


def test_safety(server, run):
    for path in ("/../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/api/runs/../../etc", "/api/runs/..%2f", "/.git/config",
                 "/%00", "/api/runs/%00", "/api/runs/" + run + "/pictures/..%2f..%2fconfig.json", "/api/runs/" + run + "/pictures/../../config.json",
                 "/api/runs/" + run + "/pictures/1.png", "/api/runs/" + run + "%2f..", "/style.css/..", "/C:\\windows", "/" + "a" * 300, "/a/" * 40, "/\u2025/etc".encode("utf-8").decode("latin-1")):
        got = server.raw(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        tried("paths: .., encodings, zero bytes, other files", status_of(got), status_of(got) in (400, 404) and b"root:" not in got and b'"format"' not in got, f"nothing at {path[:60]!r}", got[:200])
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil.example:{server.port}", f"localhost.evil:{server.port}", "", "[::1", f"{server.host}@evil", f"0x7f.1:{server.port}", f"127.1:{server.port}"):
        got = server.raw(head(server, host=host or " "))
        tried("wrong hosts, and none", status_of(got), status_of(got) in (400, 421) and b"version" not in got, f"the host {host!r} is refused", got[:200])
    got = server.raw(f"GET /api HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    tried("wrong hosts, and none", status_of(got), status_of(got) in (400, 421), "and so is a request without one", got[:100])
    for first, second in ((server.host, "evil.example"), ("evil.example", server.host), (server.host, server.host)):
        got = server.raw(head(server, host=first, extra=f"host: {second}\r\n"))
        tried("wrong hosts, and none", status_of(got), status_of(got) == 400, f"the hosts {first} and {second} together are refused", got[:100])
    for blank in (" ", "\t"):
        got = server.raw(head(server, extra=f"Host{blank}: evil.example\r\n"))
        tried("wrong hosts, and none", status_of(got), status_of(got) == 400, "and so is a header with a blank before the colon", got[:100])
    for name in (f"localhost:{server.port}", f"LOCALHOST:{server.port}", f"[::1]:{server.port}"):
        report(status_of(server.raw(head(server, host=name))) == 200, f"the host {name} is this one")
    infer, good = f"/api/runs/{run}/infer", {"test": 0, "particles": 10}
    for headers, want in (({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": f"http://{server.host}"}, 200), ({"Origin": f"http://{server.host}.evil"}, 403),
                          ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "same-origin"}, 200),
                          ({"Content-Type": "text/plain"}, 415), ({"Content-Type": "application/x-www-form-urlencoded"}, 415), ({"Content-Type": "application/json; charset=utf-8"}, 200),
                          ({"Content-Type": "application/jsonp"}, 415)):
        got = server.ask(infer, good, headers=headers)[0]
        (report if want == 200 else lambda *a: tried("wrong origins, sites and content types", got, *a))(got == want, f"a post with {headers} is {want}", got)
    got = server.ask(infer, b'{"test": 0}', headers={})[0]
    tried("wrong origins, sites and content types", got, got == 415, "a post without a content type is 415", got)
    for method, path, want in (("GET", infer, 405), ("POST", "/api/runs", 405), ("DELETE", "/api/runs", 405), ("PUT", "/", 405), ("OPTIONS", infer, 405), ("TRACE", "/", 405), ("PATCH", "/api", 405)):
        status, headers, _ = server.ask(path, {} if method in ("POST", "PUT", "PATCH") else None, method=method)
        tried("methods that an address does not take", status, status == want and "allow" in headers, f"{method} {path[:24]} is {want}", status)
    status, headers, _ = server.ask("/")
    policy = headers.get("content-security-policy", "")
    report("default-src 'none'" in policy and "unsafe" not in policy and headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in headers, "the page has a strict policy", headers)
    report(all(server.ask(p)[1].get("content-security-policy") for p in ("/api", "/nothing", "/api/runs/x")), "and so has every reply")
    etag = headers["etag"]
    report(server.ask("/", headers={"If-None-Match": etag})[0] == 304, "the page is not sent twice")
    # limits
    status, _, data = server.ask(infer, b"[" + b" " * (1 << 20) + b"]", headers={"Content-Type": "application/json"})
    tried("bodies, headers, addresses, queries that are too large", status, status == 413, "a body of more than 1 MB is 413", status)
    got = server.raw(f"POST {infer} HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n{{".encode())
    tried("bodies, headers, addresses, queries that are too large", status_of(got), status_of(got) in (400, 413), "and so is a length that says so", got[:100])
    chunk = b"%x\r\n" % 65536 + b"x" * 65536 + b"\r\n"
    got = server.raw([f"POST {infer} HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()] + [chunk] * 20 + [b"0\r\n\r\n"])
    tried("bodies, headers, addresses, queries that are too large", status_of(got), status_of(got) in (413, 0), "and a body in chunks", got[:100])
    got = server.raw(head(server, extra="X: " + "a" * 60000 + "\r\n"))
    tried("bodies, headers, addresses, queries that are too large", status_of(got), status_of(got) in (400, 413, 431, 414), "headers of more than 32 KB are refused", got[:100])
    got = server.raw(head(server, path="/api?" + "a" * 60000))
    tried("bodies, headers, addresses, queries that are too large", status_of(got), status_of(got) in (400, 413, 414, 431), "and so is such an address", got[:100])
    got = server.raw(head(server, path="/api/runs?" + "&".join(f"a{i}=1" for i in range(100))))
    tried("bodies, headers, addresses, queries that are too large", status_of(got), status_of(got) == 400, "and 100 arguments", got[:100])
    for name, data in (("nothing", b""), ("noise", os.urandom(2000)), ("half a line", b"GET /api HT"), ("a bad version", b"GET / HTTP/9.9\r\n\r\n"), ("two lengths", f"POST {infer} HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde".encode()),
                       ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500)), ("a header that is none", f"GET /api HTTP/1.1\r\nHost: {server.host}\r\nnonsense\r\n\r\n".encode())):
        status = status_of(server.raw(data, timeout=1))
        tried("noise, TLS, half lines, two lengths", status, server.ask("/api")[0] == 200, f"the server lives after {name}")
    for _ in range(30):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(f"GET /api/runs HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        s.close()
        tries["closed before the reply"][0] += 1
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
        s.sendall(head(server))
        s.shutdown(socket.SHUT_WR)
        got = b"".join(iter(lambda: s.recv(65536), b""))
    tried("half-closed", status_of(got), status_of(got) in (200, 0) and server.ask("/api")[0] == 200, "connections that are closed early or halfway do no harm")


def test_slow(server):
    """Clients that send a byte now and then, or nothing, are cut off; others are served meanwhile."""
    began = time.time()
    lazy = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    drip = socket.create_connection(("127.0.0.1", server.port))
    ends = {}
    text = f"GET /api HTTP/1.1\r\nHost: {server.host}\r\nX: {'a' * 4000}".encode()
    meanwhile = True
    for i in range(60):
        try:
            drip.sendall(text[i:i + 1])
            drip.setblocking(False)
            try:
                if drip.recv(100) == b"":
                    ends["drip"] = time.time() - began
            except BlockingIOError:
                pass
            drip.setblocking(True)
        except OSError:
            ends["drip"] = time.time() - began
        if "drip" in ends:
            break
        if i % 5 == 0:
            meanwhile &= server.ask("/api")[0] == 200
        time.sleep(0.5)
    tries["slow: a byte every half second"][0] += "drip" in ends
    report("drip" in ends and ends["drip"] < 26, "a client that sends a byte now and then is cut off after 20 s", ends)
    report(meanwhile, "others are served meanwhile")
    closed = 0
    for s in lazy:
        s.settimeout(8)
        try:
            closed += s.recv(10) == b""
        except (OSError, socket.timeout):
            pass
        s.close()
    tries["slow: connections that say nothing"][0] += closed
    report(closed == 40, "and so are clients that say nothing", closed)
    drip.close()


def test_many(run):
    """More connections, watchers and headers than there may be: silent ones give way, and afterwards all are served."""
    server = Server(RUNS, "--port", "0")
    try:
        held = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(300)]
        time.sleep(0.5)
        report(server.ask("/api")[0] == 200, "beside 300 silent connections a client is answered")
        answered = 0
        for s in held:
            try:
                s.sendall(head(server))
                answered += status_of(s.recv(4096)) == 200
            except OSError:
                pass
        for s in held:
            s.close()
        tries["300 connections at once"].update({200: answered, 0: 300 - answered})
        report(200 <= answered <= 256, "of 300 connections, no more than 256 are served: the oldest have given way", answered)
        report(wait(lambda: server.ask("/api")[0] == 200), "and when they are gone, others are")
        watchers, statuses = [], collections.Counter()
        for _ in range(256):
            s = socket.create_connection(("127.0.0.1", server.port), timeout=5)
            s.sendall(f"GET /api/events HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            got = s.recv(4096)
            statuses[status_of(got)] += 1 if status_of(got) == 200 or b"Retry-After: 1" in got else 1000
            watchers.append(s)
        tries["256 watchers at once"].update(statuses)
        report(statuses == {200: 48, 503: 208}, "of 256 watchers from one address, 48 are served, and the others are told to try again", statuses)
        with socket.create_connection(("127.0.0.1", server.port), timeout=5, source_address=("127.0.0.2", 0)) as s:
            s.sendall(head(server, "/api/events"))
            report(status_of(s.recv(4096)) == 200, "a watcher from another address is served")
        report(server.json(f"/api/runs/{run}/infer", {"test": 0, "particles": 10})["answers"], "questions are answered beside them")
        for s in watchers:
            s.close()
        got = server.raw(head(server, extra="".join(f"X-{i}: a\r\n" for i in range(5000))))
        tried("bodies, headers, addresses, queries that are too large", status_of(got), status_of(got) in (400, 413, 431), "5000 headers are refused", got[:100])
    finally:
        server.stop()


def test_outside():
    """A link out of the folder is not followed; names in a store lead nowhere."""
    inside, outside = os.path.join(WORK, "inside"), os.path.join(WORK, "outside")
    os.makedirs(inside)
    shutil.copytree(os.path.join(RUNS, "ww-1"), outside)
    shutil.copytree(os.path.join(RUNS, "ww-1"), os.path.join(inside, "mine"))
    os.symlink(outside, os.path.join(inside, "link"))
    os.makedirs(os.path.join(inside, "sweep"))
    db = sqlite3.connect(os.path.join(inside, "sweep", "metrics.sqlite"))
    source = sqlite3.connect(os.path.join(RUNS, "ww-1", "metrics.sqlite"))
    source.backup(db)
    for table in ("runs", "metrics", "snapshots"):
        db.execute(f"UPDATE {table} SET run = '../../outside'")
    db.execute("INSERT INTO runs SELECT '<script>alert(1)</script>', config, host, version, started, iteration, seconds FROM runs")
    db.execute("INSERT INTO failures VALUES('<script>alert(1)</script>', 1, 'broken \"</script>\"')")
    db.execute("DELETE FROM checksums")
    db.commit()
    os.makedirs(os.path.join(inside, "bad"))
    with open(os.path.join(inside, "bad", "metrics.sqlite"), "wb") as file:
        file.write(os.urandom(5000))
    os.makedirs(os.path.join(inside, "pics"))
    shutil.copytree(os.path.join(RUNS, "ww-1"), os.path.join(inside, "pics", "run"))
    os.symlink("/etc", os.path.join(inside, "pics", "run", "pictures"))
    server = Server(inside, "--port", "0")
    try:
        answer = server.json("/api/runs")
        names = sorted(r["name"] for r in answer["runs"])
        report(names == ["../../outside", "<script>alert(1)</script>", "mine", "run"], "a link that leads out of the folder is not followed", names)
        sentences = " ".join(p["message"] for p in answer["problems"])
        report("link" in sentences and "damaged" in sentences, "and is named, with the store that is damaged", answer["problems"])
        os.rename(os.path.join(inside, "link"), os.path.join(inside, "other"))
        named = lambda: [p["path"] for p in server.json("/api/runs")["problems"] if "link" in p["message"]]
        report(wait(lambda: named() == [os.path.join(inside, "other")], 5), "a link that is renamed has its new name", named())
        up = [r for r in answer["runs"] if r["name"] == "../../outside"][0]
        report(not up["has_folder"] and server.ask(f"/api/runs/{up['id']}/ask")[0] == 404, "a run whose name leads up has no folder")
        raw = server.ask("/api/runs")[2]
        report(b"<script" not in raw and b"\\u003cscript" in raw, "markup in names is escaped")
        for r in answer["runs"]:
            if "pics" in r["store"]:
                report(server.json(f"/api/runs/{r['id']}/pictures")["iterations"] == [] and server.ask(f"/api/runs/{r['id']}/pictures/1")[0] == 404, "pictures that are a link elsewhere are not shown")
    finally:
        server.stop()


def test_token():
    server = Server(RUNS, "--port", "0", "--listen", "0.0.0.0", "--host", "some.name")
    try:
        token = server.address.split("token=")[1]
        report(re.fullmatch("[0-9a-f]{32}", token), "--listen prints a token")
        for path in ("/", "/api", "/api/runs", "/app.js", "/api/events"):
            status = server.ask(path)[0]
            tried("no token", status, status == 401, f"{path} needs it")
        for wrong in (token[:-1], token + "0", token[:-1] + "g", "", token.upper() + "x", "0" * 32):
            got = server.ask("/api", headers={"Authorization": "Bearer " + wrong})[0], server.ask("/api", headers={"Cookie": "rws-token=" + wrong})[0], server.ask("/?token=" + wrong)[0]
            for status in got:
                tries["wrong tokens: header, cookie, address"][status] += 1
            report(got == (401, 401, 401), f"the token {wrong[:8]}… is refused", got)
        report(server.ask("/api", headers={"Authorization": "Bearer " + token})[0] == 200, "the right one opens")
        status, headers, data = server.ask("/?token=" + token)
        cookie = headers.get("set-cookie", "")
        report(status == 303 and headers["location"] == "/" and "HttpOnly" in cookie and "SameSite=Strict" in cookie and token.encode() not in data, "in the address it becomes a cookie", headers)
        report(server.ask("/api/runs", headers={"Cookie": "a=b; " + cookie.split(";")[0]})[0] == 200, "which opens too")
        report(status_of(server.raw(head(server, host=f"10.1.2.3:{server.port}", extra=f"Authorization: Bearer {token}\r\n"))) == 200, "numeric hosts are this one")
        report(status_of(server.raw(head(server, host=f"some.name:{server.port}", extra=f"Authorization: Bearer {token}\r\n"))) == 200, "and so is --host")
        report(status_of(server.raw(head(server, host=f"evil.example:{server.port}", extra=f"Authorization: Bearer {token}\r\n"))) == 421, "other names are not, with the token or without")
    finally:
        code, err = server.stop()
    report("not encrypted" in err, "a warning says that the connection is not encrypted", err)
    command = subprocess.run([RWS, "serve", RUNS, "--listen", "example.com"], capture_output=True, text=True)
    report(command.returncode == 2 and "numeric address" in command.stderr, "--listen takes a numeric address", command.stderr)
    command = subprocess.run([RWS, "serve", os.path.join(WORK, "nowhere")], capture_output=True, text=True)
    report(command.returncode == 2 and command.stderr.startswith("rws: ") and "nowhere" in command.stderr, "a folder that is not there is refused", command.stderr)
    exported = os.path.join(WORK, "exported.csv")
    subprocess.run([RWS, "export", RUNS, "--out", exported], check=True)
    command = subprocess.run([RWS, "serve", exported], capture_output=True, text=True, timeout=60)
    report(command.returncode == 2 and "exported.csv" in command.stderr, "so is a file that is no store", command.stderr)
    server = Server(RUNS, "--port", "0", "--token")
    report(server.ask("/api")[0] == 401, "--token needs one on loopback too")
    other = subprocess.run([RWS, "serve", RUNS, "--port", str(server.port)], capture_output=True, text=True)
    report(other.returncode == 2 and "Cannot listen" in other.stderr, "a port that is taken is refused", other.stderr)
    server.stop()


def test_limits(run):
    server = Server(RUNS, "--port", "0", "--max-particles", "2000000", "--max-seconds", "0.5", "--threads", "1")
    try:
        began = time.time()
        status, _, data = server.ask(f"/api/runs/{run}/infer", {"text": "stars saw ears with stars with ears", "particles": 2000000})
        report(status == 503 and b"fewer particles" in data and time.time() - began < 8, "a question that takes too long is stopped", (status, data, time.time() - began))
        report(server.ask("/api")[0] == 200, "and the server answers others")
        lines = server.ask(f"/api/runs/{run}/sample", {"n": 100000}, headers={"Accept": "application/x-ndjson"}, timeout=120)[2].splitlines()
        last = json.loads(lines[-1])
        report(1000 < len(lines) < 100001 and len(lines) % 1000 == 1 and f"{len(lines) - 1} of 100000" in last.get("error", ""), "samples that take too long are cut, and the last line says so", (len(lines), lines[-1]))
    finally:
        server.stop()


def test_queue(run):
    """A question that waits for a thread has its whole time when its turn comes."""
    server = Server(RUNS, "--port", "0", "--max-seconds", "3", "--threads", "1")
    try:
        question, times, replies = {"text": "stars saw ears with stars with ears", "particles": 200}, [], []
        for _ in range(4):  # the first ones warm up
            began = time.time()
            server.json(f"/api/runs/{run}/infer", question)
            times.append(time.time() - began)
        question["particles"] = max(200, min(100000, int(200 * 0.25 / min(times))))  # about 0.25 seconds: the last ones begin after 3 seconds
        threads = [threading.Thread(target=lambda i=i: replies.append(server.ask(f"/api/runs/{run}/infer", {**question, "seed": i}))) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report(not any(b"took more than" in data for _, _, data in replies), "the time that a question waits for a thread is not its own", [r[2][:80] for r in replies])
    finally:
        server.stop()


def test_crash(run):
    server = Server(RUNS, "--port", "0")
    try:
        child, seen = server.children()[0], server.json("/api/runs")["event"]
        os.kill(child, signal.SIGSEGV)
        good = wait(lambda: (now := server.children()) and now[0] != child)
        report(good, "a server that crashes is started again")
        report(wait(lambda: server.ask("/api/runs")[0] == 200), "and answers at the same address")
        report(server.json(f"/api/runs/{run}/infer", {"test": 0, "particles": 10})["answers"], "questions too")
        got = server.raw(head(server, path=f"/api/events?after={seen}"), timeout=2)
        report(b"event: reset" in got, "a watcher of the server that crashed is told to read all runs again", got)
    finally:
        code, err = server.stop()
    report(code == 0 and "crashed" in err, "and says so", (code, err))


def test_open():
    """--open starts $BROWSER with the address, and hands down none of the signals that the server blocks."""
    browser, seen = os.path.join(WORK, "browser"), os.path.join(WORK, "seen")
    with open(browser, "w") as file:
        file.write(f"#!{sys.executable}\nimport os, sys\ntext = open('/proc/self/status').read() + sys.argv[1]\n"
                   f"open({seen!r} + '.tmp', 'w').write(text)\nos.rename({seen!r} + '.tmp', {seen!r})\n")
    os.chmod(browser, 0o755)
    os.environ["BROWSER"] = browser
    server = Server(RUNS, "--port", "0", "--open")
    try:
        there = wait(lambda: os.path.exists(seen))
        text = open(seen).read() if there else ""
        report(text.endswith(server.address), "--open opens the address", text[-100:])
        report(re.search(r"^SigBlk:\s0+$", text, re.M), "in a browser that can be ended", re.findall(r"^Sig.*", text, re.M))
    finally:
        server.stop()
        del os.environ["BROWSER"]


def test_drain(run):
    server = Server(RUNS, "--port", "0")
    got = {}
    question = {"text": "stars saw ears with stars with ears with stars", "particles": 500}
    server.json(f"/api/runs/{run}/infer", question)
    began = time.time()
    server.json(f"/api/runs/{run}/infer", {**question, "seed": 2})
    question["particles"] = max(500, min(60000, int(500 * 4 / (time.time() - began))))  # about four seconds

    def slow():
        got["answer"] = server.ask(f"/api/runs/{run}/infer", question, timeout=60)[0]

    def stream():
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as s:
            s.sendall(f"GET /api/events HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            while s.recv(65536):
                pass
        got["stream"] = True

    threads = [threading.Thread(target=slow), threading.Thread(target=stream)]
    for thread in threads:
        thread.start()
    time.sleep(1.2)
    began = time.time()
    code, err = server.stop()
    for thread in threads:
        thread.join()
    report(code == 0 and got.get("answer") == 200, "SIGTERM lets the question that is being answered end", (code, err, got))
    report(got.get("stream") and time.time() - began < 50, "and ends the streams", time.time() - began)
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
        refused = False
    except OSError:
        refused = True
    report(refused, "afterwards nobody listens")


ENDLESS = "CREATE VIEW runs AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS name FROM c WHERE x < 0"


def test_slow_start():
    """The address does not wait for stores that take long: here six, each of which another program has locked."""
    folder, held = os.path.join(WORK, "slow-start"), []
    for i in range(6):
        shutil.copytree(os.path.join(RUNS, "ww-1"), os.path.join(folder, f"run-{i}"), symlinks=True)
        held.append(sqlite3.connect(os.path.join(folder, f"run-{i}", "metrics.sqlite"), isolation_level=None))
        held[-1].execute("BEGIN EXCLUSIVE")
    server = Server(folder, "--port", "0")
    try:
        answer = server.json("/api/runs")
        report(answer["runs"] == [] and answer["problems"] == [], "the server answers before it has read all stores", answer)
        for db in held:
            db.close()
        report(wait(lambda: len(server.json("/api/runs")["runs"]) == 6, 40), "and then it has them")
    finally:
        server.stop()


def test_endless_store():
    """SIGTERM ends the server at once while a store that never ends is read, at the start and later."""
    folder = os.path.join(WORK, "endless")
    os.makedirs(folder)
    hostile = copy_run("hostile", os.path.join(WORK, "prepared"), "ALTER TABLE runs RENAME TO others", ENDLESS)
    server = Server(folder, "--port", "0")
    shutil.copytree(hostile, os.path.join(folder, "hostile"))
    time.sleep(4)
    began = time.time()
    code, err = server.stop()
    report(code == 0 and time.time() - began < 10, "SIGTERM ends the server while it reads a store without end", (code, time.time() - began))
    process = subprocess.Popen([RWS, "serve", folder, "--port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    child = f"/proc/{process.pid}/task/{process.pid}/children"
    with open(child) as file:
        children = file.read().split()
    began = time.time()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
    gone = wait(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), 5)
    report(gone and time.time() - began < 10, "and while it starts", (process.returncode, time.time() - began, children))
    for pid in children:
        if os.path.exists(f"/proc/{pid}"):
            os.kill(int(pid), signal.SIGKILL)


# ---- warnings, folders, plug-ins, the document

def edit_store(folder, *statements):
    db = sqlite3.connect(os.path.join(folder, "metrics.sqlite"))
    for statement in statements:
        db.execute(*([statement] if isinstance(statement, str) else statement))
    db.commit()
    db.close()


def copy_run(name, folder, *statements):
    """A copy of run ww-1 whose store is changed, and has no checksums, as those of version 0.3."""
    out = os.path.join(folder, name)
    shutil.copytree(os.path.join(RUNS, "ww-1"), out)
    edit_store(out, *[(f"UPDATE {t} SET run = ?", (name,)) for t in ("runs", "metrics", "snapshots")], "DELETE FROM checksums", *statements)
    return out


def test_warnings():
    """Each warning appears where it should, and a healthy run has none."""
    folder = os.path.join(WORK, "warned")
    os.makedirs(folder)
    rise = "UPDATE metrics SET value = -10 + 0.01 * iteration WHERE name = 'log_evidence'"  # to -8 at iteration 200
    copy_run("healthy", folder, rise, "UPDATE metrics SET value = 0.5 WHERE name = 'ess'")
    copy_run("shut", folder, "UPDATE metrics SET value = -12 + 0.005 * iteration WHERE name = 'log_evidence'", "UPDATE metrics SET value = 1 WHERE name = 'ess'")
    copy_run("sharp", folder, rise, "UPDATE metrics SET value = 1 WHERE name = 'ess'")
    copy_run("falls", folder, "UPDATE metrics SET value = -8 - 0.0005 * (iteration - 100) * (iteration - 100) / 10 WHERE name = 'log_evidence'", "UPDATE metrics SET value = 0.5 WHERE name = 'ess'")
    copy_run("breaks", folder, rise, "UPDATE metrics SET value = NULL WHERE name = 'p_error' AND iteration > 100", "UPDATE metrics SET value = 0.5 WHERE name = 'ess'")
    copy_run("fails", folder, rise, "UPDATE metrics SET value = 0.5 WHERE name = 'ess'", "INSERT INTO failures VALUES('fails', 10, 'After iteration 10: a sentence.')")
    server = Server(folder, "--port", "0")
    try:
        kinds = {r["name"]: {w["kind"]: w["message"] for w in r["warnings"]} for r in server.json("/api/runs")["runs"]}
    finally:
        server.stop()
    report(kinds["healthy"] == {}, "a healthy run has no warning", kinds["healthy"])
    report(list(kinds["shut"]) == ["closed"] and "ess 1.00" in kinds["shut"]["closed"] and "branch" in kinds["shut"]["closed"], "ess 1 while log p is low: a branch may have closed", kinds["shut"])
    report(kinds["sharp"] == {}, "ess 1 alone is no warning: the guide is right", kinds["sharp"])
    report(list(kinds["falls"]) == ["falling"] and "log_evidence" in kinds["falls"]["falling"], "evidence that falls", kinds["falls"])
    report(list(kinds["breaks"]) == ["broken"] and "since iteration 110" in kinds["breaks"]["broken"], "a metric that is not a number, with the iteration", kinds["breaks"])
    report(list(kinds["fails"]) == ["failed"] and "a sentence" in kinds["fails"]["failed"], "a failure with its sentence", kinds["fails"])


def test_damage():
    """A row that is not the one that was written is found when it is read, first or later; a copy that is put back is right."""
    folder = os.path.join(WORK, "damaged")
    os.makedirs(folder)
    for name in ("number", "label", "head", "name", "whole"):
        shutil.copytree(os.path.join(RUNS, "ww-1"), os.path.join(folder, name))
    edit_store(os.path.join(folder, "number"), "UPDATE metrics SET value = value + 1e-9 WHERE iteration = 50 AND name = 'ess'")
    edit_store(os.path.join(folder, "head"), "UPDATE runs SET seconds = seconds + 1")
    edit_store(os.path.join(folder, "label"), "INSERT INTO snapshots(run, iteration, name, place, label, value) VALUES('ww-1', 10, 'made up', 0, NULL, 1)")
    edit_store(os.path.join(folder, "name"), "UPDATE runs SET run = 'ww-9'")
    unreadable = copy_run("unreadable", os.path.join(WORK, "unreadable"), "DROP TABLE snapshots",
                          "CREATE VIEW snapshots AS SELECT run, iteration, name, 0 AS place, '' AS label, value FROM metrics WHERE abs(-9223372036854775807 - 1) > 0")
    server = Server(unreadable, "--port", "0")
    problems = server.json("/api/runs")["problems"]
    server.stop()
    report(len(problems) == 1 and "views" in problems[0]["message"], "a store with a view in the place of a table is a problem", problems)
    refused = subprocess.run([RWS, "runs", os.path.join(folder, "number")], capture_output=True, text=True).stderr
    server = Server(folder, "--port", "0")

    def damaged():
        """Folders of runs with the warning, and of stores with a problem."""
        answer = server.json("/api/runs")
        place = lambda path: os.path.basename(os.path.dirname(path))
        return (sorted(place(r["store"]) for r in answer["runs"] if "damaged" in [w["kind"] for w in r["warnings"]]),
                sorted(place(p["path"]) for p in answer["problems"] if p["message"].split('"')[2] in refused))
    try:
        want = ["head", "label", "name", "number"]
        report(damaged() == (want, want), "rows that do not fit their checksum: a warning, and the sentence of rws runs", (damaged(), refused))
        groups = server.json("/api/compare?metric=p_error&panel=none")["groups"]
        named = {r["id"] for r in server.json("/api/runs")["runs"] if r["warnings"]}
        report(len(groups) == 1 and len(groups[0]["runs"]) == 5 and set(groups[0]["damaged"]) == named and len(named) == 4, "a comparison names the damaged runs", groups)
        edit_store(os.path.join(folder, "whole"), "INSERT INTO metrics(run, iteration, seconds, name, value) VALUES('ww-1', 210, 1, 'ess', 1)")
        want = ["head", "label", "name", "number", "whole"]
        report(wait(lambda: damaged() == (want, want)), "and a row that comes while the server looks", damaged())
        for name in want:
            shutil.copy(os.path.join(RUNS, "ww-1", "metrics.sqlite"), os.path.join(folder, name, "metrics.sqlite"))
        report(wait(lambda: damaged() == ([], [])), "stores that are put back are right again", damaged())
        ess = {tuple(server.json(f"/api/runs/{r['id']}/metrics?metric=ess")["metrics"][0]["values"]) for r in server.json("/api/runs")["runs"]}
        report(len(ess) == 1, "with the numbers that they had", ess)
    finally:
        server.stop()


def test_measured_again():
    """What rws eval --record adds at the last iteration is seen: for the first time, after a run was extended, and once more."""
    folder = os.path.join(WORK, "measured")
    run = os.path.join(folder, "run")
    rws("train", "gmm", "-k", "2", "--iterations", "20", "--eval-every", "100000000", "--out", run)
    server = Server(folder, "--port", "0")
    try:
        name = server.json("/api/runs")["runs"][0]["id"]
        last = lambda: server.json(f"/api/runs/{name}")["last"].get("final_ess")
        for more in ([], ["--iterations", "40"], []):
            if more:
                rws("train", "--out", run, "--resume", *more)
                wait(lambda: server.json(f"/api/runs/{name}")["iteration"] == 40)
            before = last()
            particles = "3" if before is None else "50" if more else "500"
            want = json.loads(rws("eval", run, "--record", "-k", particles, "--json").stdout)["ess"]
            report(wait(lambda: last() is not None and abs(last() - want) < 1e-8, 10), f"a metric that is measured with {particles} particles after training is seen", (before, last(), want))
        report(server.json(f"/api/runs/{name}")["warnings"] == [], "and its rows are those that were written", server.json(f"/api/runs/{name}")["warnings"])
        train = subprocess.Popen([RWS, "train", "--out", run, "--resume", "--iterations", "1000000000", "--lr", "1e-3,500000000:1e-4"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = wait(lambda: server.json(f"/api/runs/{name}")["iterations"] == 1000000000)
        train.send_signal(signal.SIGTERM)
        train.wait(30)
        report(seen, "a run that is extended has its new length at once")
    finally:
        server.stop()


def test_long_keys():
    """Runs that differ only at the end of a long text, or in the last of many settings, are curves of their own."""
    folder = os.path.join(WORK, "long")
    os.makedirs(folder)
    many = ", ".join(f"'$.settings.s{i}', 'x'" for i in range(60))
    for name, end, last in (("a", "1", "x"), ("b", "2", "x"), ("c", "2", "y")):
        copy_run(name, folder, f"UPDATE runs SET config = json_set(config, '$.settings.note', '{'z' * 600 + end}', {many}, '$.settings.zz', '{last}')")
    server = Server(folder, "--port", "0")
    try:
        groups = server.json("/api/compare?metric=p_error&panel=none")["groups"]
        report(len(groups) == 3 and all(len(g["runs"]) == 1 for g in groups), "runs that differ late are curves of their own", [len(g["runs"]) for g in groups])
    finally:
        server.stop()


class Result(ctypes.Structure):
    """rws_result, for its size."""
    _fields_ = ([(f"t{i}", ctypes.c_void_p) for i in range(6)] + [("iteration", ctypes.c_uint64), ("iterations", ctypes.c_uint64), ("seconds", ctypes.c_double)]
                + [(f"n{i}", ctypes.c_int) for i in range(3)] + [(f"p{i}", ctypes.c_void_p) for i in range(3)] + [("training", ctypes.c_bool)])


class Results(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int), ("runs", ctypes.POINTER(Result)), ("memory", ctypes.c_void_p)]


class Gathered(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int), ("n_runs", ctypes.c_int)] + [(row, ctypes.POINTER(ctypes.c_double)) for row in ("x", "median", "low", "high", "count")]


def gather(folder, metric, x):
    """The rows that rws plot draws: those of rws_gather, in the order of the reply of /api/compare."""
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(RWS), "librws.so"))
    except OSError:
        return None
    found, curve, err = ctypes.POINTER(Results)(), Gathered(), ctypes.create_string_buffer(4096)
    if library.rws_results_read((ctypes.c_char_p * 1)(folder.encode()), 1, ctypes.byref(found), err):
        raise RuntimeError(err.value)
    runs = (ctypes.POINTER(Result) * found[0].n)(*[ctypes.pointer(found[0].runs[i]) for i in range(found[0].n)])
    if library.rws_gather(runs, len(runs), metric.encode(), x, ctypes.byref(curve), err):
        raise RuntimeError(err.value)
    rows = [getattr(curve, row)[:curve.n] for row in ("x", "median", "low", "high", "count")]
    library.rws_gathered_release(ctypes.byref(curve))
    library.rws_results_free(found)
    return rows


def test_unequal():
    """Runs of unequal length have the same medians here and in rws plot: at each iteration of the runs that have a value there."""
    folder = os.path.join(WORK, "unequal")
    os.makedirs(folder)
    seed = "UPDATE runs SET config = json_set(config, '$.seed', {}, '$.iterations', {})".format
    copy_run("long", folder, seed(1, 1000))
    copy_run("middle", folder, seed(2, 1000), "UPDATE metrics SET value = 5, seconds = 2 * seconds", "UPDATE metrics SET value = NULL WHERE iteration = 1")
    copy_run("short", folder, seed(3, 200), "UPDATE metrics SET value = 3", "DELETE FROM metrics WHERE iteration > 100")
    server = Server(folder, "--port", "0")
    try:
        for number, x in enumerate(("iteration", "seconds")):
            groups = server.json(f"/api/compare?metric=p_error&panel=none&x={x}")["groups"]
            rows = [groups[0][row] for row in ("x", "median", "low", "high", "count")]
            plotted = gather(folder, "p_error", number)
            if plotted is None:
                print("# the library cannot be loaded into this Python")
                continue
            near = all(len(a) == len(b) and all(abs(p - q) <= 1e-8 * abs(q) for p, q in zip(a, b)) for a, b in zip(rows, plotted))
            report(len(groups) == 1 and near, f"runs of unequal length have the medians of rws plot, over {x}", (rows, plotted))
        at = dict(zip(groups[0]["count"], groups[0]["median"]))
        report(set(at) == {2, 3} and rows[4][0] == 2 and rows[4][-1] == 2 and at[3] == 3, "each of the runs that have a value there", rows)
    finally:
        server.stop()


def test_folders():
    """A sweep, a folder of stores, one run of a sweep, a store by its path, a run that was made from Python."""
    folder = os.path.join(WORK, "kinds")
    os.makedirs(os.path.join(folder, "deep", "er"))
    with open(os.path.join(folder, "plan"), "w") as file:
        file.write("model gmm\nmethods ws ww\nparticles 2\nseeds 1-2\nset start far near\niterations 20\neval-every 10\n")
    rws("sweep", os.path.join(folder, "plan"), "--out", os.path.join(folder, "sweep"))
    copy_run("alone", os.path.join(folder, "deep", "er"))
    python = copy_run("python", folder, "UPDATE runs SET config = json_set(config, '$.model', 'Mixture')")
    config = json.load(open(os.path.join(python, "config.json")))
    with open(os.path.join(python, "config.json"), "w") as file:
        json.dump({**config, "model": "Mixture"}, file)
    sweep = os.path.join(folder, "sweep")
    one = sorted(d for d in os.listdir(sweep) if os.path.isdir(os.path.join(sweep, d)))[0]
    for paths, want in (([folder], 10), ([sweep], 8), ([os.path.join(sweep, one)], 1), ([os.path.join(sweep, "metrics.sqlite")], 8), ([python, os.path.join(folder, "deep")], 2)):
        server = Server(*paths, "--port", "0")
        runs = server.json("/api/runs")["runs"]
        report(len(runs) == want and all(r["has_folder"] for r in runs), f"{os.path.relpath(paths[0], WORK)}: {want} runs", [r["name"] for r in runs])
        if want == 8:
            answer = server.json(f"/api/runs/{runs[0]['id']}/infer", {"fields": {"x": 30}, "particles": 20})
            report(answer["answers"], "a run of a sweep is asked")
            groups = server.json("/api/compare?metric=p_error&panel=start")["groups"]
            report(len(groups) == 4 and {g["panel"] for g in groups} == {"start = far", "start = near"} and all(len(g["runs"]) == 2 for g in groups), "and compared, with a panel for each value of a setting", [(g["label"], g["panel"]) for g in groups])
        for r in runs:
            if r["model"] == "Mixture":
                status, _, data = server.ask(f"/api/runs/{r['id']}/ask")
                report(status == 409 and b"Python" in data and server.json(f"/api/runs/{r['id']}/metrics")["metrics"], "a run from Python has curves, and a sentence where it cannot be asked", data)
        server.stop()
    os.rename(os.path.join(sweep, one), os.path.join(folder, "away"))
    server = Server(sweep, "--port", "0")
    lacking = lambda: [r["name"] for r in server.json("/api/runs")["runs"] if not r["has_folder"]]
    report(lacking() == [one], "a run whose folder is away has none", lacking())
    os.rename(os.path.join(folder, "away"), os.path.join(sweep, one))
    report(wait(lambda: not lacking()), "and has it when it is back", lacking())
    server.stop()


def test_inputs():
    """A conditional model that was resumed: its inputs are described, answers are those of the command, samples have the inputs."""
    source, plugin = os.path.join(HERE, "..", "..", "..", "examples", "lines.c"), os.path.join(WORK, "lines.so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or not os.path.exists(source):
        report(True, "a conditional model is asked # SKIP there is no C compiler, or no examples")
        return
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-I", os.path.join(HERE, "..", "..", "..", "include"), source, "-o", plugin, "-lm"], check=True)
    folder = os.path.join(WORK, "conditional")
    out = os.path.join(folder, "lines")
    rws("train", plugin, "-k", "5", "--iterations", "10", "--eval-every", "5", "--out", out)
    rws("train", plugin, "--iterations", "20", "--out", out, "--resume")
    server = Server(folder, "--port", "0", "--model", plugin)
    try:
        run = server.json("/api/runs")["runs"][0]
        fields = {f["name"]: f for f in server.json(f"/api/runs/{run['id']}/ask")["fields"]}
        report(fields["x"]["input"] is True and fields["y"]["input"] is False, "an input is described as one", fields)
        x, y = [-1, 0.5, 2], [0.2, 0.4, 1.5]
        answer = server.json(f"/api/runs/{run['id']}/infer", {"fields": {"x": x, "y": y}, "particles": 2000, "seed": 1})
        told = json.loads(rws("infer", out, "[-1 0.5 2] [0.2 0.4 1.5]", "--particles", "2000", "--seed", "1", "--json").stdout.splitlines()[-1])
        report(answer["log_evidence"] == told["log_evidence"] and answer["ess"] == told["ess"], "a run that was resumed answers at the inputs as the command does", (answer["log_evidence"], told["log_evidence"]))
        samples = server.json(f"/api/runs/{run['id']}/sample", {"n": 4, "fields": {"x": x}})["samples"]
        report(all(s["fields"]["x"] == x and len(s["fields"]["y"]) == 3 for s in samples), "and its samples have the inputs", samples[0])
        status, _, data = server.ask(f"/api/runs/{run['id']}/infer", {"fields": {"y": y}})
        report(status == 400 and b'"x"' in data.replace(b"\\", b""), "an input that is missing is named", (status, data[:300]))
    finally:
        server.stop()


def test_plugin():
    """A model of one's own, with a field and a series: refused unless it is named, then asked, sampled and scored."""
    source, plugin = os.path.join(HERE, "..", "..", "..", "examples", "hmm.c"), os.path.join(WORK, "hmm.so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or not os.path.exists(source):
        report(True, "a plug-in is asked # SKIP there is no C compiler, or no examples")
        return
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-I", os.path.join(HERE, "..", "..", "..", "include"), source, "-o", plugin, "-lm"], check=True)
    folder = os.path.join(WORK, "plugins")
    rws("train", plugin, "-k", "5", "--iterations", "20", "--eval-every", "10", "--out", os.path.join(folder, "hmm"))
    server = Server(folder, "--port", "0")
    run = server.json("/api/runs")["runs"][0]
    status, _, data = server.ask(f"/api/runs/{run['id']}/ask")
    report(status == 403 and b"--model" in data and plugin.encode() in data, "a plug-in that was not named is not loaded, and the sentence says what to do", data)
    server.stop()
    server = Server(folder, "--port", "0", "--model", plugin)
    try:
        fields = {f["name"]: f for f in server.json(f"/api/runs/{run['id']}/ask")["fields"]}
        report(fields["x"]["most"] == 60 and fields["x"]["item"] == 1 and fields["days"]["most"] == 0, "its fields are described, a series too", fields)
        samples = server.json(f"/api/runs/{run['id']}/sample", {"n": 5, "seed": 1, "particles_listed": True})["samples"]
        report(all(len(x["fields"]["x"]) == x["fields"]["days"] + 1 for x in samples), "a series of a sample is the list of its items", samples[0]["fields"])
        sample = min(samples, key=lambda x: len(x["fields"]["x"]))
        answer = server.json(f"/api/runs/{run['id']}/infer", {"fields": sample["fields"], "particles": 200, "marginals": True})
        visits = [m["visit"] for m in answer["marginals"] if m.get("site") == "z"]
        report(visits == list(range(len(sample["fields"]["x"]))), "and a datum of a question as it is", visits)
        score = server.json(f"/api/runs/{run['id']}/score", {"fields": sample["fields"], "choices": [c for c in sample["choices"] if c["site"] == "z"]})
        given = server.json(f"/api/runs/{run['id']}/infer", {"fields": sample["fields"], "given": [c for c in sample["choices"] if c["site"] == "z"], "particles": 10, "particles_listed": True})
        report(abs(given["log_evidence"] - score["log_p"]) < 1e-4 and abs(given["particles_listed"][0]["log_given"] - score["log_q"]) < 1e-4, "all choices given: log evidence is the score's log p", (given["log_evidence"], score))
        some = server.json(f"/api/runs/{run['id']}/infer", {"fields": sample["fields"], "given": [{"site": "z", "visit": 0, "value": 1}], "particles": 500, "marginals": True})
        first = [m for m in some["marginals"] if m.get("site") == "z" and m["visit"] == 0][0]
        report([(v["value"], round(v["posterior"], 6)) for v in first["values"]] == [(1, 1.0)] and some["log_evidence"] <= answer["log_evidence"] + 0.5, "a choice that is given is taken by every particle", first)
        for bad in ([[1, 2]], ["a"], 3, [1] * 61, [None]):
            status, _, data = server.ask(f"/api/runs/{run['id']}/infer", {"fields": {"days": 0, "x": bad}})
            tried("bodies that are no question", status, status == 400 and b'\\"x\\"' in data, f"a series that is {json.dumps(bad)[:20]} is refused", data)
    finally:
        server.stop()


WIDE = r"""
#include <rws.h>
#include <stdio.h>

enum { FIELDS = 100, WIDE = 20100 };

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    char name[16];
    rws_setup_field(s, "wide", WIDE);
    for (int i = 1; i < FIELDS; i++) {
        snprintf(name, sizeof name, "f%d", i);
        rws_setup_field(s, name, 1);
    }
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        for (int f = 1; f < FIELDS; f++) to[f][i] = (float)rws_random_normal(g);
        for (int k = 0; k < WIDE; k++) to[0][(size_t)i * WIDE + (size_t)k] = 0;
    }
    return RWS_OK;
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    char    name[16];
    rws_var z = rws_normal(path, "z", rws_constant(path, 0), rws_constant(path, 1));
    rws_bernoulli(path, "wide", rws_zeros(path, WIDE));
    for (int i = 1; i < FIELDS; i++) {
        snprintf(name, sizeof name, "f%d", i);
        rws_normal(path, name, z, rws_constant(path, 1));
    }
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    rws_normal(path, "z", rws_constant(path, 0), rws_constant(path, 1));
}

const rws_model rws_user_model = {
    .abi = RWS_ABI, .name = "wide", .help = "many fields, one of them wide",
    .defaults = {.batch = 2, .particles = 2, .iterations = 2, .n_test = 2, .lr = "1e-3"},
    .setup = setup, .data = data, .guide = guide, .model = model,
};
"""


def test_wide():
    """A model with 100 fields, one of 20,100 numbers, of whose samples fewer than 1000 are drawn at a time."""
    source, plugin = os.path.join(WORK, "wide.c"), os.path.join(WORK, "wide.so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        report(True, "a wide model is asked # SKIP there is no C compiler")
        return
    with open(source, "w") as file:
        file.write(WIDE)
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-I", os.path.join(HERE, "..", "..", "..", "include"), source, "-o", plugin, "-lm"], check=True)
    folder = os.path.join(WORK, "wides")
    rws("train", plugin, "--iterations", "2", "--eval-every", "2", "--out", os.path.join(folder, "wide"))
    server = Server(folder, "--port", "0", "--model", plugin)
    try:
        run = server.json("/api/runs")["runs"][0]["id"]
        names = [f["name"] for f in server.json(f"/api/runs/{run}/ask")["fields"]]
        report(names == ["wide"] + [f"f{i}" for i in range(1, 100)], "a model of 100 fields has all of them", len(names))
        fields = {"wide": [0] * 20100, **{f"f{i}": 0.25 for i in range(1, 100)}}
        status, _, data = server.ask(f"/api/runs/{run}/infer", {"fields": fields, "particles": 20})
        report(status == 200 and json.loads(data)["log_evidence"] < 0, "and is asked by all of them", (status, data[:300]))
        status, _, data = server.ask(f"/api/runs/{run}/infer", {"fields": {**fields, "f99": "x"}, "particles": 20})
        report(status == 400 and b"f99" in data, "the last of which is read", (status, data[:300]))
        values = [v for name, v in server.json(f"/api/runs/{run}/sample", {"n": 1})["samples"][0]["fields"].items() if name != "wide"]
        single = lambda v: struct.unpack("f", struct.pack("f", v))[0]
        report(len(values) == 99 and all(float("%.9g" % single(v)) == v for v in values), "numbers have the digits of a float", values[:5])
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.request("POST", f"/api/runs/{run}/sample", json.dumps({"n": 1000}), {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        lines = [line[-2000:] for line in connection.getresponse()]
        connection.close()
        report(len(lines) == 1000 and len(set(lines)) == 1000, "samples in small lots differ", (len(lines), len(set(lines))))
    finally:
        server.stop()
    test_memory(folder, plugin)


def peak(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024


def test_memory(folder, plugin):
    """Clients that do not read their answers hold no more than the memory for answers, and others are answered."""
    server = Server(folder, "--port", "0", "--model", plugin, "--max-memory", "32")
    lazy = []
    try:
        run = server.json("/api/runs")["runs"][0]["id"]
        size = len(server.ask(f"/api/runs/{run}/sample", {"n": 1})[2])
        before = peak(server.children()[0])
        body = json.dumps({"n": max(1, 4_000_000 // size)})
        for _ in range(60):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.sendall(f"POST /api/runs/{run}/sample HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\nAccept: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            lazy.append(s)
        good = wait(lambda: server.ask(f"/api/runs/{run}/sample", {"n": 1})[0] == 200, 60)
        report(good, "a question is answered beside 60 clients that do not read their answers")
        time.sleep(3)
        grown = peak(server.children()[0]) - before
        report(grown < 120, "the 240 MB of their answers are not all in memory", f"{grown:.0f} MB")
    finally:
        for s in lazy:
            s.close()
        report(server.stop()[0] == 0, "and the server ends")


SLOW = r"""
#include <rws.h>
#include <stdlib.h>
#include <unistd.h>

enum { TIMES = 300 };

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) to[0][i] = (float)rws_random_normal(g);
    return RWS_OK;
}

static void walk(rws_path *path, bool sleeps)
{
    for (int t = 0; t < TIMES; t++) {
        if (sleeps) usleep(100000);
        rws_var z = rws_normal(path, "z", rws_constant(path, 0), rws_constant(path, 1));
        if (!rws_branch(path, rws_greater(path, z, rws_constant(path, -1000)))) return; /* waits for the draw */
    }
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    walk(path, getenv("SLOW_MODEL") != NULL);
    rws_normal(path, "x", rws_constant(path, 0), rws_constant(path, 1));
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    walk(path, false);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI, .name = "slow", .help = "a lot of samples takes half a minute",
    .defaults = {.batch = 2, .particles = 2, .iterations = 2, .n_test = 2, .lr = "1e-3"},
    .setup = setup, .data = data, .guide = guide, .model = model,
};
"""


def test_slow_lot():
    """A lot of samples that takes half a minute ends when its client goes away, and when the server does."""
    source, plugin = os.path.join(WORK, "slow.c"), os.path.join(WORK, "slow.so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        report(True, "a lot of samples is stopped # SKIP there is no C compiler")
        return
    with open(source, "w") as file:
        file.write(SLOW)
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-I", os.path.join(HERE, "..", "..", "..", "include"), source, "-o", plugin, "-lm"], check=True)
    folder = os.path.join(WORK, "slows")
    rws("train", plugin, "--iterations", "2", "--eval-every", "2", "--eval-particles", "2", "--out", os.path.join(folder, "slow"))
    rws("train", "gmm", "--iterations", "2", "--eval-every", "2", "--out", os.path.join(folder, "fast"))
    os.environ["SLOW_MODEL"] = "1"
    server = Server(folder, "--port", "0", "--model", plugin, "--threads", "1")
    del os.environ["SLOW_MODEL"]
    runs = {r["name"]: r["id"] for r in server.json("/api/runs")["runs"]}
    for run in runs.values():
        server.json(f"/api/runs/{run}/ask")  # loads the checkpoint

    def begin(lines):
        """A connection on which the samples have been asked for and are being drawn."""
        body = json.dumps({"n": 1000}).encode()
        accept = "Accept: application/x-ndjson\r\n" if lines else ""
        s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        s.sendall(f"POST /api/runs/{runs['slow']}/sample HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\n{accept}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(1)
        return s

    for lines in (False, True):
        begin(lines).close()
        began = time.time()
        status = server.ask(f"/api/runs/{runs['fast']}/sample", {"n": 1}, timeout=60)[0]
        report(status == 200 and time.time() - began < 5, f"a lot of samples ends when its client goes away, in {'lines' if lines else 'one piece'}", (status, time.time() - began))
    with begin(True) as s:
        began = time.time()
        code, err = server.stop()
        seconds = time.time() - began
        got = b""
        while more := s.recv(65536):
            got += more
    report(code == 0 and seconds < 5, "and when the server ends", (code, err, seconds))
    report(b"about to end, and 0 of 1000" in got, "which its client reads", got)


def test_streaming(run):
    """The first line of a long answer comes long before the last, and a client that goes away ends the work."""
    server = Server(RUNS, "--port", "0", "--threads", "1")
    try:
        body = json.dumps({"data": [{"text": "stars saw ears with stars with ears"}] * 60, "particles": 3000}).encode()
        request = f"POST /api/runs/{run}/infer HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        began, first, data = time.time(), None, b""
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
            s.sendall(request)
            while more := s.recv(65536):
                data += more
                if first is None and b'"answers"' in data:
                    first = time.time() - began
        whole = time.time() - began
        report(data.count(b'"answers"') == 60 and first < whole / 4, "lines come as they are computed", (first, whole))
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
            s.sendall(request)
            s.recv(1000)
        began = time.time()
        server.json(f"/api/runs/{run}/infer", {"text": "stars saw ears", "particles": 10})
        report(time.time() - began < whole / 2, "the work for a client that went away ends", (time.time() - began, whole))
    finally:
        server.stop()


def test_document(server):
    """The commands of docs/serve.md, pasted one after the other into a shell."""
    missing = [c for c in ("bash", "curl", "jq") if not shutil.which(c)]
    if missing:
        report(True, f"the commands of docs/serve.md # SKIP there is no {missing[0]}")
        return
    with open(os.path.join(HERE, "..", "..", "..", "docs", "serve.md")) as file:
        text = file.read()
    lines, block = [], re.findall(r"^    (.*)$", text[text.index("## The API"):text.index("## Safety")], re.M)
    for line in block:  # a line that ends with a backslash continues
        if lines and lines[-1].endswith("\\"):
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    script = ["set -u", f"cd {WORK}", "curl() { command curl -sS --fail-with-body \"$@\"; }"]
    asked = [i for i, line in enumerate(lines) if "curl" in line and "()" not in line]
    for i, line in enumerate(lines):
        line = line.replace("localhost:8765", server.host)
        script.append(f"{{ {line}\n}} > out-{i} 2> err-{i} && echo ok {i}" if i in asked else line)
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, timeout=120)
    good = {int(n) for n in re.findall(r"^ok (\d+)$", done.stdout, re.M)}
    for i in asked:
        with open(os.path.join(WORK, f"out-{i}"), "rb") as file:
            head = file.read(200)
        report(i in good and (head or "-O" in lines[i]) and b'"error"' not in head, f"docs/serve.md: {' '.join(lines[i].split('#')[0].split())[:90]}", (done.stderr, head))
    report(len(asked) >= 15 and os.path.getsize(os.path.join(WORK, "p_error.pdf")) > 1000, "all commands of the document were run", len(asked))


def test_undisturbed(server, disturb):
    """A run that trains while bad requests come has the numbers of one that is left alone."""
    arguments = ["train", "gmm", "--method", "ww", "-k", "5", "--iterations", "20000", "--eval-every", "2000"]
    numbers = lambda name: sqlite3.connect(os.path.join(WORK, name, "metrics.sqlite")).execute("SELECT iteration, name, value FROM metrics ORDER BY 1, 2").fetchall()
    rws(*arguments, "--out", os.path.join(WORK, "calm"))
    train = subprocess.Popen([RWS, *arguments, "--out", os.path.join(RUNS, "attacked")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    disturb()
    code, err = train.wait(600), train.stderr.read()
    shutil.move(os.path.join(RUNS, "attacked"), os.path.join(WORK, "attacked"))
    report(code == 0 and numbers("attacked") == numbers("calm"), "training beside bad requests has the same numbers", (code, err))


def print_tries():
    print("# bad requests             tries  outcomes (0: closed without a reply)")
    for kind, statuses in tries.items():
        print(f"# {kind:58} {sum(statuses.values()):4}  {', '.join(f'{s} x {n}' for s, n in sorted(statuses.items()))}")
    print(f"# {'in all':58} {sum(sum(s.values()) for s in tries.values()):4}")


def main():
    os.makedirs(RUNS)
    for seed in "123":
        rws("train", "gmm", "--method", "ww", "-k", "5", "--seed", seed, "--iterations", "200", "--eval-every", "10", "--out", os.path.join(RUNS, f"ww-{seed}"))
    rws("train", "gmm", "--method", "ws", "-k", "5", "--iterations", "200", "--eval-every", "10", "--out", os.path.join(RUNS, "ws-1"))
    rws("train", "pcfg", "--method", "ws", "-k", "5", "--iterations", "20", "--eval-every", "10", "--set", "rules=grammar", "--out", os.path.join(RUNS, "grammar"))
    server = Server(RUNS, "--port", "0")
    try:
        ids = {r["name"]: r["id"] for r in server.json("/api/runs")["runs"]}
        report(server.address == f"http://127.0.0.1:{server.port}/", "the address is printed", server.address)
        with open(f"/proc/net/tcp") as file:
            listening = [l.split()[1] for l in file if l.split()[3] == "0A" and l.split()[1].endswith(f":{server.port:04X}")]
        report(listening == [f"0100007F:{server.port:04X}"], "it listens on 127.0.0.1 only", listening)
        test_description(server, ids["ww-1"])
        test_api(server, ids)
        test_document(server)
        test_undisturbed(server, lambda: test_safety(server, ids["ww-1"]))
        slow = threading.Thread(target=test_slow, args=(server,))
        slow.start()
        test_live(server)
        slow.join()
    finally:
        code, err = server.stop()
    report(code == 0 and err == "", "it ends with status 0 and without a word", (code, err))
    test_many(ids["ww-1"])
    test_outside()
    test_warnings()
    test_damage()
    test_measured_again()
    test_long_keys()
    test_unequal()
    test_folders()
    test_inputs()
    test_plugin()
    test_wide()
    test_slow_lot()
    test_streaming(ids["grammar"])
    test_token()
    test_limits(ids["grammar"])
    test_queue(ids["grammar"])
    test_crash(ids["ww-1"])
    test_open()
    test_drain(ids["grammar"])
    test_slow_start()
    test_endless_store()
    print_tries()
    print(f"1..{count}")
    return failed > 0


try:
    status = main()
finally:
    shutil.rmtree(WORK, ignore_errors=True)
sys.exit(status)
