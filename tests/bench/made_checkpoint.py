"""The checkpoint that a benchmark loads: V4.1's shapes with short tables."""
import json
import struct

import disk_reads

ROW_BYTES = 264
PROJECTION_BYTES = 4e8  # are in a checkpoint too
ROWS_PER_WORD = 48  # 24 columns in each of two layers
SECONDS = 1200


def make(servers, arguments, table_bytes, say, more_bytes=0):
    """(directory, bytes of its tables). `more_bytes`: what else the part is going to write."""
    vocab = int(table_bytes / ROW_BYTES / ROWS_PER_WORD)
    disk_reads.need_room(servers.directory, 1.02 * table_bytes + PROJECTION_BYTES + more_bytes, "this benchmark")
    say("a checkpoint of %.1f GB in %s" % (table_bytes / 1e9, servers.directory))
    directory = servers.directory / "checkpoint"
    servers.run(arguments.bin / "engramctl", "make-checkpoint", "--preset", "v41-mini", "--vocab-size", vocab,
                "--seed", 1, "--out", directory, seconds=SECONDS)
    return directory, sum(end - begin for _, begin, end in table_ranges(directory))


def table_files(checkpoint):
    return [checkpoint / name for name in sorted({name for name, _, _ in table_ranges(checkpoint)})]


def table_ranges(checkpoint):
    """(file, begin, end) of what a server that owns everything reads: each partition's scales and codes."""
    manifest = json.loads((checkpoint / "engram_manifest.json").read_text())
    index = json.loads((checkpoint / "model.safetensors.index.json").read_text())["weight_map"]
    ranges = []
    for layer in manifest["layers"]:
        for column in ("scale", "weight"):
            tensor = "layers.%d.engram.embed.%s" % (layer["layer_id"], column)
            path = checkpoint / index[tensor]
            with open(path, "rb") as file:
                size, = struct.unpack("<Q", file.read(8))
                begin, end = json.loads(file.read(size))[tensor]["data_offsets"]
            step = (end - begin) // layer["row_count"] * manifest["partition_rows"]
            begin, end = begin + 8 + size, end + 8 + size
            ranges += [(path.name, at, min(at + step, end)) for at in range(begin, end, step)]
    return ranges
