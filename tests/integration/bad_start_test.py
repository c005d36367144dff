"""Starts that must be refused: the process ends with an error that says why, or waits where
waiting is right."""
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
import unittest

import admin
import cluster
import engram_oracle as oracle
import processes


def run(command, seconds=60):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds)


class BadStartTest(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(cluster.temporary_directory())
        self.checkpoint = cluster.copy_golden_checkpoint("tiny", self.scratch)
        self.file = self.checkpoint / "model-00001-of-00002.safetensors"

    def server(self, *extra, checkpoint=None, listen=None, name="a"):
        return [cluster.BIN / "engram-table-server", "--checkpoint", checkpoint or self.checkpoint, "--listen",
                listen or "unix:%s/a.sock" % self.scratch, "--server-name", name, *extra]

    def refused(self, command, *texts):
        result = run(command)
        self.assertNotEqual(result.returncode, 0, result.stderr)
        self.assertGreater(result.returncode, 0, "ended by a signal\n" + result.stderr)
        self.assertNotIn("ready", result.stdout)
        for text in texts:
            self.assertIn(text, result.stderr)

    def header(self):
        data = self.file.read_bytes()
        size, = struct.unpack("<Q", data[:8])
        return json.loads(data[8:8 + size]), data[8 + size:]

    def write(self, header, data):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        self.file.write_bytes(struct.pack("<Q", len(text)) + text + data)

    def test_damaged_safetensors(self):
        header, data = self.header()
        name = "layers.1.engram.embed.weight"
        whole = self.file.read_bytes()

        def changed(**fields):
            return {**header, name: {**header[name], **fields}}
        begin, end = header[name]["data_offsets"]
        cases = {
            "truncated": lambda: self.file.write_bytes(whole[:len(whole) // 2]),
            "empty": lambda: self.file.write_bytes(b""),
            "header past the end": lambda: self.file.write_bytes(struct.pack("<Q", len(whole)) + whole[8:]),
            "header of 2^63": lambda: self.file.write_bytes(struct.pack("<Q", 1 << 63) + whole[8:]),
            "overlap": lambda: self.write(changed(data_offsets=[begin + 1, end + 1]), data),
            "descending": lambda: self.write(changed(data_offsets=[end, begin]), data),
            "shape": lambda: self.write(changed(shape=[header[name]["shape"][0], 31]), data),
            "huge shape": lambda: self.write(changed(shape=[1 << 63, 1 << 63]), data),
            "negative shape": lambda: self.write(changed(shape=[-1, 32]), data),
            "duplicate": lambda: self.write(json.dumps(header).encode()[:-1] + b', "%s": %s}' % (
                name.encode(), json.dumps(header[name]).encode()), data),
            "not json": lambda: self.write(b"{" * 50000, data),
        }
        for label, damage in cases.items():
            with self.subTest(label):
                damage()
                self.refused(self.server(), self.file.name)
                result = cluster.engramctl("manifest", self.checkpoint, check=False)
                self.assertEqual(result.returncode, 1)
                self.assertIn(self.file.name, result.stderr)

    def test_missing_things(self):
        index = self.checkpoint / "model.safetensors.index.json"
        text = index.read_text()
        self.file.rename(self.scratch / "aside")
        self.refused(self.server(), self.file.name)
        (self.scratch / "aside").rename(self.file)
        weights = json.loads(text)
        del weights["weight_map"]["layers.14.engram.embed.weight"]
        index.write_text(json.dumps(weights))
        self.refused(self.server(), "layers.14.engram.embed.weight")
        index.write_text(text)
        (self.checkpoint / "engram_manifest.json").unlink()
        self.refused(self.server(), "engramctl manifest")

    def test_wrong_row_count(self):
        config = self.checkpoint / "config.json"
        values = json.loads(config.read_text())
        values["engram_num_embeddings"][0] += 1
        config.write_text(json.dumps(values))
        self.refused(self.server(), "25874", "25875")

    def test_manifest_of_another_checkpoint(self):
        other = self.scratch / "other"
        oracle.make_checkpoint(oracle.PRESETS["tiny"], 99, str(other))
        shutil.copy(self.checkpoint / "engram_manifest.json", other)
        self.refused(self.server(checkpoint=other), "partition", "manifest")
        shutil.copy(self.checkpoint / "engram_manifest.json", self.scratch / "m")
        odd = cluster.copy_golden_checkpoint("odd", self.scratch)
        shutil.copy(self.scratch / "m", odd / "engram_manifest.json")
        self.refused(self.server(checkpoint=odd), "manifest")

    def test_nan_codes(self):
        header, data = self.header()
        begin, _ = header["layers.1.engram.embed.weight"]["data_offsets"]
        self.write(header, data[:begin + 100] + b"\x7f\xff" + data[begin + 102:])
        result = cluster.engramctl("manifest", self.checkpoint, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("2 NaN codes", result.stderr)
        cluster.engramctl("manifest", self.checkpoint, "--allow-nan")

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.refused(self.server(listen=address), address)

    def test_members(self):
        self.refused(self.server("--members", "static:a=127.0.0.1:1,a=127.0.0.1:2"), "a")
        self.refused(self.server("--members", "static:b=127.0.0.1:1"), "a")
        self.refused(self.server("--members", "carrier-pigeon:b"), "carrier-pigeon")
        self.refused(self.server("--layers", "3"), "3")

    def test_too_little_memory(self):
        command = [cluster.BIN / "engram-table-server", "--checkpoint", self.big_checkpoint(), "--listen",
                   "unix:%s/a.sock" % self.scratch, "--server-name", "a"]
        self.refused(command, "too little memory", "partitions of layer 1 +", "needed", "available")

    def test_too_little_memory_until_there_are_more_members(self):
        """Members that change may become more: the server waits, not ready, and says how much is lacking."""
        members = self.scratch / "members"
        members.write_text("a unix:%s/a.sock\n" % self.scratch)
        server = processes.Process(
            self.server("--members", "file:%s" % members, "--stability-seconds", "0.1", "--admin", "127.0.0.1:0",
                        checkpoint=self.big_checkpoint()), self.scratch / "server.log")
        self.addCleanup(server.stop)
        server.expect("listening on ")
        address = admin.address(server)
        deadline = time.monotonic() + processes.START_SECONDS
        while "needed" not in (answer := admin.get(address, "/readyz"))[1] and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(answer[0], 503)
        self.assertRegex(answer[1], r"too little memory: .* partitions of layer 1 \+ .* needed, .* available")
        server.terminate()
        self.assertEqual(server.wait(), 0)

    def big_checkpoint(self):
        """More table than this machine has memory, in sparse files that take no disk."""
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        vocab = 2 * total // (2 * 24 * 264)
        if vocab > 170_000_000:
            self.skipTest("this machine has more memory than the largest table takes")
        config = dict(oracle.PRESETS["v41-mini"], engram_vocab_size=vocab)
        target = self.scratch / "big"
        target.mkdir()
        layout = oracle.layout(config)
        index = {}
        for i, layer in enumerate(config["engram_layer_ids"]):
            rows, prefix, offset, header = layout["rows"][i], "layers.%d.engram." % layer, 0, {}
            for name, dtype, shape in (("embed.weight", "F8_E4M3", [rows, 256]), ("embed.scale", "F8_E8M0", [rows, 8]),
                                       ("wkv.weight", "F8_E4M3", [25600, 6144]), ("wkv.scale", "F8_E8M0", [800, 192]),
                                       ("q_weight", "BF16", [4, 5120]), ("k_weight", "BF16", [4, 5120])):
                size = shape[0] * shape[1] * (2 if dtype == "BF16" else 1)
                header[prefix + name] = dict(dtype=dtype, shape=shape, data_offsets=[offset, offset + size])
                offset += size
                index[prefix + name] = "%d.safetensors" % layer
            text = json.dumps(header).encode()
            with open(target / ("%d.safetensors" % layer), "wb") as out:
                out.write(struct.pack("<Q", len(text)) + text)
                out.truncate(8 + len(text) + offset)
        (target / "model.safetensors.index.json").write_text(json.dumps(dict(weight_map=index)))
        (target / "config.json").write_text(json.dumps(dict(config, engram_num_embeddings=layout["rows"])))
        self.write_manifest_without_reading(target, config, layout)
        return target

    def write_manifest_without_reading(self, target, config, layout):
        small = json.loads((self.checkpoint / "engram_manifest.json").read_text())
        small["config"] = dict(small["config"], **{k: v for k, v in config.items() if k in small["config"]})
        small["config"]["engram_num_embeddings"] = layout["rows"]
        small["row_format"].update(width=256)
        small["partition_rows"] = 65536
        small["layers"] = [dict(layer_id=layer, row_count=rows, digests=["0" * 32] * -(-rows // 65536))
                           for layer, rows in zip(config["engram_layer_ids"], layout["rows"])]
        (target / "engram_manifest.json").write_text(json.dumps(small))

    def worker(self, tables, *extra, checkpoint=None):
        return [cluster.BIN / "engram-compute-worker", "--checkpoint", checkpoint or self.checkpoint, "--tables", tables,
                "--listen", "unix:%s/w.sock" % self.scratch, *extra]

    def test_worker_refuses_a_wrong_token_map(self):
        wrong = self.scratch / "map.bin"
        wrong.write_bytes(b"\0" * 2044)
        self.refused(self.worker("unix:/nowhere", "--token-map", wrong), "2044", "2048")
        wrong.write_bytes(struct.pack("<512i", *([0] * 511 + [400])))
        self.refused(self.worker("unix:/nowhere", "--token-map", wrong), "400")

    def test_worker_refuses_a_device_that_it_cannot_use(self):
        self.refused(self.worker("unix:/nowhere", "--device", "gpu"), "--device", '"gpu"', "cuda:N")
        self.refused(self.worker("unix:/nowhere", "--projection", "exact"), "--projection", "exact")
        devices = ["cuda:999"]  # which no machine has
        if not os.path.exists("/dev/nvidiactl"):
            devices += ["cuda", "cuda:0"]
        for device in devices:
            with self.subTest(device):
                result = run(self.worker("unix:/nowhere", "--device", device))
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stdout, "")
                # Without GPU code, without a driver, without such a device.
                self.assertRegex(result.stderr, "device %s: .*(GPU code|looking for GPUs|GPU 999|no GPU)" % device)

    def test_worker_refuses_tables_of_another_version(self):
        other = self.scratch / "other"
        oracle.make_checkpoint(oracle.PRESETS["tiny"], 99, str(other))
        cluster.engramctl("manifest", other)
        with cluster.Cluster(self.checkpoint) as running:
            self.refused(self.worker(running.tables, checkpoint=other), "version")

    def test_two_servers_of_one_name(self):
        with cluster.Cluster(self.checkpoint) as one, cluster.Cluster(self.checkpoint) as two:
            result = cluster.engramctl("status", "--tables", one.tables + "," + two.tables, check=False)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("t0", result.stdout + result.stderr)
            self.refused(self.worker(one.tables + "," + two.tables), "t0")

    def test_client_waits_for_a_server_that_is_not_up_yet(self):
        ids, out = self.scratch / "ids.safetensors", self.scratch / "rows.safetensors"
        oracle.write_safetensors(ids, {"layers.1.row_ids": ("I64", oracle.np.arange(50, dtype=oracle.np.int64))})
        late = cluster.Cluster(self.checkpoint, servers=2)
        self.addCleanup(late.__exit__)
        results = []
        client = threading.Thread(target=lambda: results.append(cluster.engramctl(
            "gather", "--tables", late.tables, "--layer", 1, "--in", ids, "--out", out, "--timeout-seconds", 60,
            check=False)))
        client.start()
        late.start_server("t0").expect("ready")
        late.start_server("t1").expect("ready")
        client.join()
        self.assertEqual(results[0].returncode, 0, results[0].stderr)
        self.assertEqual(oracle.read_safetensors(out)["layers.1.packed_rows"].shape, (50, 33))

    def test_deadline_when_nobody_comes(self):
        ids = self.scratch / "ids.safetensors"
        oracle.write_safetensors(ids, {"layers.1.row_ids": ("I64", oracle.np.zeros(1, oracle.np.int64))})
        result = cluster.engramctl("gather", "--tables", "unix:%s/nobody" % self.scratch, "--layer", 1, "--in", ids,
                                   "--out", self.scratch / "o", "--timeout-seconds", 1, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("nobody", result.stderr)
        self.assertFalse((self.scratch / "o").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
