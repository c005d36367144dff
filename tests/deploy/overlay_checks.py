"""What holds for each overlay of k8s/."""
import re
import subprocess

import cluster
import manifests
from manifests import (all_containers, main_container, pod_labels, pod_spec, probes, quantity, seconds_of, selects)
from processes import BIN

KUBERNETES_VERSIONS = ["1.29", "1.37"]  # oldest and newest that k8s/README.md names

FULLEST = 1.03               # of the mean share: core/placement
IN_FLIGHT_BYTES = 1 << 30    # ServiceLimits::max_bytes_in_flight
RESERVE_BYTES = 256 << 20    # of CheckMemory
END_OF_CALLS_SECONDS = 5     # TableServer::Options::drain_calls
END_OF_STEPS_SECONDS = 30    # the worker's kDrainTimeout
SPARE_SECONDS = 5            # of a grace period, for the process to end
WRONG_USAGE = 100            # CLI11's exit codes begin there


def help_flags(*command):
    result = subprocess.run([str(word) for word in command] + ["--help"], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=60, check=True)
    return set(re.findall(r"^\s+(?:-\w,)?(--[a-z][a-z0-9-]*)", result.stdout, re.MULTILINE))


class OverlayChecks:
    """Of one rendered overlay, which a subclass names."""
    OVERLAY = None

    @classmethod
    def rendered(cls):
        return manifests.render(manifests.K8S / "overlays" / cls.OVERLAY)

    @classmethod
    def setUpClass(cls):
        cls.text = cls.rendered()
        cls.all = manifests.Manifests(cls.text)

    def test_schemas_of_kubernetes_have_nothing_against_it(self):
        with cluster.temporary_directory() as directory:
            path = directory / "rendered.yaml"
            path.write_text(self.text)
            for version in KUBERNETES_VERSIONS:
                with self.subTest(version):
                    result = manifests.validate(path, version)
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    # ---- of one piece ----

    def test_all_is_in_the_namespace(self):
        for one in self.all.objects:
            if one["kind"] != "Namespace":
                self.assertEqual(one["metadata"]["namespace"], self.all.namespace, one["metadata"]["name"])

    def test_selectors_match_labels(self):
        for one in self.all.workloads:
            self.assertTrue(selects(one["spec"]["selector"]["matchLabels"], pod_labels(one)), one["metadata"]["name"])
        for one in self.all.of_kind("Service", "PodDisruptionBudget"):
            name, selector = one["metadata"]["name"], one["spec"]["selector"]
            selector = selector.get("matchLabels", selector)
            chosen = [w["metadata"]["name"] for w in self.all.workloads if selects(selector, pod_labels(w))]
            self.assertEqual(chosen, [name], one["kind"])
        for workload in self.all.workloads:
            for constraint in pod_spec(workload).get("topologySpreadConstraints", []):
                self.assertTrue(selects(constraint["labelSelector"]["matchLabels"], pod_labels(workload)))

    def test_ports_are_the_ones_listened_on(self):
        for workload in self.all.workloads:
            flags = self.all.arguments(workload)
            ports = {port["name"]: port["containerPort"] for port in main_container(workload)["ports"]}
            self.assertEqual(flags["--listen"], "0.0.0.0:%d" % ports["grpc"])
            self.assertEqual(flags["--admin"], "0.0.0.0:%d" % ports["admin"])
            service, = self.all.get("Service", workload["metadata"]["name"])["spec"]["ports"]
            self.assertEqual((service["name"], service["port"], service["targetPort"]), ("grpc", ports["grpc"], "grpc"))
            scraped = workload["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"]
            self.assertEqual(scraped, str(ports["admin"]))

    def test_network_policies_let_through_what_is_needed(self):
        ports = {w["metadata"]["name"]: {p["name"]: p["containerPort"] for p in main_container(w)["ports"]}
                 for w in self.all.workloads}

        def rules(workload, direction):
            policy = self.all.get("NetworkPolicy", workload["metadata"]["name"])["spec"]
            self.assertTrue(selects(policy["podSelector"]["matchLabels"], pod_labels(workload)))
            for rule in policy[direction]:
                for peer in rule["from" if direction == "ingress" else "to"]:
                    for port in rule["ports"]:
                        yield peer, port["port"]

        def allowed(workload, direction, other, port):
            return any(number == port and set(peer) == {"podSelector"} and
                       selects(peer["podSelector"]["matchLabels"], pod_labels(other))
                       for peer, number in rules(workload, direction))

        tables, workers = self.all.table_servers, self.all.workers
        grpc = ports["engram-table"]["grpc"]
        for caller in (tables, workers):
            self.assertTrue(allowed(caller, "egress", tables, grpc))
            self.assertTrue(allowed(tables, "ingress", caller, grpc))
        for workload in self.all.workloads:
            numbers = ports[workload["metadata"]["name"]]
            self.assertEqual({port for _, port in rules(workload, "ingress")}, set(numbers.values()))
            for peer, port in rules(workload, "ingress"):
                if port == numbers["admin"]:
                    self.assertEqual(list(peer), ["namespaceSelector"])
        deny = self.all.get("NetworkPolicy", "engram-default-deny")["spec"]
        self.assertEqual(deny, {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})

    def test_members_are_the_pods_of_the_headless_service(self):
        stateful_set = self.all.table_servers
        service = self.all.get("Service", stateful_set["spec"]["serviceName"])
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertTrue(service["spec"]["publishNotReadyAddresses"])
        port, = service["spec"]["ports"]
        wanted = "dns:_%s._tcp.%s.%s.svc.cluster.local" % (port["name"], service["metadata"]["name"],
                                                           self.all.namespace)
        flags = self.all.arguments(stateful_set)
        self.assertEqual(flags["--members"], wanted)
        self.assertEqual(self.all.arguments(self.all.workers)["--tables"], wanted)
        # The first label of the pod's DNS name, by which the others know it.
        self.assertEqual(flags["--server-name"], "engram-table-0")
        self.assertEqual(stateful_set["spec"]["podManagementPolicy"], "Parallel")

    def test_volumes_are_there(self):
        for workload in self.all.workloads:
            claims = {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
            volumes = {volume["name"] for volume in pod_spec(workload)["volumes"]}
            for container in all_containers(workload):
                self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes | claims)
            mount, = [m for m in main_container(workload)["volumeMounts"] if m["name"] not in claims]
            self.assertEqual(self.all.arguments(workload)["--checkpoint"], mount["mountPath"])
            self.assertTrue(mount["readOnly"])

    # ---- as little power as possible ----

    def test_containers_may_do_nothing_they_need_not(self):
        for workload in self.all.workloads:
            spec = pod_spec(workload)
            self.assertIs(spec["automountServiceAccountToken"], False)
            self.assertIs(self.all.get("ServiceAccount", spec["serviceAccountName"])["automountServiceAccountToken"],
                          False)
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
            self.assertGreater(spec["securityContext"]["runAsUser"], 0)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(spec))
            for container in all_containers(workload):
                self.assertEqual(container["securityContext"],
                                 {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                  "capabilities": {"drop": ["ALL"]}}, container["name"])

    def test_images_are_pinned(self):
        for workload in self.all.workloads:
            for container in all_containers(workload):
                name, _, tag = container["image"].rpartition(":")
                self.assertRegex(name, r"^engram/(table-server|compute-worker)$")
                self.assertNotIn(tag, ("", "latest"))

    # ---- true of the binaries ----

    def test_flags_are_the_binaries(self):
        for workload in self.all.workloads:
            container = main_container(workload)
            binary, = container["command"]
            unknown = set(self.all.arguments(workload)) - help_flags(BIN / binary)
            self.assertFalse(unknown, "%s has no such flags" % binary)
            for init in pod_spec(workload).get("initContainers", []):
                program, subcommand, *flags = init["command"] + init["args"]
                unknown = {flag.split("=")[0] for flag in flags} - help_flags(BIN / program, subcommand)
                self.assertFalse(unknown, "%s %s has no such flags" % (program, subcommand))

    def test_binaries_take_the_values(self):
        with cluster.temporary_directory() as directory:
            for workload in self.all.workloads:
                flags = {**self.all.arguments(workload), "--checkpoint": directory / "none"}
                command = [str(BIN / main_container(workload)["command"][0])]
                command += ["%s=%s" % flag for flag in flags.items()]
                result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                # Everything is fine but the checkpoint.
                self.assertTrue(0 < result.returncode < WRONG_USAGE, result.stdout + result.stderr)
                self.assertIn(str(directory / "none"), result.stderr)

    def test_probes_tell_life_from_readiness(self):
        for workload in self.all.workloads:
            found = probes(main_container(workload))
            self.assertEqual({probe["httpGet"]["port"] for probe in found.values()}, {"admin"})
            self.assertEqual(found["livenessProbe"]["httpGet"]["path"], "/healthz")
            self.assertEqual(found["readinessProbe"]["httpGet"]["path"], "/readyz")
        self.assertEqual(probes(main_container(self.all.table_servers))["startupProbe"]["httpGet"]["path"], "/readyz")
        # Workers wait for the tables as long as it takes.
        self.assertEqual(probes(main_container(self.all.workers))["startupProbe"]["httpGet"]["path"], "/healthz")

    # ---- true of the table's size ----

    def table_sums(self):
        """Bytes of the fullest server when one is lost, and the seconds to load them."""
        stateful_set = self.all.table_servers
        notes = stateful_set["metadata"]["annotations"]
        servers, replicas = stateful_set["spec"]["replicas"], int(self.all.arguments(stateful_set)["--replicas"])
        left = max(servers - 1, replicas)
        most = int(notes["engram/table-bytes"]) * min(1, replicas / left * FULLEST)
        return most, most / int(notes["engram/load-bytes-per-second"])

    def test_memory_is_enough_with_a_server_lost(self):
        most, _ = self.table_sums()
        needed = most + IN_FLIGHT_BYTES + RESERVE_BYTES
        limit = quantity(main_container(self.all.table_servers)["resources"]["limits"]["memory"])
        self.assertGreaterEqual(limit, 1.05 * needed, "%.1f GiB are needed" % (needed / 2**30))

    def test_start_budget_fits_the_load(self):
        _, seconds = self.table_sums()
        budget = seconds_of(main_container(self.all.table_servers)["startupProbe"])
        self.assertGreaterEqual(budget, 3 * seconds)

    def test_grace_periods_fit_the_drain(self):
        _, load_seconds = self.table_sums()
        flags = self.all.arguments(self.all.table_servers)
        hand_over, drain = float(flags["--hand-over-seconds"]), float(flags["--drain-seconds"])
        self.assertGreaterEqual(hand_over, load_seconds)
        self.assertGreaterEqual(pod_spec(self.all.table_servers)["terminationGracePeriodSeconds"],
                                hand_over + drain + END_OF_CALLS_SECONDS + SPARE_SECONDS)
        drain = float(self.all.arguments(self.all.workers)["--drain-seconds"])
        self.assertGreaterEqual(pod_spec(self.all.workers)["terminationGracePeriodSeconds"],
                                drain + END_OF_STEPS_SECONDS + SPARE_SECONDS)

    def test_servers_and_replicas_agree(self):
        stateful_set = self.all.table_servers
        flags = self.all.arguments(stateful_set)
        self.assertGreaterEqual(stateful_set["spec"]["replicas"], int(flags["--replicas"]))
        self.assertEqual(int(flags["--expected-servers"]), stateful_set["spec"]["replicas"])
        budget = self.all.get("PodDisruptionBudget", "engram-table")["spec"]["maxUnavailable"]
        self.assertEqual(budget, 1)

    def test_threads_fit_the_cpus(self):
        for workload in self.all.workloads:
            cpus = quantity(main_container(workload)["resources"]["limits"]["cpu"])
            for flag, value in self.all.arguments(workload).items():
                if flag.endswith("threads"):
                    # What table servers do by themselves: some cores are the network's.
                    wanted = max(1, cpus * 3 // 4) if flag == "--rpc-threads" else cpus
                    self.assertEqual(int(value), wanted, flag)
