"""tests/gpu/run and pack as they are used: a folder packed from this build, started elsewhere."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["ENGRAM_BIN_DIR"]) / "engram-gpu-check"
NO_DEVICE = 3


def call(*command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=250, **options)


class GpuRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="gpu-run-")
        cls.bundle = pathlib.Path(cls.home.name) / "bundle"
        packed = call(ROOT / "tests/gpu/pack", PROGRAM, cls.bundle)
        assert packed.returncode == 0, packed.stderr

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def run_script(self, *arguments, **options):
        return call(ROOT / "tests/gpu/run", *arguments, **options)

    def test_the_folder_has_what_a_bare_machine_lacks(self):
        names = {p.name for p in (self.bundle / "lib").iterdir()}
        self.assertTrue(any(n.startswith("libspdlog.so") for n in names), names)
        self.assertIn("libstdc++.so.6", names)
        self.assertFalse({n for n in names if n.startswith(("libc.so", "libm.so", "libcuda"))})
        self.assertTrue((self.bundle / "data/tiny/config.json").is_file())
        self.assertFalse([p for p in self.bundle.rglob("*") if p.is_symlink()])

    def test_a_moved_folder_starts_without_this_machines_libraries(self):
        moved = self.bundle.parent / "moved"
        shutil.copytree(self.bundle, moved)
        listed = call(moved / "bin/engram-gpu-check", "--list", env={})
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for name in ("gather", "projection", "golden", "time-step"):
            self.assertIn("\n%s " % name, "\n" + listed.stdout)

    def test_the_build_with_few_dependencies_configures(self):
        done = call("cmake", "--preset", "gpu", "-B", self.bundle.parent / "build", cwd=ROOT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_build_only_ends_after_the_folder(self):
        done = self.run_script("--bundle", self.bundle, "--build-only")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(self.bundle), done.stderr)

    def test_without_a_device_it_says_so(self):
        out = self.bundle.parent / "out"
        done = self.run_script("--bundle", self.bundle, "--quick", "--out", out)
        if done.returncode == 0:  # there is a GPU here
            self.assertEqual(json.loads((out / "gpu-check.json").read_text())["facts"]["sizes"], "of --quick")
            return
        self.assertEqual(done.returncode, NO_DEVICE, done.stderr)
        self.assertIn("no device to run on", done.stderr)
        self.assertIn("no GPU here", done.stderr)
        self.assertFalse(out.exists())

    def test_a_folder_of_other_sources_is_noticed(self):
        other = self.bundle.parent / "other"
        shutil.copytree(self.bundle, other)
        text = (other / "build.txt").read_text()
        (other / "build.txt").write_text(text.replace("sources=", "sources=0"))
        self.assertIn("other sources", self.run_script("--bundle", other, "--quick").stderr)
        self.assertNotIn("other sources", self.run_script("--bundle", self.bundle, "--quick").stderr)

    def test_what_it_cannot_use_is_named(self):
        done = self.run_script("--bundle", self.bundle.parent / "nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no folder that tests/gpu/pack made", done.stderr)
        done = self.run_script("--nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--nonsense", done.stderr)

    def test_a_check_that_there_is_none_of_is_a_usage_error(self):
        done = call(PROGRAM, "--only", "wkv")
        self.assertEqual(done.returncode, 2)
        self.assertIn("wkv", done.stderr)


if __name__ == "__main__":
    unittest.main()
