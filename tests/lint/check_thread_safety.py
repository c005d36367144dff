#!/usr/bin/env python3
"""Runs clang's thread-safety analysis over every source file that guards data with a mutex.

  check_thread_safety.py SOURCE_DIR BUILD_DIR
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

DROP_NEXT = {"-o", "-MF", "-MT", "-MQ"}


GUARD = re.compile(r"ABSL_GUARDED_BY|MutexLock")


def guarded_sources(root):
    """The .cc files that lock, and those beside a header that guards data."""
    found = set()
    for top in ("core", "table_server", "engram_client", "compute"):
        for path in (root / top).rglob("*"):
            if path.suffix in (".h", ".cc") and GUARD.search(path.read_text()):
                found.add(path.with_suffix(".cc"))
    return found


def clang_command(entry):
    words, out, skip = shlex.split(entry["command"]), [], False
    compiler = next(i for i, w in enumerate(words) if os.path.basename(w) in ("c++", "g++", "clang++"))
    for word in words[compiler + 1:]:
        if skip or word in DROP_NEXT:
            skip = word in DROP_NEXT and not skip
        elif word.startswith(("-I", "-D", "-std", "-isystem")) or not word.startswith("-"):
            out.append(word)
        elif word == "-isystem":
            out.append(word)
    return ["clang++", "-fsyntax-only", "-w", "-Wthread-safety", "-Werror=thread-safety"] + out


def run(entry):
    result = subprocess.run(clang_command(entry), cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], result.returncode, result.stderr


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    wanted = guarded_sources(root)
    entries = [e for e in json.loads((build / "compile_commands.json").read_text())
               if pathlib.Path(e["file"]) in wanted]
    if not entries:
        sys.exit("no source file with guarded data found: the check would pass without looking")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, text in pool.map(run, entries):
            print("%s %s" % ("ok  " if code == 0 else "FAIL", os.path.relpath(name, root)))
            if code != 0:
                failed += 1
                print(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
