"""test_browser.py PROGRAM [--screenshots FOLDER --runs FOLDER] - the page of rws serve in a real browser.

Prints TAP; skipped, with a message, where there is no chromium. A run that is trained meanwhile appears and moves; curves
are zoomed, switched off, slid through; a sentence is asked; digits are drawn and found; both themes; no error on the
console; no request leaves the machine. --screenshots also writes the pictures of docs/, of the runs in --runs.
"""
import argparse
import gzip
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, missing  # noqa: E402

count = failed = 0


def report(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good and detail != "":
        print(f"# {str(detail)[:600]}", flush=True)


class Served:
    def __init__(self, rws, folder, *more):
        self.process = subprocess.Popen([rws, "serve", folder, "--port", "0", *more], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def runs(self):
        return {r["name"]: r for r in json.load(urllib.request.urlopen(self.address + "api/runs"))["runs"]}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


# Strokes of digits on a field of 1 x 1: a one, a seven, a zero.
STROKES = {
    1: [[(0.5, 0.05), (0.48, 0.3), (0.46, 0.6), (0.44, 0.95)]],
    7: [[(0.15, 0.1), (0.5, 0.08), (0.85, 0.1), (0.7, 0.4), (0.55, 0.7), (0.45, 0.98)]],
    0: [[(0.5, 0.05), (0.25, 0.2), (0.15, 0.5), (0.25, 0.8), (0.5, 0.95), (0.75, 0.8), (0.85, 0.5), (0.75, 0.2), (0.5, 0.05)]],
}


def draw_digit(browser, digit, left, top, side):
    """On the pad, in shares of its side."""
    x, y, wide, high = browser.box("canvas.pad")
    for stroke in STROKES[digit]:
        browser.drag([(x + wide * (left + side * a), y + high * (top + side * b)) for a, b in stroke])


def test_page(rws, browser, served, folder):
    runs = served.runs()
    go = lambda hash: (browser.go("about:blank"), browser.go(served.address + hash))

    go("#/runs")
    browser.wait("document.querySelectorAll('tr[data-id]').length > 0")
    report(browser.js("return document.querySelectorAll('tr[data-id]').length") == len(runs), "every run has a row")
    report(browser.wait("document.querySelector('#live').dataset.state === 'live'"), "the page is live")
    browser.type("#filter", "method=ws model=gmm")
    report(browser.wait("document.querySelectorAll('tr[data-id]').length === 2"), "the filter keeps two runs")
    browser.js("const f = document.querySelector('#filter'); f.value = 'nothing-like-this'; f.dispatchEvent(new Event('input'))")
    report("No run matches" in browser.js("return document.querySelector('main').textContent"), "a filter that nothing meets says what to do")
    browser.js("const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input'))")
    browser.js("const s = document.querySelector('.head select'); s.value = 'method'; s.dispatchEvent(new Event('change'))")
    report(browser.js("return document.querySelectorAll('section.group').length") == len({r["method"] for r in runs.values()}), "runs are grouped by method")
    browser.js("const s = document.querySelector('.head select'); s.value = 'none'; s.dispatchEvent(new Event('change'))")
    browser.js("[...document.querySelectorAll('th button.sort')].find(b => b.textContent.startsWith('log evidence')).click()")
    values = browser.js("const i = [...document.querySelectorAll('th')].findIndex(t => t.getAttribute('aria-sort')); return [...document.querySelectorAll('tr[data-id]')].map(r => parseFloat(r.children[i].textContent.replace('−', '-').replace(',', '')))")
    report(values == sorted(values) and len(values) == len(runs), "and sorted by a metric", values)
    browser.js("const s = document.querySelector('.head select'); s.value = 'model'; s.dispatchEvent(new Event('change'))")

    train = subprocess.Popen([rws, "train", "gmm", "--method", "dww", "-k", "5", "--iterations", "100000000", "--eval-every", "300", "--save-every", "0", "--out", os.path.join(folder, "live")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        row = "[...document.querySelectorAll('tr[data-id]')].find(r => r.textContent.includes('live'))"
        report(browser.wait(f"!!{row} && {row}.textContent.includes('training')", 20), "a run that is trained meanwhile appears")
        iteration = f"Number({row}.querySelector('.c-iteration').textContent.replace(/\\D/g, ''))"
        first = browser.js(f"return {iteration}")
        report(browser.wait(f"{iteration} > {first}", 20), "and moves")
        browser.js(f"{row}.querySelector('a').click()")
        browser.wait("document.querySelectorAll('.chart canvas').length > 0")
        report("left" in browser.js("return document.querySelector('.run-head').textContent"), "its page says how much time is left")
        last = "document.querySelector('.chart .last').textContent + document.querySelector('.run-head .progress').title + document.querySelector('.sides dd').textContent"
        before = browser.js(f"return {last}")
        report(browser.wait(f"({last}) !== {json.dumps(before)}", 20), "and its curves grow")
    finally:
        train.send_signal(signal.SIGTERM)
        train.wait(30)
    report(browser.wait("document.querySelector('.pill').textContent === 'stopped'", 20), "a run that was stopped is said to be")

    go("#/compare?model=gmm&metrics=p_error&filter=method%3Dww,ws")
    browser.wait("document.querySelectorAll('.panels .chart canvas').length > 0")
    report(browser.js("return document.querySelectorAll('.legend .key').length") >= 2, "a comparison has a curve for each method")
    x, y, wide, high = browser.box(".plot")
    browser.hover(x + wide * 0.6, y + high * 0.5)
    browser.wait("!document.querySelector('.tip').hidden")
    tip = browser.js("return document.querySelector('.tip').textContent")
    report("iteration" in tip and "WW" in tip and "…" in tip, "hovering shows values with their quartiles", tip)
    ranges = "const c = document.querySelector('.plot'); return [...c.querySelectorAll('.dygraph-axis-label-x')].map(l => l.textContent).join(' ')"
    before = browser.js(ranges)
    browser.drag([(x + wide * 0.3, y + high * 0.5), (x + wide * 0.45, y + high * 0.5), (x + wide * 0.6, y + high * 0.5)], 60)
    report(browser.wait("document.querySelector('.chart-note').textContent.includes('double-click')") and browser.js(ranges) != before, "dragging zooms", browser.js(ranges))
    browser.double_click(x + wide * 0.5, y + high * 0.5)
    report(browser.wait("document.querySelector('.chart-note').textContent === ''"), "a double click shows everything again")
    ink = "const c = document.querySelectorAll('.plot canvas')[0], d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n"
    time.sleep(0.5)
    before = browser.js(ink)
    browser.click(".legend .key")
    report(browser.js(ink) < before and browser.js("return document.querySelector('.legend .key').getAttribute('aria-pressed')") == "false", "a click on a name hides its curve")
    browser.click(".legend .key")
    browser.js("[...document.querySelectorAll('.toggle')].find(t => t.textContent === 'log y').click()")
    report(browser.wait("location.hash.includes('log=y')"), "the view is in the address")
    browser.js("[...document.querySelectorAll('.toggle')].find(t => t.textContent === 'log x').click()")
    browser.wait("location.hash.includes('log=y%2Cx')")
    browser.wait("[...document.querySelectorAll('.plot .dygraph-axis-label-x')].some(l => l.textContent === '100')")
    labels = browser.js("return [...document.querySelector('.plot').querySelectorAll('.dygraph-axis-label-x')].map(l => l.textContent)")
    report(browser.js(ink) > 500 and "100" in labels and "1,000" in labels, "a logarithmic x axis has its curves, and powers of ten", labels)
    browser.js("[...document.querySelectorAll('.toggle')].find(t => t.textContent === 'log x').click()")
    browser.js("[...document.querySelectorAll('.toggle')].find(t => t.textContent === 'seconds').click()")
    report(browser.wait("[...document.querySelectorAll('.x-name')].every(x => x.textContent.includes('(s)'))"), "over seconds, with the unit")
    links = browser.js("return [...document.querySelectorAll('.tools a')].map(a => a.href)")
    sizes = [len(urllib.request.urlopen(link).read()) for link in links]
    report(len(links) == 3 and min(sizes) > 200, "downloads as SVG, PDF and CSV", sizes)

    gmm = next(r for r in runs.values() if r["model"] == "gmm" and r["method"] == "ww")
    go(f"#/run/{gmm['id']}")
    browser.wait("document.querySelectorAll('.hinton').length >= 4")
    squares = "return document.querySelector('.hinton').innerHTML"
    before = browser.js(squares)
    browser.js("const s = document.querySelectorAll('.slide input')[1] || document.querySelector('.slide input'); s.value = 0; s.dispatchEvent(new Event('input'))")
    report(browser.js(squares) != before, "a slider shows Hinton diagrams of earlier iterations")
    air = next((r for r in runs.values() if r["model"] == "air"), None)
    if air:
        go(f"#/run/{air['id']}")
        browser.wait("document.querySelector('img.gallery') && document.querySelector('img.gallery').naturalWidth > 0")
        before = browser.js("return document.querySelector('img.gallery').src")
        browser.js("const s = document.querySelector('.slide input'); s.value = 0; s.dispatchEvent(new Event('input'))")
        report(browser.wait(f"document.querySelector('img.gallery').src !== {json.dumps(before)} && document.querySelector('img.gallery').naturalWidth > 0"), "and pictures")

    pcfg = next(r for r in runs.values() if r["model"] == "pcfg")
    go(f"#/ask/{pcfg['id']}")
    browser.wait("document.querySelectorAll('.tree').length > 0")
    browser.type("#sentence", "stars saw astronomers with telescopes")
    browser.wait("[...document.querySelectorAll('.tree .word')].some(w => w.textContent === 'telescopes')")
    answer = browser.js("return document.querySelector('.tree-card').textContent")
    report(all(w in answer for w in ("posterior", "exact", "guide")), "a sentence that is typed has its trees, with posterior, exact and guide", answer)
    browser.type("#sentence", "stars saw nonsense")
    report(browser.wait("document.querySelector('.answer').textContent.includes('no word')"), "a word that is not known has its sentence")
    browser.click("#draw-samples")
    report(browser.wait("document.querySelectorAll('.samples .sentence').length > 0"), "samples are drawn")
    go(f"#/ask/{gmm['id']}")
    browser.wait("document.querySelectorAll('.bar-line').length > 0")
    before = browser.js("return document.querySelector('.answer').textContent")
    browser.js("const s = document.querySelector('.form-row input[type=range]'); s.value = 120; s.dispatchEvent(new Event('input'))")
    report(browser.wait(f"document.querySelector('.answer').textContent !== {json.dumps(before)}"), "a form asks any model")
    if air:
        go(f"#/ask/{air['id']}")
        browser.wait("document.querySelector('canvas.pad')")
        time.sleep(0.3)
        draw_digit(browser, 0, 0.1, 0.12, 0.36)
        browser.wait("document.querySelectorAll('.pictures canvas').length > 0")
        draw_digit(browser, 7, 0.52, 0.5, 0.36)
        marginal = "document.querySelector('.marginals') && document.querySelector('.marginals').textContent"
        browser.wait(marginal, 30)
        time.sleep(1.5)
        found = browser.js(f"return {marginal}")
        report(found and browser.js("return document.querySelectorAll('.pictures canvas').length") > 0, "digits that are drawn are found while one draws", found)
        colours = browser.js("const d = document.querySelector('canvas.pad').getContext('2d').getImageData(0, 0, 400, 400).data; let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] > 200 && d[i + 2] < 60; return n")
        report(colours > 50, "and a box is drawn around them", colours)

    go("#/run/0000000000000000")
    report(browser.wait("document.querySelector('main').textContent.includes('There is no such run')"), "a run that is not there says so")
    go("#/runs")
    browser.wait("document.querySelectorAll('tr[data-id]').length > 0")
    browser.js("document.activeElement.blur()")
    browser.keys("c")
    report(browser.wait("location.hash.startsWith('#/compare')"), "keys move between pages")
    browser.keys("r")
    browser.wait("document.querySelectorAll('tr[data-id]').length > 0")
    browser.keys("/")
    report(browser.js("return document.activeElement.id") == "filter", "and to the filter")
    shades = []
    for scheme in ("light", "dark"):
        browser.theme(scheme)
        time.sleep(0.2)
        shades.append(browser.js("return getComputedStyle(document.body).backgroundColor"))
    report(shades[0] != shades[1], "there is a light and a dark theme", shades)
    browser.theme("light")
    browser.size(390, 844)
    wides = []
    for page in ("#/runs", "#/compare?model=gmm", f"#/run/{gmm['id']}", f"#/ask/{pcfg['id']}"):
        go(page)
        time.sleep(0.8)
        wides.append(browser.js("return document.documentElement.scrollWidth"))
    report(max(wides) <= 390, "nothing is wider than a phone", wides)
    go("#/compare?model=gmm")
    browser.wait("document.querySelectorAll('.panels .chart canvas').length > 0")
    browser.wait("[...document.querySelectorAll('.plot')].every(p => p.querySelectorAll('.dygraph-axis-label-x').length >= 2 && p.querySelectorAll('.dygraph-axis-label-y').length >= 2)")
    report(True, "and every axis has labels there")
    browser.size(1360, 900)
    browser.go("about:blank")


def test_keys(browser, served):
    """Everything that the mouse does, by keys."""
    go = lambda hash: (browser.go("about:blank"), browser.go(served.address + hash))
    go("#/runs")
    browser.wait("document.querySelectorAll('tr[data-id]').length > 1")
    browser.js("document.querySelector('tr[data-id]').focus()")
    browser.keys("\ue015")
    report(browser.js("return [...document.querySelectorAll('tr[data-id]')].indexOf(document.activeElement)") == 1, "arrows move in the table")
    browser.keys(" ")
    report(browser.js("return !document.querySelector('.actions').hidden && document.querySelector('.actions').textContent.includes('1 run')"), "the space bar chooses a run")
    browser.keys(" ")
    browser.js("document.querySelectorAll('tr[data-id]')[1].focus()")
    browser.keys("\ue007")
    report(browser.wait("location.hash.startsWith('#/run/')"), "Enter opens it")
    browser.keys("?")
    report(browser.wait("document.getElementById('keys').open"), "the keys are listed")
    browser.js("document.getElementById('keys').close()")
    go("#/compare?model=gmm&metrics=p_error")
    browser.wait("document.querySelectorAll('.panels .chart canvas').length > 0")
    browser.js("document.querySelector('.plot').focus()")
    browser.keys("\ue014\ue014\ue014")
    tip = browser.js("const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent")
    browser.keys("\ue010")
    last = browser.js("return document.querySelector('.tip').textContent")
    report("iteration" in tip and "WW" in tip and last != tip, "arrows move along a curve, End to its end", (tip, last))
    browser.keys("\ue00c")
    report(browser.js("return document.querySelector('.tip').hidden"), "Escape leaves it")


def test_views(rws, browser, served, folder):
    """What is shown is in the address, several panels are read as one, and numbers stand beside the curves."""
    go = lambda hash: (browser.go("about:blank"), browser.go(served.address + hash))
    drawn = "document.querySelectorAll('.panels .chart canvas').length >= 4"
    go("#/compare?model=gmm&metrics=p_error&panel=method&filter=method%3Dww,ws")
    browser.wait(drawn)
    axes = "return [...document.querySelectorAll('.plot')].map(p => [...p.querySelectorAll('.dygraph-axis-label-y')].map(l => l.textContent).join())"
    same = "return [...document.querySelectorAll('.toggle')].find(t => t.textContent === 'same y')"
    shared = browser.js(axes)
    browser.js(same.replace("return ", "") + ".click()")
    own = browser.wait(f"location.hash.includes('axes=own') && (() => {{ const a = (() => {{ {axes} }})(); return new Set(a).size > 1 && a }})()")
    report(len(set(shared)) == 1 and len(set(own)) == 2, "panels share their y axis, unless it is switched off", (shared, own))
    browser.js(same.replace("return ", "") + ".click()")
    x, y, wide, high = browser.box(".plot")
    browser.hover(x + wide * 0.6, y + high * 0.5)
    tips = browser.wait("(() => { const t = [...document.querySelectorAll('.tip')].filter(t => !t.hidden).map(t => t.querySelector('.tip-x').textContent); return t.length === 2 && t })()")
    report(len(set(tips)) == 1, "a panel shows the numbers at the place where the mouse is in another", tips)
    browser.drag([(x + wide * 0.3, y + high * 0.5), (x + wide * 0.45, y + high * 0.5), (x + wide * 0.6, y + high * 0.5)], 60)
    browser.wait("location.hash.includes('from=')")
    browser.js("const s = [...document.querySelectorAll('.controls label')].find(l => l.textContent.startsWith('Smoothing')).querySelector('select'); s.value = '0.9'; s.dispatchEvent(new Event('change'))")
    browser.wait("location.hash.includes('smooth=0.9')")
    browser.click(".legend .key")
    browser.wait("location.hash.includes('hidden=')")
    kept, ranges = browser.js("return location.hash"), "[...document.querySelectorAll('.plot')].map(p => [...p.querySelectorAll('.dygraph-axis-label-x')].map(l => l.textContent).join())"
    browser.wait(f"new Set({ranges}).size === 1")
    before = browser.js(f"return {ranges}")
    go(kept)
    browser.wait(drawn)
    after = browser.js(f"return {ranges}")
    hidden = browser.js("return [...document.querySelectorAll('.legend .key')].map(k => k.getAttribute('aria-pressed')).join()")
    report(after == before and len(set(after)) == 1 and hidden == "false,true", "an address that is sent shows the same zoom, in all panels, and the same curves", (before, after, hidden, kept))
    medians = browser.js("return [...document.querySelectorAll('.numbers tbody tr')].map(r => r.textContent)")
    report(len(medians) == 2, "medians stand in a table", medians)

    ids = [r["id"] for r in served.runs().values() if r["name"] in ("gmm-ww-1", "gmm-ws-2")]
    go(f"#/compare?runs={ids[0]},{ids[-1]}")
    beside = browser.wait("document.querySelectorAll('.numbers').length === 2 && [...document.querySelectorAll('.numbers')][1].textContent")
    report(browser.js("return document.querySelectorAll('.numbers td.best').length") == 2, "the best medians are set off")
    report("method" in beside and "seed" in beside and "batch" not in beside, "settings in which two runs differ stand side by side", beside)

    go("#/runs?filter=method%3Dww&group=none&sort=started&down=1&hide=seed")
    browser.wait("document.querySelectorAll('tr[data-id]').length > 0")
    shown = browser.js("return [document.querySelectorAll('tr[data-id]').length, document.querySelector('#filter').value, document.querySelector('[aria-sort]').textContent, [...document.querySelectorAll('th')].some(t => t.textContent === 'seed')]")
    report(shown[1] == "method=ww" and shown[2].startswith("started") and not shown[3], "filter, order and columns are in the address", shown)
    browser.js("[...document.querySelectorAll('.menu label')].find(l => l.textContent === 'seed').querySelector('input').click()")
    report(browser.wait("[...document.querySelectorAll('th')].some(t => t.textContent === 'seed') && !location.hash.includes('hide')"), "columns are chosen")
    browser.js("document.activeElement.blur()")
    browser.keys("\ue015")
    report(browser.js("return document.activeElement === document.querySelector('tr[data-id]')"), "an arrow begins at the first row")

    go(f"#/ask/{ids[0]}")
    browser.wait("document.querySelectorAll('.bar-line').length > 0")
    browser.js("const s = document.querySelector('.form-row input'); s.value = 12.5; s.dispatchEvent(new Event('input'))")
    browser.wait("decodeURIComponent(location.hash).includes('\"x\":12.5')")
    kept = browser.js("return location.hash")
    go(kept)
    browser.wait("document.querySelectorAll('.bar-line').length > 0")
    report(browser.js("return document.querySelector('.form-row input').value") == "12.5", "a question is in the address", kept)

    copied = os.path.join(folder, "copied")
    shutil.copytree(os.path.join(folder, "gmm-ww-1"), copied)
    until = time.time() + 20
    while "copied" not in served.runs() and time.time() < until:
        time.sleep(0.2)
    names = sorted(served.runs())
    report("copied" in names and "gmm-ww-1" in names, "a folder that was copied has its own name", names)
    shutil.rmtree(copied)
    request = urllib.request.Request(served.address + "api/runs", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        packed, encoding = answer.read(), answer.headers["Content-Encoding"]
    plain = urllib.request.urlopen(served.address + "api/runs").read()
    report(encoding == "gzip" and len(packed) < len(plain) / 2 and json.loads(gzip.decompress(packed))["runs"], "replies are compressed for clients that take it", (encoding, len(packed), len(plain)))


def test_tips(rws, browser):
    """Sixteen curves in a panel: the best first, and how many more there are; runs that train come first in the list."""
    with tempfile.TemporaryDirectory() as folder:
        for i in range(16):
            subprocess.run([rws, "train", "gmm", "-k", "2", "--lr", f"{i + 1}e-3", "--iterations", "40", "--eval-every", "10", "--out", os.path.join(folder, f"run{i:02}")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        train = subprocess.Popen([rws, "train", "gmm", "-k", "2", "--lr", "9e-9", "--iterations", "100000000", "--eval-every", "1000", "--out", os.path.join(folder, "zebra")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        served = Served(rws, folder)
        try:
            browser.go("about:blank")
            browser.go(served.address + "#/runs")
            report(browser.wait("document.querySelector('tr[data-id] .name') && document.querySelector('tr[data-id] .name').textContent === 'zebra'", 20), "a run that is trained stands above the others")
            train.send_signal(signal.SIGTERM)
            train.wait(30)
            browser.go(served.address + "#/compare?metrics=p_error&filter=run")
            browser.wait("document.querySelectorAll('.panels .chart canvas').length > 0")
            x, y, wide, high = browser.box(".plot")
            browser.hover(x + wide * 0.95, y + high * 0.5)
            browser.wait("!document.querySelector('.tip').hidden")
            values = browser.js("return [...document.querySelectorAll('.tip b')].map(b => Number(b.textContent))")
            more = browser.js("return document.querySelector('.tip-more').textContent")
            report(len(values) == 14 and values == sorted(values) and "2 more" in more, "a tip has the best curves first, and says how many more there are", (values, more))
        finally:
            if train.poll() is None:
                train.kill()
            train.wait()
            served.stop()


def change_store(folder, name, *statements):
    """A copy of a run of gmm, with its store changed."""
    source, out = os.path.join(folder, "gmm-ww-1"), os.path.join(folder, name)
    shutil.copytree(source, out)
    db = sqlite3.connect(os.path.join(out, "metrics.sqlite"))
    for table in ("runs", "metrics", "snapshots"):
        db.execute(f"UPDATE {table} SET run = ?", (name,))
    db.execute("DELETE FROM checksums")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def test_live_and_warned(rws, browser, served, folder):
    """What appears meanwhile: warnings, failures, problems; and a page that does not take the focus away."""
    browser.go("about:blank")
    browser.go(served.address + "#/runs")
    browser.wait("document.querySelectorAll('tr[data-id]').length > 0")
    browser.js("document.getElementById('filter').focus()")
    change_store(folder, "warned-shut", "UPDATE metrics SET value = value * 1.5 WHERE name = 'log_evidence'", "UPDATE metrics SET value = 1 WHERE name = 'ess'")
    change_store(folder, "warned-nan", "UPDATE metrics SET value = NULL WHERE name = 'p_error' AND iteration > 1000")
    change_store(folder, "warned-falls", "UPDATE metrics SET value = -5 - 0.00001 * (iteration - 1000) * (iteration - 1000) / 10 WHERE name = 'log_evidence'")
    change_store(folder, "warned-fails", "INSERT INTO failures VALUES('warned-fails', 10, 'After iteration 10: <b>a sentence</b>.')")
    row = lambda name: f"[...document.querySelectorAll('tr[data-id]')].find(r => r.textContent.includes('{name}'))"
    for name, words in (("warned-shut", "branch closed?"), ("warned-nan", "not a number"), ("warned-falls", "falling"), ("warned-fails", "failed")):
        report(browser.wait(f"!!{row(name)} && {row(name)}.textContent.includes('{words}')", 20), f"a run that is {words.rstrip('?')} has its sign")
    report(browser.js("return [...document.querySelectorAll('tr.trouble')].some(r => r.textContent.includes('<b>a sentence</b>')) && !document.querySelector('main b b')"), "a failure has its sentence, as text")
    report(browser.js("return document.activeElement.id") == "filter", "rows that appear leave the focus where it is")
    ids = {r["name"]: r["id"] for r in json.load(urllib.request.urlopen(served.address + "api/runs"))["runs"]}
    for name, words in (("warned-shut", "A branch may have closed"), ("warned-nan", "Numerical failure"), ("warned-falls", "Evidence falls"), ("warned-fails", "Failed")):
        browser.go(served.address + f"#/run/{ids[name]}")
        report(browser.wait(f"document.querySelector('.banner') && document.querySelector('.banner').textContent.includes('{words}')"), f"and its page a banner: {words}")
    os.makedirs(os.path.join(folder, "damaged"))
    with open(os.path.join(folder, "damaged", "metrics.sqlite"), "wb") as file:
        file.write(os.urandom(5000))
    browser.go(served.address + "#/runs")
    report(browser.wait("[...document.querySelectorAll('.banner')].some(b => b.textContent.includes('damaged'))", 20), "a store that is damaged is named meanwhile")
    shutil.rmtree(os.path.join(folder, "damaged"))
    report(browser.wait("![...document.querySelectorAll('.banner')].some(b => b.textContent.includes('damaged'))", 20), "and no more when it is gone")
    for name in list(ids):
        if name.startswith("warned"):
            shutil.rmtree(os.path.join(folder, name))
    later = os.path.join(folder, "measured-later")
    shutil.copytree(os.path.join(folder, "gmm-ww-1"), later)
    store = os.path.join(os.path.realpath(later), "metrics.sqlite")
    place = f"[...document.querySelectorAll('a.name')].find(a => a.title === {json.dumps(store)})"
    report(browser.wait(f"!!{place}", 20), "a run that is copied there appears")
    browser.js(f"{place}.click()")
    browser.wait("document.querySelectorAll('figure.chart').length > 0")
    subprocess.run([rws, "eval", later, "--record"], check=True, stdout=subprocess.DEVNULL)
    chart = "[...document.querySelectorAll('figure.chart')].find(f => f.textContent.includes('final ess'))"
    report(browser.wait(f"!!{chart} && !{chart}.querySelector('.nothing')", 20), "a metric that is measured after training has its point on the run's page")
    shutil.rmtree(later)
    train = subprocess.Popen([rws, "train", "gmm", "--method", "dww", "-k", "5", "--iterations", "100000000", "--eval-every", "300", "--save-every", "0", "--out", os.path.join(folder, "live2")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        browser.go("about:blank")
        browser.go(served.address + "#/compare?model=gmm&metrics=p_error")
        browser.wait("document.querySelector('.legend') && document.querySelector('.legend').textContent.includes('δ-WW')", 20)
        browser.js("document.querySelector('.controls select').focus(); window.mark = document.activeElement; document.querySelector('#filter').value = 'half a wor'")
        count = "performance.getEntriesByType('resource').filter(e => e.name.includes('/api/compare')).length"
        before = browser.js(f"return {count}")
        browser.wait(f"{count} > {before} + 2", 20)
        report(browser.js("return document.activeElement === window.mark && document.querySelector('#filter').value === 'half a wor'"), "a comparison that grows leaves focus and typing alone")
    finally:
        train.send_signal(signal.SIGTERM)
        train.wait(30)


def test_many(rws, browser):
    """A group of 150 runs: the best by a metric comes first, though not all rows are shown."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([rws, "train", "gmm", "-k", "5", "--iterations", "20", "--eval-every", "10", "--out", os.path.join(folder, "gmm")], check=True, stdout=subprocess.DEVNULL)
        db = sqlite3.connect(os.path.join(folder, "gmm", "metrics.sqlite"))
        for i in range(1, 150):
            db.execute(f"INSERT INTO runs SELECT 'copy-{i}', config, host, version, started, iteration, seconds FROM runs WHERE run = 'gmm'")
            db.execute(f"INSERT INTO metrics SELECT 'copy-{i}', iteration, seconds, name, value - {i} FROM metrics WHERE run = 'gmm'")
        db.commit()
        db.close()
        served = Served(rws, folder)
        try:
            browser.go("about:blank")
            browser.go(served.address + "#/runs")
            rows = "document.querySelectorAll('tr[data-id]').length"
            browser.wait(f"{rows} > 0")
            browser.js("[...document.querySelectorAll('th button.sort')].find(b => b.textContent.startsWith('p error')).click()")
            first = browser.js("return document.querySelector('tr[data-id] .name').textContent")
            report(browser.js(f"return {rows}") == 100 and first == "copy-149", "of 150 runs the best 100 are shown", first)
            browser.click(".more button")
            report(browser.js(f"return {rows}") == 150, "and all of them if one asks")
        finally:
            served.stop()


def test_plugin(rws, browser):
    """A model of one's own with a series: a form that begins with a datum, choices that are known, what to do if it is not named."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        plugin = os.path.join(folder, "hmm.so")
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", "-I", os.path.join(here, "..", "..", "..", "include"), os.path.join(here, "..", "..", "..", "examples", "hmm.c"), "-o", plugin, "-lm"], check=True)
        subprocess.run([rws, "train", plugin, "-k", "5", "--iterations", "20", "--eval-every", "10", "--out", os.path.join(folder, "hmm")], check=True, stdout=subprocess.DEVNULL)
        served = Served(rws, folder)
        browser.go("about:blank")
        browser.go(served.address + "#/ask")
        report(browser.wait("document.querySelector('main').textContent.includes('--model')"), "a plug-in that was not named says what to do")
        browser.go(served.address + "#/runs")
        browser.wait("document.querySelector('section.group h2')")
        report("/" not in browser.js("return document.querySelector('section.group h2').textContent"), "a plug-in has its short name")
        served.stop()
        browser.logs()  # the refusal
        served = Served(rws, folder, "--model", plugin)
        try:
            browser.go("about:blank")
            browser.go(served.address + "#/ask")
            browser.wait("document.querySelectorAll('.marginal').length > 0")
            items = browser.js("return document.querySelector('.form-row textarea').value.trim().split('\\n').length")
            report(items == browser.js("return Number(document.querySelector('.form-row input').value)") + 1, "the form begins with a datum of the model, a series too", items)
            before = browser.js("return document.querySelector('.answer').textContent")
            browser.click("#fill-form")
            report(browser.wait(f"document.querySelector('.answer').textContent !== {json.dumps(before)}"), "another datum of the model")
            browser.js("document.querySelector('.given').open = true")
            browser.type("#given", "z = 1")
            first = "document.querySelector('.marginal')"
            report(browser.wait(f"{first}.querySelectorAll('.bar-label').length === 1 && {first}.textContent.includes('1.000')"), "a choice that is known is taken")
            browser.type("#given", "z is one")
            report(browser.wait("document.querySelector('.answer').textContent.includes('SITE = VALUE')"), "and one that cannot be read says how it is written")
        finally:
            served.stop()


def test_quiet(browser, served):
    bad = [e["message"] for e in browser.logs() if e["level"] in ("SEVERE", "WARNING") and "/infer" not in e["message"] and "willReadFrequently" not in e["message"]]  # a refused sentence; this test reads canvases
    report(not bad, "there is no error on the console", bad)
    away = sorted({u for u in browser.addresses() if not u.startswith((served.address, "data:", "about:", "blob:", "chrome:"))})
    report(not away, "no request leaves the machine", away)


def test_empty(rws, browser):
    with tempfile.TemporaryDirectory() as folder:
        served = Served(rws, folder)
        try:
            for page in ("runs", "compare", "ask"):
                browser.go("about:blank")
                browser.go(served.address + "#/" + page)
                report(browser.wait("document.querySelector('main').textContent.includes('no runs here yet') && document.querySelector('main').textContent.includes('rws train')"), f"an empty folder says how to begin: {page}")
        finally:
            served.stop()
        report(browser.wait("document.querySelector('#live').dataset.state === 'lost'", 20), "a server that has ended is noticed")


def screenshots(rws, folder, out):
    served = Served(rws, folder)
    runs = served.runs()
    pick = lambda **want: next((r["id"] for r in runs.values() if all(r.get(k, r["config"].get(k)) == v for k, v in want.items())), None)
    air = max((r for r in runs.values() if r["model"] == "air"), key=lambda r: r["iteration"], default=None)
    pages = {"runs": "#/runs", "compare": "#/compare?model=gmm&filter=K%3D2,20", "run": f"#/run/{pick(model='gmm', method='ww', particles=20)}", "ask": f"#/ask/{pick(model='pcfg', method='ws')}"}
    if air:
        pages["draw"] = f"#/ask/{air['id']}"
    browser = Browser()
    try:
        for scheme, wide, high, suffix in (("light", 1360, 900, ""), ("dark", 1360, 900, "-dark"), ("light", 390, 844, "-phone")):
            browser.size(wide, high)
            browser.theme(scheme)
            for name, page in pages.items():
                browser.go("about:blank")
                browser.go(served.address + page)
                browser.wait({"runs": "document.querySelector('tr[data-id]')", "draw": "document.querySelector('canvas.pad')", "ask": "document.querySelector('.tree')"}.get(name, "document.querySelector('.chart canvas')"), 60)
                time.sleep(1.5)
                if name == "draw":
                    draw_digit(browser, 0, 0.1, 0.12, 0.36)
                    draw_digit(browser, 7, 0.52, 0.5, 0.36)
                    browser.hover(5, 5)
                    browser.wait("document.querySelectorAll('.pictures canvas').length > 0", 60)
                    time.sleep(2.5)
                if name == "compare" and not suffix.startswith("-phone"):
                    x, y, w, h = browser.box(".plot")
                    browser.hover(x + w * 0.62, y + h * 0.5)
                browser.screenshot(os.path.join(out, f"serve-{name}{suffix}.png"))
    finally:
        browser.close()
        served.stop()


def make_runs(rws, folder):
    train = lambda name, *arguments: subprocess.run([rws, "train", *arguments, "--out", os.path.join(folder, name)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for method in ("ww", "ws"):
        for seed in "12":
            train(f"gmm-{method}-{seed}", "gmm", "--method", method, "-k", "5", "--seed", seed, "--iterations", "2000", "--eval-every", "50")
    train("grammar", "pcfg", "--method", "ws", "-k", "10", "--iterations", "200", "--eval-every", "50", "--set", "rules=grammar")
    try:
        train("air", "air", "--iterations", "600", "--eval-every", "300", "--eval-data", "20")
    except subprocess.CalledProcessError:
        train("air", "air", "--iterations", "200", "--eval-every", "100", "--eval-data", "20", "--set", "images=blocks")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--screenshots")
    parser.add_argument("--runs")
    arguments = parser.parse_args()
    rws = os.path.realpath(arguments.program)
    why = missing()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    if arguments.screenshots:
        screenshots(rws, arguments.runs, arguments.screenshots)
        return 0
    folder = tempfile.mkdtemp(prefix="rws-page-")
    make_runs(rws, folder)
    served = Served(rws, folder)
    browser = Browser()
    try:
        browser.size(1360, 900)
        test_page(rws, browser, served, folder)
        test_keys(browser, served)
        test_views(rws, browser, served, folder)
        test_live_and_warned(rws, browser, served, folder)
        test_quiet(browser, served)
        test_many(rws, browser)
        test_tips(rws, browser)
        test_plugin(rws, browser)
        test_empty(rws, browser)
    finally:
        browser.close()
        served.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
