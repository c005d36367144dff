"""The admin port of a server: where it is, and what it says."""
import re
import urllib.error
import urllib.request

SECONDS = 30


def address(process):
    """HOST:PORT, from the log of a process with --admin."""
    return re.search(r"admin\S* .*?(127\.0\.0\.1:\d+)", process.log()).group(1)


def get(address, path):
    try:
        with urllib.request.urlopen("http://%s%s" % (address, path), timeout=SECONDS) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metric(text, name, **labels):
    """The sum over the samples of this name that have these labels."""
    total, found = 0.0, False
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if not match or match.group(1) != name:
            continue
        have = dict(re.findall(r'(\w+)="([^"]*)"', match.group(2) or ""))
        if all(have.get(key) == value for key, value in labels.items()):
            total, found = total + float(match.group(3)), True
    assert found, "no metric %s %s" % (name, labels)
    return total
