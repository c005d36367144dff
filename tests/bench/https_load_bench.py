"""https_load_vs_curl: from the start of a table server to its readiness, a checkpoint by https:// from nginx on
this machine, against curl fetching the same bytes from it."""
import os
import statistics
import time

import made_checkpoint
import run_description
import timed_start
from certificate import make_certificate
from memory_at_hand import MemoryAtHand

NAME = "https_load"
WHAT = "a checkpoint over TLS from a local nginx, against curl"
TABLE_BYTES, QUICK_TABLE_BYTES = 1.1e9, 0.3e9
PARALLEL = 8  # connections, on both sides
SECONDS = 600


def measure(servers, arguments, say):
    checkpoint, total = made_checkpoint.make(
        servers, arguments, QUICK_TABLE_BYTES if arguments.quick else TABLE_BYTES, say)
    certificate, key = make_certificate(servers.directory)
    nginx = servers.start_nginx(servers.directory, certificate, key)
    root = "https://%s/checkpoint" % nginx.address
    os.environ["no_proxy"] = "127.0.0.1"  # whatever the environment's proxies are
    ranges = made_checkpoint.table_ranges(checkpoint)
    rounds = []
    for i in range(arguments.rounds):
        # In turns that change places; both find the files in the page cache.
        seconds = {}
        for who in ("curl", "engram") if i % 2 == 0 else ("engram", "curl"):
            say("round %d: %s" % (i + 1, who))
            with MemoryAtHand(total, needed=total + timed_start.SERVER_BYTES):
                seconds[who] = (curl_seconds if who == "curl" else engram_seconds)(
                    servers, arguments, root, ranges, certificate)
        rounds.append({"curl_s": seconds["curl"], "engram_s": seconds["engram"],
                       "ratio": seconds["curl"] / seconds["engram"]})
    return ({"https_load_vs_curl": statistics.median(r["ratio"] for r in rounds)},
            {"https_load_vs_curl":
             "bytes of the tables a second, from a table server's start until it is ready, over curl's: %d at a time, "
             "the same ranges, to /dev/null, from nginx with TLS on this machine" % PARALLEL},
            {"table_bytes": total, "requests": len(ranges), "rounds": rounds,
             "nginx": run_description.first_line("dpkg-query", "-W", "-f", "${Version}", "nginx-light"),
             "curl": run_description.first_line("curl", "--version")})


def curl_seconds(servers, arguments, root, ranges, certificate):
    config = servers.directory / "curl.conf"
    config.write_text("\n".join(
        'url = "%s/%s"\nrange = %d-%d\noutput = /dev/null\n' % (root, name, begin, end - 1) +
        'cacert = "%s"\nhttp1.1\nfail\nsilent\nnext' % certificate
        for name, begin, end in ranges).removesuffix("next"))
    began = time.monotonic()
    servers.run("curl", "--parallel", "--parallel-max", PARALLEL, "--config", config, seconds=SECONDS)
    return time.monotonic() - began


def engram_seconds(servers, arguments, root, ranges, certificate):
    command = [arguments.bin / "engram-table-server", "--checkpoint", root, "--ca-file", certificate,
               "--listen", "127.0.0.1:0", "--server-name", "a",
               "--load-threads", PARALLEL, "--drain-seconds", 0]
    began = time.monotonic()
    server = servers.start("engram", *command)
    seconds = time.monotonic() - began
    servers.stop(server)
    return seconds
