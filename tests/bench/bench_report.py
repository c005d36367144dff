"""What the gather benchmark says: medians, ratios, a table."""
import statistics

# Gathers at a time where throughput and cost are compared: several, on both sides.
SEVERAL = 4
FANOUT_ROWS = (24, 48, 1536)
GB = 1e9

# ratio -> (at least or at most, goal)
GOALS = {
    "gather_6144_vs_t1": (">=", 1.0), "gather_49152_vs_t1": (">=", 1.0),
    "gather_6144_vs_t2": (">=", 0.6), "gather_49152_vs_t2": (">=", 0.6),
    "server_cpu_vs_t2": ("<=", 1.4),
    "gather_1536_vs_redis": (">=", 8.0), "gather_1536_vs_memcached": (">=", 8.0),
    "gather_1536_p50_vs_floor": ("<=", 1.0), "gather_1536_p99_vs_p50": ("<=", 2.0),
    "client_cost_16_vs_1_servers": ("<=", 1.15),
}


def add_medians(result):
    """Each cell's medians over its rounds; percentiles of all rounds together stay in `pooled`."""
    for cell in result["cells"]:
        rounds = cell["rounds"]
        cell["median"] = {key: median([r[key] for r in rounds]) for key in (rounds[0] if rounds else {})}


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


class Cells:
    """The cells of a result by contestant and setting."""

    def __init__(self, result):
        self.cells = {(c["contestant"], c["ids"], c["rows"], c["in_flight"]): c for c in result["cells"]}

    def series(self, key, contestant, rows, in_flight, ids="uniform"):
        """One value a round; None where the contestant was not there or failed."""
        cell = self.cells.get((contestant, ids, rows, in_flight))
        if cell is None or cell["error"] or not cell["rounds"]:
            return None
        values = [r[key] for r in cell["rounds"]]
        return None if None in values else values

    def median(self, key, contestant, rows, in_flight, ids="uniform"):
        return median(self.series(key, contestant, rows, in_flight, ids) or [])


def ratio_of(numerator, denominator):
    """Median of the ratios round by round: what disturbs one round disturbs both alike."""
    if not numerator or not denominator or len(numerator) != len(denominator):
        return None
    if not all(denominator):
        return None
    return statistics.median(a / b for a, b in zip(numerator, denominator))


def added(a, b):
    return [x + y for x, y in zip(a, b)] if a and b else None


def ratios(result):
    """name -> value, name -> what it is; only those whose contestants took part."""
    cells = Cells(result)
    values, words = {}, {}

    def put(name, value, meaning):
        if value is not None:
            values[name], words[name] = value, meaning

    def speed(name, peer, rows, ids="uniform"):
        put(name, ratio_of(cells.series("rows_per_s", "engram_1", rows, SEVERAL, ids),
                           cells.series("rows_per_s", peer, rows, SEVERAL, ids)),
            "rows/s of engram with one server over %s's; %d rows a call, %d in flight, ids %s%s" % (
                peer, rows, SEVERAL, ids, "" if ids == "uniform" else "; engram fetches a row that is asked twice once"))

    for rows in (6144, 49152):
        for peer in ("t1", "t2"):
            speed("gather_%d_vs_%s" % (rows, peer), peer, rows)
    cpu = {rows: ratio_of(cells.series("server_core_s_per_gb", "engram_1", rows, SEVERAL),
                          cells.series("server_core_s_per_gb", "t2", rows, SEVERAL)) for rows in (6144, 49152)}
    put("server_cpu_vs_t2", max(filter(None, cpu.values()), default=None),
        "server core-seconds a row over t2's, the worse of 6144 and 49152 rows a call, %d in flight" % SEVERAL)
    for rows, value in cpu.items():
        put("server_cpu_%d_vs_t2" % rows, value, "the same at %d rows a call" % rows)
    speed("gather_1536_vs_redis", "redis", 1536)
    speed("gather_1536_vs_memcached", "memcached", 1536)

    p50 = cells.series("p50_us", "engram_1", 1536, 1)
    bytes_alone = cells.series("p50_us", "tcp_bytes", 1536, 1)
    put("gather_1536_p50_vs_floor", ratio_of(p50, added(cells.series("p50_us", "empty_stream", 1536, 1), bytes_alone)),
        "p50 of 1536 rows, 1 in flight, over: p50 of a gather of no rows on a stream with a completion queue, plus p50 "
        "of as many bytes over plain TCP, nothing gathered")
    put("gather_1536_p50_vs_floor_unary",
        ratio_of(p50, added(cells.series("p50_us", "empty_unary", 1536, 1), bytes_alone)),
        "the same over a blocking unary call of no rows, which no thread has to be woken for")
    put("gather_1536_p50_vs_floor_t1", ratio_of(p50, added(cells.series("p50_us", "empty_stream", 1536, 1),
                                                           cells.series("p50_us", "t1", 1536, 1))),
        "the same as gather_1536_p50_vs_floor, but with t1's whole gather in place of the bytes alone")
    put("gather_1536_p99_vs_p50", ratio_of(cells.series("p99_us", "engram_1", 1536, 1), p50),
        "p99 over p50 of 1536 rows, 1 in flight")
    put("client_cost_16_vs_1_servers", ratio_of(cells.series("client_core_s_per_gb", "fan_out_16", 49152, SEVERAL),
                                                cells.series("client_core_s_per_gb", "fan_out_1", 49152, SEVERAL)),
        "client core-seconds a row with 16 servers over 1 server, 49152 rows a call, %d in flight" % SEVERAL)

    for rows in (1536, 6144, 49152):
        speed("gather_%d_vs_easy_grpc" % rows, "easy_grpc", rows)
    speed("gather_1536_vs_rocksdb", "rocksdb", 1536)
    for rows in (6144, 49152):
        for peer in ("t1", "t2"):
            speed("gather_%d_vs_%s_zipf" % (rows, peer), peer, rows, "zipf_1.0")
    for rows in FANOUT_ROWS:
        for servers in (4, 16):
            for key in ("p50", "p99"):
                put("fanout_%d_rows_%s_%d_vs_1_servers" % (rows, key, servers),
                    ratio_of(cells.series(key + "_us", "fan_out_%d" % servers, rows, 1),
                             cells.series(key + "_us", "fan_out_1", rows, 1)),
                    "%s of %d rows, 1 in flight, over %d servers, over one server's" % (key, rows, servers))
    return values, words


def verdict(name, value):
    if name not in GOALS:
        return ""
    sign, goal = GOALS[name]
    return "%s %-4g %s" % (sign, goal, "ok" if (value >= goal if sign == ">=" else value <= goal) else "MISSED")


def print_table(result):
    cells = Cells(result)
    names = list(dict.fromkeys(c["contestant"] for c in result["cells"]))
    all_rows = sorted({c["rows"] for c in result["cells"]})
    print("\n%s, %d cores, Linux %s, commit %s, medians of %d rounds" % (
        result["machine"]["cpu_model"], result["machine"]["cores"], result["machine"]["kernel"],
        result["commit"][:12], result["rounds"]))
    print("%s rows checked byte for byte\n" % format(sum(c["verified_rows"] for c in result["cells"]), ","))
    section(cells, names, all_rows, "M rows/s, %d in flight, uniform ids" % SEVERAL,
            lambda name, rows: number(cells.median("rows_per_s", name, rows, SEVERAL), 1e-6, "%.2f"))
    section(cells, names, all_rows, "p50 / p99 us, 1 in flight, uniform ids",
            lambda name, rows: pair(cells.median("p50_us", name, rows, 1), cells.median("p99_us", name, rows, 1),
                                    "%.0f"))
    section(cells, names, all_rows, "core-s per GB, server + client, %d in flight" % SEVERAL,
            lambda name, rows: pair(cells.median("server_core_s_per_gb", name, rows, SEVERAL),
                                    cells.median("client_core_s_per_gb", name, rows, SEVERAL), "%.2f"))
    for name, value in result["ratios"].items():
        print("%-42s %8.3f  %s" % (name, value, verdict(name, value)))


def section(cells, names, all_rows, title, text):
    lines = [(name, [text(name, rows) for rows in all_rows]) for name in names]
    lines = [(name, values) for name, values in lines if any(values)]
    if not lines:
        return
    print("%-14s" % "rows a call" + "".join("%16d" % rows for rows in all_rows) + "   " + title)
    for name, values in lines:
        print("%-14s" % name + "".join("%16s" % (value or "-") for value in values))
    print()


def number(value, scale, form):
    return "" if value is None else form % (value * scale)


def pair(a, b, form):
    return "" if a is None or b is None else "%s / %s" % (form % a, form % b)
