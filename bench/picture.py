#!/usr/bin/python3
"""The picture of bench/run's numbers: times per row, then growth curves, all on logarithmic axes. Writes SVG.

    picture.py bench.json bench.svg
"""
import json
import math
import sys

RWS, PEER, FLOOR, INK, FAINT = "#0072B2", "#D55E00", "#777777", "#222222", "#E4E4E4"
MODELS = {"gmm": "#0072B2", "pcfg": "#009E73", "air": "#D55E00", "sbn": "#882255"}
NAMES = {"gmm": "Gaussian mixture", "pcfg": "grammar", "air": "AIR", "sbn": "belief network"}
WIDTH, LEFT, RIGHT, ROW = 920, 190, 110, 17


class Drawing:
    def __init__(self):
        self.out = []

    def line(self, x1, y1, x2, y2, colour=FAINT, width=1.0, dash=""):
        self.out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"%s/>' % (
            x1, y1, x2, y2, colour, width, ' stroke-dasharray="%s"' % dash if dash else ""))

    def path(self, points, colour, dash=""):
        self.out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.8" stroke-linejoin="round"%s/>' % (
            " ".join("%.1f,%.1f" % point for point in points), colour, ' stroke-dasharray="%s"' % dash if dash else ""))

    def dot(self, x, y, colour, radius=4.0, hollow=False):
        self.out.append('<circle cx="%.1f" cy="%.1f" r="%g" fill="%s" stroke="%s" stroke-width="1.5"/>' % (
            x, y, radius, "#FFFFFF" if hollow else colour, colour))

    def text(self, x, y, words, colour=INK, anchor="start", size=11, weight="normal"):
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.out.append('<text x="%.1f" y="%.1f" fill="%s" text-anchor="%s" font-size="%g" font-weight="%s">%s</text>' % (
            x, y, colour, anchor, size, weight, words))

    def finish(self, width, height):
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="DejaVu Sans, '
                'sans-serif">\n<rect width="100%%" height="100%%" fill="#FFFFFF"/>\n%s\n</svg>\n' % (
                    width, height, width, height, "\n".join(self.out)))


class Log:
    """A logarithmic axis from the values to [start, end]."""

    def __init__(self, values, start, end):
        self.low, self.high = math.log10(min(values)), math.log10(max(values))
        margin = 0.04 * max(self.high - self.low, 0.3)
        self.low, self.high, self.start, self.end = self.low - margin, self.high + margin, start, end

    def __call__(self, value):
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self):
        steps = (1,) if self.high - self.low > 2.2 else (1, 3) if self.high - self.low > 1.1 else (1, 2, 5)
        for power in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in steps:
                if self.low <= math.log10(step) + power <= self.high:
                    yield step * 10.0**power


def milliseconds(value):
    return "%g s" % (value / 1000) if value >= 1000 else "%g ms" % value if value >= 1 else "%g µs" % (value * 1000)


def draw_rows(d, rows, top):
    """A line per row: a dot for each program, and how many times as long PyTorch takes."""
    axis = Log([row[name] for row in rows for name in ("rws_ms", "peer_ms", "floor_ms") if row[name]], LEFT, WIDTH - RIGHT)
    groups = [model for model in NAMES if any(row["model"] == model for row in rows)]
    bottom = top + ROW * (len(rows) + len(groups)) + 8
    for tick in axis.ticks():
        d.line(axis(tick), top, axis(tick), bottom)
        d.text(axis(tick), bottom + 14, milliseconds(tick), anchor="middle", size=10)
    d.text(WIDTH - 14, top - 6, "PyTorch / rws", anchor="end", size=10)
    y = top
    for model in groups:
        y += ROW
        d.text(14, y, NAMES[model], weight="bold")
        for row in rows:
            if row["model"] != model:
                continue
            y += ROW
            middle = y - 4
            label = "%s, K = %d" % (row["method"], row["particles"])
            label += ", %d threads" % row["threads"] if row["threads"] > 1 else ""
            label += ", whole training" if row["iterations"] else ""
            d.text(24, y, label, size=10.5)
            if row["peer_ms"]:
                d.line(axis(row["rws_ms"]), middle, axis(row["peer_ms"]), middle, "#BBBBBB", 2)
                d.dot(axis(row["peer_ms"]), middle, PEER)
                d.text(WIDTH - 14, y, "%.1f ×" % row["ratio"], anchor="end", size=10.5)
            if row["floor_ms"]:
                d.dot(axis(row["floor_ms"]), middle, FLOOR, 3.2, hollow=True)
            d.dot(axis(row["rws_ms"]), middle, RWS)
    return bottom + 24


def draw_growth(d, growth, top):
    """A panel for each quantity: our program solid, PyTorch dashed."""
    titles = {"K": "particles K", "batch": "batch", "tree": "non-terminals per tree (grammar, ws)"}
    kinds = [kind for kind in titles if any(row["against"] == kind for row in growth)]
    width, height = (WIDTH - 60) / 3, 230
    vertical = Log([row[name] for row in growth for name in ("rws_ms", "peer_ms") if row[name]], top + height, top)
    for i, kind in enumerate(kinds):
        rows = [row for row in growth if row["against"] == kind]
        left, right = 60 + i * width, 60 + (i + 1) * width - 22
        axis = Log([row["x"] for row in rows], left, right)
        for tick in vertical.ticks():
            d.line(left, vertical(tick), right, vertical(tick))
            if i == 0:
                d.text(left - 6, vertical(tick) + 4, milliseconds(tick), anchor="end", size=10)
        for tick in axis.ticks():
            d.line(axis(tick), top, axis(tick), top + height)
            d.text(axis(tick), top + height + 14, "%g" % tick, anchor="middle", size=10)
        d.text((left + right) / 2, top + height + 32, titles[kind], anchor="middle")
        for model in MODELS:
            mine = [row for row in rows if row["model"] == model]
            for name, dash in (("peer_ms", "5 3"), ("rws_ms", "")):
                points = [(axis(row["x"]), vertical(row[name])) for row in mine if row[name]]
                if points:
                    d.path(points, MODELS[model], dash)
                    for point in points if not dash else []:
                        d.dot(*point, MODELS[model], 2.4)
    return top + height + 40


def draw(rows, growth):
    d, y = Drawing(), 48
    d.text(14, 22, "Time per training iteration", size=15, weight="bold")
    x = WIDTH - 300
    for colour, hollow, name in ((RWS, False, "rws"), (PEER, False, "PyTorch"), (FLOOR, True, "one model in C, by hand")):
        d.dot(x, 18, colour, 4 if not hollow else 3.2, hollow)
        d.text(x + 9, 22, name)
        x += 24 + 7 * len(name)
    if rows:
        y = draw_rows(d, rows, y)
    if growth:
        y += 34
        d.text(14, y, "How it grows", size=15, weight="bold")
        x = 150
        for model in [model for model in MODELS if any(row["model"] == model for row in growth)]:
            d.line(x, y - 4, x + 18, y - 4, MODELS[model], 2)
            d.text(x + 24, y, NAMES[model])
            x += 44 + 7 * len(NAMES[model])
        d.text(WIDTH - 14, y, "solid: rws, dashed: PyTorch", anchor="end")
        y = draw_growth(d, growth, y + 16)
    return d.finish(WIDTH, y + 12)


if __name__ == "__main__":
    with open(sys.argv[1]) as source, open(sys.argv[2], "w") as target:
        target.write(draw(**json.load(source)))
