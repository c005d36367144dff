"""Plots of the gather benchmark as SVG, one a question, with nothing but the standard library."""
import html
import math

import bench_report

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 180, 56, 60
COLOURS = {
    "engram_1": "#c0392b", "fan_out_1": "#d98880", "fan_out_4": "#e67e22", "fan_out_16": "#f1a208", "t1": "#2c7fb8", "t2": "#253494",
    "redis": "#7a5195", "memcached": "#bc5090", "rocksdb": "#4d4d4d", "in_process": "#999999",
    "easy_grpc": "#2e8b57", "tcp_bytes": "#41b6c4",
}
# A second colour for the second part of a stacked bar.
SECOND = "#d9d9d9"


def write_all(result, directory):
    directory.mkdir(parents=True, exist_ok=True)
    cells = bench_report.Cells(result)
    names = [name for name in COLOURS if any(c["contestant"] == name for c in result["cells"])]
    rows = sorted({c["rows"] for c in result["cells"]})
    in_flight = sorted({c["in_flight"] for c in result["cells"]})
    several = bench_report.SEVERAL
    where = "%s, %d cores, commit %s" % (result["machine"]["cpu_model"], result["machine"]["cores"],
                                         result["commit"][:12])

    def lines(key, xs, at):
        """contestant -> [(x, median)]; `at` gives the rows and the gathers in flight of an x."""
        found = {name: [(x, cells.median(key, name, *at(x))) for x in xs] for name in names}
        return {name: [(x, y) for x, y in points if y] for name, points in found.items()}

    plots = {
        "throughput_by_rows.svg": line_plot(
            "How fast are rows fetched? %d gathers in flight, uniform ids" % several, where, "rows a call", "rows/s",
            lines("rows_per_s", rows, lambda x: (x, several))),
        "throughput_by_in_flight.svg": line_plot(
            "What do more gathers in flight give? 1,536 rows a call, uniform ids", where, "gathers in flight",
            "rows/s", lines("rows_per_s", in_flight, lambda x: (1536, x))),
        "latency_by_rows.svg": line_plot(
            "How long does one gather take? p50, 1 in flight, uniform ids", where, "rows a call", "us",
            lines("p50_us", rows, lambda x: (x, 1))),
        "tail_by_rows.svg": line_plot(
            "How long does the slowest of a hundred take? p99, 1 in flight, uniform ids", where, "rows a call", "us",
            lines("p99_us", rows, lambda x: (x, 1))),
        "fan_out.svg": bar_plot(
            "What does fan-out cost? p50, and p99 above it, 1 in flight", where, "us",
            [("%d rows, %d server%s" % (r, n, "" if n == 1 else "s"), "fan_out_%d" % n,
              cells.median("p50_us", "fan_out_%d" % n, r, 1), cells.median("p99_us", "fan_out_%d" % n, r, 1))
             for r in bench_report.FANOUT_ROWS for n in (1, 4, 16)], above=True),
        "cpu.svg": bar_plot(
            "What does a gigabyte of rows cost? Server, and client above it, %d in flight" % several, where,
            "core-seconds per GB",
            [("%s, %d rows" % (name, r), name, cells.median("server_core_s_per_gb", name, r, several),
              cells.median("client_core_s_per_gb", name, r, several)) for r in (6144, 49152) for name in names]),
        "skew.svg": bar_plot(
            "What do skewed ids change? Zipf 1.0 over uniform, %d in flight" % several, where, "rows/s over rows/s",
            [("%s, %d rows" % (name, r), name,
              bench_report.ratio_of(cells.series("rows_per_s", name, r, several, "zipf_1.0"),
                                    cells.series("rows_per_s", name, r, several)), 0)
             for r in (1536, 49152) for name in names]),
    }
    for name, svg in plots.items():
        if svg:
            (directory / name).write_text(svg)


class Canvas:
    def __init__(self, title, where):
        self.parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
                      'font-size="12">' % (WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="white"/>']
        self.text(LEFT, 22, title, size=16)
        self.text(LEFT, 40, where, colour="#666")

    def text(self, x, y, words, anchor="start", size=12, colour="#222", rotate=None):
        turn = ' transform="rotate(%g %g %g)"' % (rotate, x, y) if rotate else ""
        self.parts.append('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s"%s>%s</text>' % (
            x, y, anchor, size, colour, turn, html.escape(str(words))))

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1):
        self.parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>' % (
            x1, y1, x2, y2, colour, width))

    def rectangle(self, x, y, width, height, colour):
        self.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>' % (
            x, y, width, height, colour))

    def polyline(self, points, colour):
        self.parts.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (
            colour, " ".join("%.1f,%.1f" % point for point in points)))
        for x, y in points:
            self.parts.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, colour))

    def svg(self):
        return "\n".join(self.parts + ["</svg>\n"])


def short(value):
    """1536 -> 1536, 2500000 -> 2.5M"""
    for unit, size in (("M", 1e6), ("k", 1e4)):
        if value >= size:
            return "%g%s" % (value / (1e3 if unit == "k" else size), unit)
    return "%g" % value


def line_plot(title, where, x_title, y_title, lines):
    """Both axes logarithmic: what matters is how many times more."""
    lines = {name: points for name, points in lines.items() if points}
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in lines.values() for _, y in points]
    if not xs:
        return None
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    high = max(high, low + 1)
    x_low, x_high = math.log(xs[0]), math.log(max(xs[-1], xs[0] * 2))

    def at(x, y):
        return (LEFT + (math.log(x) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (math.log10(y) - low) / (high - low) * (HEIGHT - TOP - BOTTOM))

    canvas = Canvas(title, where)
    for decade in range(low, high + 1):
        for step in (1, 2, 5):
            value = step * 10.0 ** decade
            if value > 10.0 ** high:
                continue
            y = at(xs[0], value)[1]
            canvas.line(LEFT, y, WIDTH - RIGHT, y, "#ddd" if step == 1 else "#f0f0f0")
            canvas.text(LEFT - 6, y + 4, short(value), "end", colour="#222" if step == 1 else "#999")
    for x in xs:
        canvas.text(at(x, 10.0 ** low)[0], HEIGHT - BOTTOM + 18, x, "middle")
    canvas.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, x_title, "middle")
    canvas.text(18, (TOP + HEIGHT - BOTTOM) / 2, y_title, "middle", rotate=-90)
    for name, points in lines.items():
        canvas.polyline([at(x, y) for x, y in points], COLOURS[name])
    label_ends(canvas, {name: at(*points[-1]) for name, points in lines.items()})
    return canvas.svg()


def label_ends(canvas, ends):
    """Names beside the last points, moved apart where they would lie upon each other."""
    below = TOP
    for name, (x, y) in sorted(ends.items(), key=lambda item: item[1][1]):
        below = max(y + 4, below + 14)
        canvas.line(x + 4, y, WIDTH - RIGHT + 20, below - 4, COLOURS[name], 0.5)
        canvas.text(WIDTH - RIGHT + 24, below, name, colour=COLOURS[name])


def bar_plot(title, where, y_title, bars, above=False):
    """Bars of (label, contestant, first, second): the second on top of the first, or up to its own value."""
    bars = [bar for bar in bars if bar[2] is not None and bar[3] is not None]
    if not bars:
        return None
    tops = [max(first, second) if above else first + second for _, _, first, second in bars]
    step = nice_step(max(tops) / 6)
    limit = math.ceil(max(tops) / step) * step
    bottom = HEIGHT - 130  # room for turned labels
    width = (WIDTH - LEFT - 20) / len(bars)

    def height(value):
        return value / limit * (bottom - TOP)

    canvas = Canvas(title, where)
    for i in range(round(limit / step) + 1):
        y = bottom - height(i * step)
        canvas.line(LEFT, y, WIDTH - 20, y)
        canvas.text(LEFT - 6, y + 4, "%g" % (i * step), "end")
    canvas.text(18, (TOP + bottom) / 2, y_title, "middle", rotate=-90)
    for i, ((label, name, first, _), top) in enumerate(zip(bars, tops)):
        x = LEFT + (i + 0.15) * width
        canvas.rectangle(x, bottom - height(top), width * 0.7, height(top - first), SECOND)
        canvas.rectangle(x, bottom - height(first), width * 0.7, height(first), COLOURS[name])
        canvas.text(x + width * 0.35, bottom - height(top) - 4, "%.0f" % top if top >= 100 else "%.3g" % top, "middle",
                    size=9)
        canvas.text(x + width * 0.5, bottom + 12, label, "end", size=10, rotate=-45)
    return canvas.svg()


def nice_step(least):
    magnitude = 10.0 ** math.floor(math.log10(least))
    return next(step * magnitude for step in (1, 2, 5, 10) if step * magnitude >= least)
