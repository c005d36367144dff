"""flat_vs_rocksdb_rows: the two local stores, random rows, no cache."""
import json

import disk_reads

NAME = "stores"
WHAT = "the flat store against RocksDB: rows, CPU time, whole partitions"
TABLE_BYTES, QUICK_TABLE_BYTES = 1e9, 3e8
COPIES = 4  # of the table on the disk
CELL = {"rows": 1536, "in_flight": 4}
DEFAULT_FROM = 1.5  # flat is the default for rows if it is so much faster
SECONDS = 1800


def measure(servers, arguments, say):
    size = int(QUICK_TABLE_BYTES if arguments.quick else TABLE_BYTES)
    disk_reads.need_room(servers.directory, 1.1 * COPIES * size, "the stores")
    say("%d stores of %.1f GB in %s" % (COPIES, size / 1e9, servers.directory))
    path = servers.directory / "stores.json"
    servers.run(arguments.bin / "engram-bench-store", "--dir", servers.directory, "--bytes", size,
                "--rounds", arguments.rounds, "--json", path, seconds=SECONDS)
    result = json.loads(path.read_text())
    flat, *others = result["contestants"]
    against = {other["name"]: compare(flat, other) for other in others}
    rows = min(other["rows"] for other in against.values())
    return ({"flat_vs_rocksdb_rows": rows},
            {"flat_vs_rocksdb_rows": "rows a second of the flat store over RocksDB's with the best number of rows "
                                     "in a value: %d gathers at a time of %d uniform rows" % (
                                         CELL["in_flight"], CELL["rows"])},
            {"flat_vs": against, "default_for_rows": "flat" if rows > DEFAULT_FROM else "rocksdb", **result})


def compare(flat, other):
    cell = next(c for c in other["cells"] if all(c[key] == value for key, value in CELL.items()))
    return {"rows": cell["flat_vs_this"], "cpu": cell["core_vs_flat"],
            "load": flat["read_mb_per_s"] / other["read_mb_per_s"]}
