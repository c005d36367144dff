"""cold_vs_mmap, cold_vs_rocksdb_cache: eight times more table than memory, Zipf 1.0, each contestant in a control group
with the same limit: the tier stack (hot-row cache, flat store), a mapped file, RocksDB with a block cache."""
import contextlib
import statistics

import disk_reads
import memory_group
from bench_servers import StartError

NAME = "cold"
WHAT = "more table than memory, against mmap and against RocksDB's block cache"
TABLE_BYTES, QUICK_TABLE_BYTES = 8e9, 1e9
MEMORY_SHARE = 8  # the limit is that part of the table
# Of the limit, what is no cache: the program, its threads, what they read into.
FIXED_BYTES, QUICK_FIXED_BYTES = 64e6, 24e6
# Of the rest: RocksDB's cache counts its blocks, but not what the allocator loses between them. With an arena for each
# few threads it would lose half as much again.
CACHE_SHARE = {"stack": 1.0, "mmap": 0.0, "rocksdb_rows": 0.9, "rocksdb_blocks": 0.9}
ENVIRONMENT = {"rocksdb_rows": {"MALLOC_ARENA_MAX": "1"}, "rocksdb_blocks": {"MALLOC_ARENA_MAX": "1"}}
SYSTEM_SHARE = 1.06  # of the table's bytes, that it takes on the disk
ROWS = 1536
ZIPF = 1.0
# Of a turn, by how many are in flight.
GATHERS, QUICK_GATHERS = {1: 150, 8: 600}, {1: 40, 8: 160}
FAN_OUT = 32  # threads that share a gather where the contestant does not split it by itself
WARM_ROWS = 1.25  # gathered before, for each row that has place in memory, twice over
SEEDS = 100  # of a round, at most
PREPARE_SECONDS, TURN_SECONDS = 1200, 1200


def measure(servers, arguments, say):
    reason = memory_group.why_not()
    if reason is not None:
        say("left out: %s" % reason)
        return {}, {}, {"skipped": reason}
    size = int(QUICK_TABLE_BYTES if arguments.quick else TABLE_BYTES)
    disk_reads.need_room(servers.directory, SYSTEM_SHARE * len(CACHE_SHARE) * size, "tables of four contestants")
    prepare(servers, arguments, size, say)
    fixed = QUICK_FIXED_BYTES if arguments.quick else FIXED_BYTES
    with contextlib.ExitStack() as stack:
        contestants = {
            name: stack.enter_context(Contestant(servers, arguments, name, size, fixed, share))
            for name, share in CACHE_SHARE.items()}
        warm(contestants, size, say)
        gathers = QUICK_GATHERS if arguments.quick else GATHERS
        rounds = [take_round(contestants, i, gathers, say) for i in range(arguments.rounds)]
        memory = {name: {"group": one.group.usage(), "cache_bytes": one.cache_bytes}
                  for name, one in contestants.items()}
    return summary(rounds, {"table_bytes": size, "limit_bytes": size // MEMORY_SHARE, "rows": ROWS, "zipf": ZIPF,
                            "memory_at_the_end": memory, "rounds": rounds})


def prepare(servers, arguments, size, say):
    for name in CACHE_SHARE:
        say("a table of %.1f GB for %s" % (size / 1e9, name))
        (servers.directory / name).mkdir()
        servers.run(arguments.bin / "engram-bench-cold", "--contestant", name, "--dir", servers.directory / name,
                    "--bytes", size, "--prepare", seconds=PREPARE_SECONDS)
    for name in CACHE_SHARE:
        disk_reads.forget(disk_reads.files_below(servers.directory / name))


class Contestant:
    """A process in a group of its own. What is on the disk for it is in no page cache before it starts."""

    def __init__(self, servers, arguments, name, size, fixed, share):
        self.servers = servers
        self.environment = ENVIRONMENT.get(name)
        self.group = memory_group.MemoryGroup("engram-bench-%s" % name, size // MEMORY_SHARE)
        self.cache_bytes = int((size / MEMORY_SHARE - fixed) * share)
        self.command = [arguments.bin / "engram-bench-cold", "--contestant", name, "--dir", servers.directory / name,
                        "--bytes", size, "--cache-bytes", self.cache_bytes]

    def __enter__(self):
        self.group.__enter__()
        try:
            self.worker = self.servers.start_worker(*self.command, enter=self.group.enter,
                                                     environment=self.environment)
        except BaseException:
            self.group.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.servers.stop(self.worker)
        self.group.__exit__()

    def turn(self, **asked):
        try:
            return self.worker.ask({"rows": ROWS, "zipf": ZIPF, **asked}, TURN_SECONDS)
        except StartError as error:
            raise StartError("%s%s" % (error, ", killed by its memory limit" * (self.group.oom_kills() > 0))) from None


def warm(contestants, size, say):
    """The same gathers for all, until everybody has had to throw rows away."""
    gathers = int(2 * WARM_ROWS * size / MEMORY_SHARE / 264 / ROWS) + 1
    for name, one in contestants.items():
        told = one.turn(in_flight=8, fan_out=FAN_OUT, gathers=gathers, seed=1)
        say("%s is warm: %d gathers in %.0f s" % (name, gathers, told["seconds"]))


def take_round(contestants, number, gathers_of_a_turn, say):
    """{in flight: {contestant: what was measured}}; those that can split a gather among threads do both."""
    measured = {}
    for in_flight, gathers in gathers_of_a_turn.items():
        turns = [(name, fan_out) for name in contestants for fan_out in ((1, FAN_OUT) if name != "stack" else (1,))]
        at = number % len(turns)
        cell = {}
        for name, fan_out in turns[at:] + turns[:at]:
            # The same ids for all; others where a contestant has its second turn, or it would find them all.
            seed = SEEDS * (number + 1) + 2 * in_flight + (fan_out > 1)
            told = contestants[name].turn(in_flight=in_flight, fan_out=fan_out, gathers=gathers, seed=seed)
            cell[name if fan_out == 1 else "%s_on_%d_threads" % (name, fan_out)] = told
        measured[in_flight] = cell
        say("round %d, %d in flight: %s" % (number + 1, in_flight, ", ".join(
            "%s %.0f" % (name, told["rows_per_s"]) for name, told in cell.items())))
    return measured


def summary(rounds, details):
    medians = {in_flight: {name: {key: statistics.median(r[in_flight][name][key] for r in rounds)
                                  for key in rounds[0][in_flight][name]}
                           for name in rounds[0][in_flight]} for in_flight in GATHERS}
    def stack_vs(name, cells):
        return statistics.median(cell["stack"]["rows_per_s"] / cell[name]["rows_per_s"] for cell in cells)
    against = {in_flight: {name: stack_vs(name, [r[in_flight] for r in rounds])
                           for name in rounds[0][in_flight] if name != "stack"} for in_flight in GATHERS}
    rocksdb = [name for name in against[1] if name.startswith("rocksdb")]
    ratios = {"cold_vs_mmap": min(against[n]["mmap"] for n in GATHERS),
              "cold_vs_rocksdb_cache": min(against[n][name] for n in GATHERS for name in rocksdb)}
    common = "rows a second of the tier stack (hot-row cache, flat store) over those of %s, both with a table of %d " \
             "times the memory that they may take: gathers of %d rows, Zipf 1.0, hot rows far apart; the lesser of 1 " \
             "and 8 gathers in flight"
    what = {"cold_vs_mmap": "a mapped file (MADV_RANDOM), each gather copied on its thread",
            "cold_vs_rocksdb_cache": "RocksDB's best: a row or a page of rows in a value, MultiGet on one thread or %d"
                                     % FAN_OUT}
    return (ratios, {name: common % (what[name], MEMORY_SHARE, ROWS) for name in ratios},
            {**details, "medians": medians, "stack_vs": against})
