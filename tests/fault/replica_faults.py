"""One of the replicas is slow, silent, broken or a liar; the others are sound. R = 2."""
from fault_cluster import FaultCluster
from report import Report

NAMES = ("t0", "t1", "t2")
ROWS = ("--rows", "24x9,600x1")
DECODE_ROWS = ("--rows", "24")
TAIL_RATIO = 1.5
EXTRA_SHARE = 0.05  # hedges and retries of all calls
BURST = 100  # of them, in the budget of a client that begins


def _cluster(checkpoint, **options):
    return FaultCluster(checkpoint, servers=len(NAMES), replicas=2, **options)


def _load(running, size, *args, seconds=600):
    return running.load(*args, rate=size.rate, deadline_ms=size.deadline_ms, seconds=seconds)


def _endure(report, running, size, begin, lift, *args):
    """Load while a fault begins, lasts and is lifted."""
    load = _load(running, size, *ROWS, *args).await_start()
    begin()
    load.go_on(size.fault_seconds)
    lift()
    load.go_on(size.calm_seconds)
    result = load.end()
    report.nothing_failed(result)
    return result


def _tail(report, running, size, begin, lift):
    """As _endure, and where latencies are measured, the tail against that of a healthy cluster."""
    if size.tail_seconds == 0:
        return _endure(report, running, size, lambda: begin(None), lift)
    wait = size.tail_seconds + 120
    healthy = _load(running, size, *DECODE_ROWS, seconds=size.tail_seconds).result(wait)
    report.nothing_failed(healthy, " while healthy")
    load = _load(running, size, *DECODE_ROWS, seconds=size.tail_seconds).await_start()
    begin(healthy)
    result = load.result(wait)
    lift()
    report.nothing_failed(result)
    report.figures.update(healthy_ms=healthy.latency_ms, faulty_ms=result.latency_ms,
                          healthy_samples=healthy.ok, faulty_samples=result.ok)
    report.at_most("p99.9 over healthy", result.latency_ms["p99_9"] / healthy.latency_ms["p99_9"], TAIL_RATIO,
                   timing=True)
    return result


def healthy(size, checkpoint):
    """Nothing is wrong: little is asked for twice."""
    report = Report("healthy")
    with _cluster(checkpoint) as running:
        load = _load(running, size, *ROWS)
        load.go_on(size.fault_seconds + size.calm_seconds)
        result = load.end()
    report.nothing_failed(result)
    if result.client:
        client = result.client
        extra = client["hedges"] + client["retries"]
        # What the client may spend at once would decide a short run.
        spared = 0 if size.tail_seconds else BURST
        report.at_most("hedges and retries for each first call",
                       max(0, extra - spared) / max(1, client["first_calls"]), EXTRA_SHARE)
    return report


def slow(size, checkpoint):
    """A replica is 100 times slower."""
    report = Report("slow")
    with _cluster(checkpoint, proxied=NAMES) as running:
        def begin(healthy):
            # Half of the 100 times each way.
            delay_ms = 50 if healthy is None else max(5, round(50 * healthy.latency_ms["p50"]))
            report.figures["delay_each_way_ms"] = delay_ms
            running.proxies["t0"].ask("delay_ms %d %d" % (delay_ms, delay_ms))
        _tail(report, running, size, begin, lambda: running.proxies["t0"].ask("clear"))
    return report


def stopped(size, checkpoint):
    """A replica gets SIGSTOP: its connections stay, nothing moves."""
    report = Report("stopped")
    with _cluster(checkpoint, proxied=NAMES) as running:
        _tail(report, running, size, lambda _: running.freeze("t0"), lambda: running.thaw("t0"))
    return report


def throttled(size, checkpoint):
    """A replica's network gives 20 kB/s."""
    report = Report("throttled")
    with _cluster(checkpoint, proxied=("t0",)) as running:
        proxy = running.proxies["t0"]
        _endure(report, running, size, lambda: proxy.ask("throttle 0 20000"), lambda: proxy.ask("clear"))
    return report


def stalled(size, checkpoint):
    """A replica accepts connections and never answers."""
    report = Report("stalled")
    with _cluster(checkpoint, proxied=("t0",)) as running:
        proxy = running.proxies["t0"]
        _endure(report, running, size, lambda: proxy.ask("stall on"), lambda: proxy.ask("clear"))
    return report


def half_open(size, checkpoint):
    """A replica's connections die without a word; new ones work."""
    report = Report("half_open")
    with _cluster(checkpoint, proxied=("t0",)) as running:
        proxy = running.proxies["t0"]
        _endure(report, running, size, lambda: proxy.ask("half_open"), lambda: None)
        report.at_least("connections that died", proxy.stats()["frozen"], 1)
    return report


def resets(size, checkpoint):
    """5 % of a replica's connections are reset each tenth of a second."""
    report = Report("resets")
    with _cluster(checkpoint, proxied=("t0",)) as running:
        proxy = running.proxies["t0"]

        def begin():
            proxy.ask("reset")  # at least once each
            proxy.ask("reset_share 0.05 100")
        _endure(report, running, size, begin, lambda: proxy.ask("clear"))
        report.at_least("resets", proxy.stats()["resets"], 1)
    return report


def errors(size, checkpoint):
    """A replica answers with errors: some, and of two kinds, then nothing else."""
    report = Report("errors")
    with _cluster(checkpoint, faulty=("t0",)) as running:
        server = running.servers["t0"]
        load = _load(running, size, *ROWS).await_start()
        for fault in ("fail 0.3 UNAVAILABLE", "fail 0.3 INTERNAL", "fail 1 INTERNAL"):
            server.ask(fault)
            load.go_on(size.fault_seconds / 2)
        server.ask("clear")
        load.go_on(size.calm_seconds)
        result = load.end()
        report.nothing_failed(result)
        report.figures["server calls a gather"] = result.server_calls / max(1, result.ok)
    return report


def flipped(size, checkpoint):
    """Bits of a replica's answers are turned behind the sum."""
    report = Report("flipped")
    with _cluster(checkpoint, proxied=("t0",)) as running:
        proxy = running.proxies["t0"]
        result = _endure(report, running, size, lambda: proxy.ask("flip 1"), lambda: proxy.ask("clear"), "--crc32c")
        report.at_least("bits turned", proxy.stats()["flips"], 1)
    if result.client:
        report.at_least("corrupt replies seen", result.client["corrupt_replies"], 1)
    return report


def liar(size, checkpoint):
    """A replica's own memory is wrong: the load must notice.

    Its sums are right, so nothing on the way can tell. This shows that 0 wrong answers elsewhere mean
    something."""
    report = Report("liar")
    with _cluster(checkpoint, faulty=("t0",)) as running:
        load = _load(running, size, *ROWS, "--crc32c").await_start()
        running.servers["t0"].ask("flip 0.1")
        result = load.result()
    report.at_least("wrong answers seen", result.wrong, 1)
    report.at_most("failed calls", result.failed, 0)
    return report
