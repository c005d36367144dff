#!/usr/bin/env python3
"""Looks whether the loops that copy rows really prefetch: a compiler may drop what has no effect on values.

  check_prefetch.py BINARY_DIR

No other test can tell: without it every row is right, and takes twice as long.
"""
import pathlib
import re
import subprocess
import sys

# Of each binary: functions, whatever their parameters, and how many prefetches the code of them together has at least.
# RowCache prefetches buckets and slots; StartProbe may be part of Lookup or a function of its own.
WANTED = {
    "engram-table-server": [(["engram::HostTier::Copy<false>"], 2), (["engram::HostTier::Copy<true>"], 2),
                            (["engram::RowCache::Lookup", "StartProbe"], 2)],
    "engramctl": [(["engram::RowScatter::WriteRows"], 1)],
}
PREFETCH = re.compile(r"^\s*[0-9a-f]+:\s+(prefetch|prfm)")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")


def prefetches_by_function(binary):
    found, name = {}, None
    command = ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", binary]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as disassembly:
        for line in disassembly.stdout:
            if match := FUNCTION.match(line):
                name = match[1]
                found.setdefault(name, 0)
            elif name and PREFETCH.match(line):
                found[name] += 1
    if disassembly.returncode != 0:
        sys.exit("objdump could not read %s" % binary)
    return found


def main():
    wrong = []
    for binary, wanted in WANTED.items():
        counts = prefetches_by_function(pathlib.Path(sys.argv[1]) / binary)
        for names, least in wanted:
            ours = [count for function, count in counts.items() if any(name + "(" in function for name in names)]
            if not ours:
                wrong.append("%s has no function %s: say in check_prefetch.py what copies rows now" % (binary, names[0]))
            elif sum(ours) < least:
                wrong.append("%s of %s has %d prefetches, %d are in its source: see core/base/prefetch.h" % (
                    " and ".join(names), binary, sum(ours), least))
    print("\n".join(wrong) or "all loops that copy rows prefetch")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
