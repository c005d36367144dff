"""What the project ships about the real model is what was published."""
import hashlib
import json
import unittest

import numpy as np

import cluster

DEPLOY = cluster.GOLDEN.parents[2] / "deploy"
CONFIG = DEPLOY / "config" / "deepseek-v4.1"


class ShippedDataTest(unittest.TestCase):
    def test_token_map(self):
        data = (CONFIG / "engram_token_map.bin").read_bytes()
        self.assertEqual(hashlib.sha256(data).hexdigest(),
                         "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481")
        ids = np.frombuffer(data, "<i4")
        config = json.loads((CONFIG / "config.json").read_text())
        self.assertEqual(len(ids), config["vocab_size"])
        self.assertEqual(ids.max() + 1, config["engram_compressed_vocab_size"])
        self.assertEqual(ids[2], 2)

    def test_texts(self):
        texts = json.loads((DEPLOY / "demo-data" / "texts.json").read_text())
        self.assertEqual([text["name"] for text in texts], ["english", "chinese", "code"])
        for text in texts:
            self.assertGreater(len(text["token_ids"]), 100)
            self.assertTrue(all(0 <= i < 129280 for i in text["token_ids"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
