"""A table server's start until it is ready, beside dd over the same files, in turns."""
import os
import pathlib
import statistics
import time

import disk_reads
from memory_at_hand import MemoryAtHand

CONTESTANTS = ("dd_direct", "dd_buffered", "engram", "into_memory")
CONTROLS = {"dd_direct": "dd iflag=direct bs=4M", "dd_buffered": "dd bs=4M, page cache empty",
            "into_memory": "direct reads of 4 MiB on one thread into memory that was not used before, nothing looked at"}
SERVER_BYTES = 2e9  # beside the table, with what it leaves to others


def start(servers, command):
    """Seconds to readiness, and what it took until then. The server is stopped."""
    began = time.monotonic()
    server = servers.start("engram", *command)
    seconds = time.monotonic() - began
    process = pathlib.Path("/proc/%d" % server.pid)
    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    counts = dict(line.split(": ") for line in (process / "io").read_text().splitlines())
    servers.stop(server)
    return {"s": seconds, "user_s": int(fields[11]) / ticks, "system_s": int(fields[12]) / ticks,
            "read_bytes": int(counts["read_bytes"])}


def take_turn(who, servers, command, files):
    if who == "engram":
        return start(servers, command)
    if who == "into_memory":
        return {"s": disk_reads.into_memory_seconds(files)}
    return {"s": disk_reads.dd_seconds(files, direct=who == "dd_direct")}


def rounds(servers, command, files, table_bytes, count, say):
    """Of each round the ratio of the rates, the server's by the table's bytes, dd's by those of its files."""
    measured = []
    size = disk_reads.size_of(files)
    for i in range(count):
        turns = {}
        for j in range(len(CONTESTANTS)):
            who = CONTESTANTS[(i + j) % len(CONTESTANTS)]
            disk_reads.forget(files)
            left = disk_reads.cached_bytes(files)
            # Of the table and, for whoever reads through it, the page cache.
            with MemoryAtHand(table_bytes + size, needed=table_bytes + SERVER_BYTES):
                turns[who] = take_turn(who, servers, command, files)
            turns[who]["cached_before"] = left
        dd_s = min(turns["dd_direct"]["s"], turns["dd_buffered"]["s"])
        turns["ratio"] = (table_bytes / turns["engram"]["s"]) / (size / dd_s)
        turns["into_memory_ratio"] = dd_s / turns["into_memory"]["s"]
        turns["against_into_memory"] = turns["ratio"] / turns["into_memory_ratio"]
        say("round %d: %.0f MB/s, dd %.0f MB/s, ratio %.2f" % (
            i + 1, table_bytes / turns["engram"]["s"] / 1e6, size / dd_s / 1e6, turns["ratio"]))
        measured.append(turns)
    return measured


def median(measured, key="ratio"):
    return statistics.median(turns[key] for turns in measured)


def summary(measured, files, table_bytes):
    return {"table_bytes": table_bytes, "file_bytes": disk_reads.size_of(files), "files": len(files),
            "page_cache": "emptied of these files by POSIX_FADV_DONTNEED before each turn; "
                          "cached_before: what was left (null: no fincore)",
            "contestants": CONTROLS, "rounds": measured,
            "into_memory_vs_dd": median(measured, "into_memory_ratio"),
            "server_vs_into_memory": median(measured, "against_into_memory")}
