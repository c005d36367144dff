"""The overlays of k8s/: valid, of one piece, and true of the binaries and the table's size."""
import json
import re
import shutil
import unittest

import admin
import cluster
import manifests
from manifests import main_container, pod_labels, pod_spec, probes, quantity, selects
from overlay_checks import KUBERNETES_VERSIONS, OverlayChecks, help_flags
from processes import BIN, Process


STORE_BYTES_A_BYTE = 1.05  # of a row, in the local store


class DevelopmentTest(OverlayChecks, unittest.TestCase):
    OVERLAY = "development"


class ProductionTest(OverlayChecks, unittest.TestCase):
    OVERLAY = "production"

    def test_a_lost_node_takes_one_server(self):
        self.assertGreaterEqual(int(self.all.arguments(self.all.table_servers)["--replicas"]), 2)
        rule, = pod_spec(self.all.table_servers)["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(rule["topologyKey"], "kubernetes.io/hostname")
        self.assertTrue(selects(rule["labelSelector"]["matchLabels"], pod_labels(self.all.table_servers)))

    def test_resources_are_guaranteed(self):
        for workload in self.all.workloads:
            resources = main_container(workload)["resources"]
            self.assertEqual(resources["requests"], resources["limits"])


    def test_table_is_the_published_one(self):
        text = (manifests.SOURCE / "deploy" / "config" / "deepseek-v4.1" / "config.json").read_text()
        config = json.loads(text)
        row_bytes = config["engram_head_dim"] + config["engram_head_dim"] // 32  # a code each, a scale for 32
        self.assertEqual(self.all.table_servers["metadata"]["annotations"]["engram/table-bytes"],
                         str(sum(config["engram_num_embeddings"]) * row_bytes))


class OtherComponents:
    """COMPONENTS instead of the checkpoint on a claim."""

    @classmethod
    def rendered(cls):
        with cluster.temporary_directory() as directory:
            shutil.copytree(manifests.K8S, directory / "k8s")
            overlay = directory / "k8s" / "overlays" / cls.OVERLAY
            path = overlay / "kustomization.yaml"
            text = path.read_text()
            changed = text.replace("  - ../../components/checkpoint-pvc\n",
                                   "".join("  - ../../components/%s\n" % name for name in cls.COMPONENTS))
            assert changed != text
            path.write_text(changed)
            return manifests.render(overlay)


class ProductionOnHostPathTest(OtherComponents, ProductionTest):
    """As the overlay's comment says."""
    COMPONENTS = ["checkpoint-host-path"]

    def test_namespace_takes_volumes_of_the_host(self):
        labels = self.all.get("Namespace", self.all.namespace)["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "privileged")


class ProductionWithLocalStoreTest(OtherComponents, ProductionTest):
    COMPONENTS = ["checkpoint-pvc", "local-store"]

    def test_the_store_is_on_a_claim_that_holds_the_share(self):
        flags = self.all.arguments(self.all.table_servers)
        claim, = self.all.table_servers["spec"]["volumeClaimTemplates"]
        mount, = [m for m in main_container(self.all.table_servers)["volumeMounts"]
                  if m["name"] == claim["metadata"]["name"]]
        kind, path = flags["--store"].split(":")
        self.assertIn(kind, ("flat", "rocksdb"))
        # Not its root, which the file system shares.
        self.assertTrue(path.startswith(mount["mountPath"] + "/"))
        self.assertFalse(mount.get("readOnly", False))
        most, _ = self.table_sums()
        limit = int(flags["--store-gb"]) * 10**9
        self.assertGreaterEqual(limit, STORE_BYTES_A_BYTE * most)
        self.assertGreater(quantity(claim["spec"]["resources"]["requests"]["storage"]), limit)
        security = pod_spec(self.all.table_servers)["securityContext"]
        self.assertEqual(security["fsGroup"], security["runAsGroup"])


class K8sTest(unittest.TestCase):
    def test_every_overlay_has_a_test(self):
        self.assertEqual(manifests.OVERLAYS, sorted([DevelopmentTest.OVERLAY, ProductionTest.OVERLAY]))

    def test_validation_notices_mistakes(self):
        text = manifests.render(manifests.K8S / "overlays" / "development")
        with cluster.temporary_directory() as directory:
            path = directory / "wrong.yaml"
            for right, wrong in (("serviceName:", "serviceNam:"), ("replicas: 3", "replicas: three")):
                self.assertIn(right, text)
                path.write_text(text.replace(right, wrong))
                self.assertNotEqual(manifests.validate(path, KUBERNETES_VERSIONS[-1]).returncode, 0, wrong)

    def test_admin_ports_have_the_paths(self):
        all_probes = {}
        for overlay in manifests.OVERLAYS:
            found = manifests.Manifests(manifests.render(manifests.K8S / "overlays" / overlay))
            for workload in found.workloads:
                container = main_container(workload)
                paths = all_probes.setdefault(container["command"][0], set())
                paths.update(probe["httpGet"]["path"] for probe in probes(container).values())
                paths.add(workload["spec"]["template"]["metadata"]["annotations"]["prometheus.io/path"])
        self.check_paths(all_probes.pop("engram-table-server"), "ready", [
            BIN / "engram-table-server", "--source", "synthetic:1", "--preset", "tiny", "--server-name", "t0"])
        with cluster.temporary_directory() as directory:
            # Before its table servers are there, too.
            self.check_paths(all_probes.pop("engram-compute-worker"), "listening on", [
                BIN / "engram-compute-worker", "--checkpoint", cluster.copy_golden_checkpoint("tiny", directory),
                "--tables", "unix:%s/nobody" % directory])
        self.assertFalse(all_probes)

    def check_paths(self, paths, line, command):
        with cluster.temporary_directory() as directory:
            process = Process([*command, "--listen", "unix:%s/socket" % directory, "--admin", "127.0.0.1:0"],
                              directory / "log")
            try:
                process.expect(line)
                address = admin.address(process)
                for path in paths:
                    self.assertIn(admin.get(address, path)[0], (200, 503), path)
                self.assertEqual(admin.get(address, "/nothing")[0], 404)
            finally:
                process.stop()

    def test_readme_names_commands_that_are_there(self):
        text = (manifests.K8S / "README.md").read_text()
        commands = re.findall(r"^ *(?:ectl|engramctl) (\S+)(.*?)(?:#.*)?$", text, re.MULTILINE)
        self.assertTrue(commands)
        for subcommand, arguments in commands:
            known = help_flags(BIN / "engramctl", subcommand)
            self.assertLessEqual(set(re.findall(r"--[a-z][a-z-]*", arguments)), known, subcommand)


if __name__ == "__main__":
    unittest.main()
