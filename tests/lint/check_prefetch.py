#!/usr/bin/env python3
"""Looks whether the loops that copy rows really prefetch: a compiler may drop what has no effect on values.

  check_prefetch.py BINARY_DIR

No other test can tell: without it every row is right, and takes three times as long.
"""
import pathlib
import re
import subprocess
import sys

# Which binary is to prefetch in which functions (whatever their parameters).
WANTED = {
    "engram-table-server": ["engram::HostTier::Copy<false>", "engram::HostTier::Copy<true>", "engram::RowCache::Lookup"],
    "engramctl": ["engram::RowScatter::WriteRows"],
}
PREFETCH = re.compile(r"^\s*[0-9a-f]+:\s+(prefetch|prfm)")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")


def functions_with_prefetch(binary):
    """Names of functions, and whether their code prefetches."""
    found, name = {}, None
    command = ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", binary]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as disassembly:
        for line in disassembly.stdout:
            if match := FUNCTION.match(line):
                name = match[1]
                found.setdefault(name, False)
            elif name and PREFETCH.match(line):
                found[name] = True
    if disassembly.returncode != 0:
        sys.exit("objdump could not read %s" % binary)
    return found


def main():
    binaries = pathlib.Path(sys.argv[1])
    wrong = []
    for binary, wanted in WANTED.items():
        functions = functions_with_prefetch(binaries / binary)
        for name in wanted:
            copies = [prefetches for function, prefetches in functions.items() if name + "(" in function]
            if not copies:
                wrong.append("%s has no function %s: say in check_prefetch.py what copies rows now" % (binary, name))
            elif not any(copies):
                wrong.append("%s of %s does not prefetch: see core/base/prefetch.h" % (name, binary))
    print("\n".join(wrong) or "all loops that copy rows prefetch")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
