"""Rendered manifests of k8s/, and what is in them."""
import pathlib
import re
import subprocess

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
K8S = SOURCE / "k8s"
TOOLS = SOURCE / "build" / "tools" / "bin"
OVERLAYS = sorted(path.name for path in (K8S / "overlays").iterdir() if path.is_dir())

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def tool(name):
    path = TOOLS / name
    if not path.exists():
        raise AssertionError("%s is missing; deploy/install-deps makes it" % path)
    return str(path)


def render(directory):
    """The objects of a kustomization, as YAML."""
    result = subprocess.run([tool("kubectl"), "kustomize", str(directory)], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=60)
    if result.returncode != 0 or result.stderr:  # kustomize warns of what it will drop
        raise AssertionError("kubectl kustomize %s: exit %d\n%s" % (directory, result.returncode, result.stderr))
    return result.stdout


def validate(path, kubernetes_version):
    """The finished kubernetes-validate; 0: nothing is wrong."""
    return subprocess.run([tool("kubernetes-validate"), "--strict", "--quiet", "-k", kubernetes_version, str(path)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def quantity(text):
    """Of memory in bytes, of CPU in cores."""
    text = str(text)
    if text.endswith("m"):
        return float(text[:-1]) / 1000
    number, unit = re.fullmatch(r"([\d.]+)(\w*)", text).groups()
    return float(number) * UNITS[unit]


class Manifests:
    """The objects of one rendered overlay."""

    def __init__(self, text):
        self.objects = [one for one in yaml.safe_load_all(text) if one]

    def of_kind(self, *kinds):
        return [one for one in self.objects if one["kind"] in kinds]

    def get(self, kind, name):
        found = [one for one in self.of_kind(kind) if one["metadata"]["name"] == name]
        assert len(found) == 1, "%d objects are %s %s" % (len(found), kind, name)
        return found[0]

    @property
    def workloads(self):
        return self.of_kind("StatefulSet", "Deployment")

    @property
    def table_servers(self):
        return self.get("StatefulSet", "engram-table")

    @property
    def workers(self):
        return self.get("Deployment", "engram-worker")

    @property
    def namespace(self):
        name, = {one["metadata"]["name"] for one in self.of_kind("Namespace")}
        return name

    def environment(self, workload):
        """What the main container's environment holds in the pod of number 0."""
        container = main_container(workload)
        values = {}
        for source in container.get("envFrom", []):
            values.update(self.get("ConfigMap", source["configMapRef"]["name"])["data"])
        fields = {"metadata.name": workload["metadata"]["name"] + "-0", "metadata.namespace": self.namespace}
        for variable in container.get("env", []):
            values[variable["name"]] = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        return values

    def arguments(self, workload):
        """--flag -> value, with the environment put in."""
        environment = self.environment(workload)
        flags = {}
        for argument in main_container(workload)["args"]:
            flag, value = re.fullmatch(r"(--[a-z-]+)=(.+)", argument).groups()
            assert flag not in flags, "%s stands twice" % flag
            flags[flag] = re.sub(r"\$\((\w+)\)", lambda match: environment[match.group(1)], value)
        return flags


def pod_spec(workload):
    return workload["spec"]["template"]["spec"]


def pod_labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def main_container(workload):
    container, = pod_spec(workload)["containers"]
    return container


def all_containers(workload):
    return pod_spec(workload)["containers"] + pod_spec(workload).get("initContainers", [])


def probes(container):
    return {kind: container[kind] for kind in ("startupProbe", "readinessProbe", "livenessProbe")}


def seconds_of(probe):
    """How long it may fail before something follows from it."""
    return probe["periodSeconds"] * probe["failureThreshold"]


def selects(selector, labels):
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())
