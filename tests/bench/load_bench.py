"""load_vs_dd: from the start of a table server to its readiness, a local checkpoint and no page cache, against dd over
the checkpoint's files."""
import made_checkpoint
import timed_start

NAME = "load"
WHAT = "a local checkpoint into memory, against dd"
TABLE_BYTES, QUICK_TABLE_BYTES = 4.3e9, 1.1e9


def measure(servers, arguments, say):
    checkpoint, table_bytes = made_checkpoint.make(
        servers, arguments, QUICK_TABLE_BYTES if arguments.quick else TABLE_BYTES, say)
    files = made_checkpoint.table_files(checkpoint)
    command = [arguments.bin / "engram-table-server", "--checkpoint", checkpoint, "--listen", "127.0.0.1:0",
               "--server-name", "a", "--drain-seconds", 0]
    measured = timed_start.rounds(servers, command, files, table_bytes, arguments.rounds, say)
    return ({"load_vs_dd": timed_start.median(measured)},
            {"load_vs_dd": "bytes of the tables a second, from a table server's start until it is ready, over those of "
                           "the faster of dd bs=4M with and without iflag=direct over the same files to /dev/null; "
                           "none of them in the page cache"},
            timed_start.summary(measured, files, table_bytes))
