"""warm_restart_vs_dd: from the start of a table server to its readiness, all its partitions in its local store and no
page cache, against dd over the store's files."""
import disk_reads
import made_checkpoint
import timed_start
from bench_servers import StartError

NAME = "warm_restart"
WHAT = "a local store that an earlier start filled, against dd"
TABLE_BYTES, QUICK_TABLE_BYTES = 4.3e9, 1.1e9
STORES = {"flat": "*.rows", "rocksdb": "*.sst"}
READ = (0.95, 1.1)  # of the store's bytes: all of them, and not the checkpoint too


def measure(servers, arguments, say):
    size = QUICK_TABLE_BYTES if arguments.quick else TABLE_BYTES
    checkpoint, table_bytes = made_checkpoint.make(servers, arguments, size, say, len(STORES) * 1.06 * size)
    ratios, details = {}, {}
    for kind, pattern in STORES.items():
        directory = servers.directory / kind
        command = [arguments.bin / "engram-table-server", "--checkpoint", checkpoint, "--listen", "127.0.0.1:0",
                   "--server-name", "a", "--drain-seconds", 0, "--store", "%s:%s" % (kind, directory)]
        say("filling the %s store" % kind)
        fill = timed_start.start(servers, command)
        files = disk_reads.files_below(directory, pattern)
        disk_reads.forget(made_checkpoint.table_files(checkpoint))
        measured = timed_start.rounds(servers, command, files, table_bytes, arguments.rounds, say)
        for turns in measured:
            if not READ[0] <= turns["engram"]["read_bytes"] / disk_reads.size_of(files) <= READ[1]:
                raise StartError("a restart read %d bytes, the store has %d" % (
                    turns["engram"]["read_bytes"], disk_reads.size_of(files)))
        ratios[kind] = timed_start.median(measured)
        details[kind] = {"ratio": ratios[kind], "fill": fill, **timed_start.summary(measured, files, table_bytes)}
    return ({"warm_restart_vs_dd": ratios["flat"]},
            {"warm_restart_vs_dd": "as load_vs_dd, with --store flat:DIR that an earlier start filled and dd over the "
                                   "store's files; the checkpoint is not read again (details: rocksdb:DIR too)"},
            details)
