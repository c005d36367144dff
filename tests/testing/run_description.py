"""What a result says about the machine and the source it came from."""
import datetime
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def first_line(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip().split("\n")[0]


def describe_machine():
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in cpuinfo.split("\n") if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {"cpu_model": model or platform.processor(), "cores": os.cpu_count(), "memory_bytes": memory,
            "kernel": platform.release(), "transparent_huge_pages": huge.read_text().strip() if huge.exists() else "",
            "load_average_before": os.getloadavg()[0]}


def describe_run(packages=()):
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": first_line("git", "rev-parse", "HEAD"),
            "uncommitted_changes": bool(first_line("git", "status", "--porcelain")),
            "machine": describe_machine(),
            "packages": {package: first_line("dpkg-query", "-W", "-f", "${Version}", package)
                         for package in packages}}
