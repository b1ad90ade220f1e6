#!/usr/bin/env python3
"""clang-tidy over the C files of builds, several at a time, but those that it found clean before: build/tidy-cache knows
them by clang-tidy's version, its settings, their compile commands, and the content of the file and of all it includes.

    tidy.py BUILD... CACHE [--changed] [--deep] [--jobs N]

BUILD is a folder that ninja has brought up to date: it knows what each file includes. A file is taken as the first of them compiles it.
--changed: only files that differ from the last
commit in common with the upstream branch or main (on that branch itself: from the commit before the last), or that git does not know
yet. --deep: the analyser follows its own default of paths through a
function, twelve times as many, which takes six times as long. (Of 52 variables whose first value was taken away a run finds 25; four
times as many paths find the same ones.) A line a finding; exit status 1 if there are any."""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = re.compile(r".*/(files|os)_windows\.c|src/cli/.*windows.*|tools/fit/.*")  # what this machine does not compile
QUICK = [word for option in ("-analyzer-config", "max-nodes=18000") for word in ("--extra-arg=-Xclang", "--extra-arg=" + option)]
ONLY_GCC = re.compile(r" (-fvect-cost-model=[a-z-]*|-falign-[a-z]*=1)")  # clang takes them for an error


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def files_to_check():
    names = (str(path.relative_to(ROOT)) for folder in ("src", "tools", "python/src") for path in ROOT.glob(f"{folder}/**/*.c"))
    return sorted(name for name in names if not LEFT_OUT.fullmatch(name))


def changed_files():
    """What differs from where this branch left the upstream one or main, committed or not; on that branch itself from before the
    last commit."""
    base = "HEAD~1"
    for upstream in ("@{upstream}", "origin/HEAD", "origin/main", "main"):
        found = subprocess.run(["git", "merge-base", "HEAD", upstream], cwd=ROOT, capture_output=True, text=True)
        if found.returncode == 0:
            base = found.stdout.strip()
            break
    if base == output_of("git", "rev-parse", "HEAD").strip():
        base = "HEAD~1"
    if subprocess.run(["git", "rev-parse", "--verify", "--quiet", base], cwd=ROOT, capture_output=True).returncode != 0:
        base = "HEAD"  # the first commit, or all that there is of the history
    names = output_of("git", "diff", "--name-only", "--diff-filter=d", base) + \
        output_of("git", "ls-files", "--others", "--exclude-standard")
    return set(names.split("\n"))


def compile_commands(builds):
    """Each file's compile commands, as clang can read them: {file: {object: command}}. What the library and the programs of the
    build compile both is the same to clang-tidy: once is enough."""
    found = {}
    for build in builds:
        own = {}
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            name = os.path.relpath(Path(entry["directory"]) / entry["file"], ROOT)
            own.setdefault(name, {})[build / entry["output"]] = {**entry, "command": ONLY_GCC.sub("", entry["command"])}
        found = {**own, **found}
    for name, entries in found.items():
        once = {target: entry for target, entry in entries.items() if not entry["output"].startswith(("embed.p/", "formulas.p/"))}
        found[name] = once or entries
    return found


def includes(build):
    """What ninja knows of each object's includes: {object: paths}. What is out of date is left out."""
    found, target = {}, None
    for line in output_of("ninja", "-C", str(build), "-t", "deps").split("\n"):
        if line.startswith("    "):
            if target is not None:
                found[target].append(os.path.normpath(build / line.strip()))
        else:
            name, _, rest = line.partition(": #deps")
            target = build / name if "(VALID)" in rest else None
            if target is not None:
                found[target] = []
    return found


class Digests:
    """What a file's findings depend on, as one number; a file that ninja does not know has none and is always checked."""

    def __init__(self, builds, commands, arguments):
        self.commands, self.contents = commands, {}
        self.includes = {target: paths for build in builds for target, paths in includes(build).items()}
        self.common = output_of("clang-tidy", "--version") + (ROOT / ".clang-tidy").read_text(encoding="utf-8") + \
            " ".join(arguments)

    def content(self, path):
        if path not in self.contents:
            self.contents[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return self.contents[path]

    def of(self, name):
        commands = self.commands.get(name)
        if not commands or any(target not in self.includes for target in commands):
            return None
        digest = hashlib.sha256(self.common.encode())
        for target, entry in sorted(commands.items()):
            digest.update(entry["command"].encode())
            for path in self.includes[target]:
                digest.update(f"{path}\n{self.content(path)}\n".encode())
        return digest.hexdigest()


def check(name, folder, arguments):
    """The findings of one file, without the notes, which fill pages."""
    run = subprocess.run(["clang-tidy", "--quiet", "-p", str(folder), *arguments, name], cwd=ROOT, capture_output=True, text=True)
    lines = [line for line in run.stdout.split("\n") if re.search(r"(error|warning):", line)]
    if run.returncode != 0 and not lines:
        lines = [f"{name}: clang-tidy ended with {run.returncode}: {run.stderr[-600:]}"]
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("builds", nargs="+", type=lambda name: Path(name).resolve())
    parser.add_argument("cache", type=lambda name: Path(name).resolve())
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    commands = compile_commands(options.builds)
    arguments = [] if options.deep else QUICK
    digests = Digests(options.builds, commands, arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    (options.cache / "compile_commands.json").write_text(
        json.dumps([entry for entries in commands.values() for entry in entries.values()]), encoding="utf-8")
    names = files_to_check()
    if options.changed:
        names = sorted(changed_files() & set(names))
    known = {name: digests.of(name) for name in names}
    todo = [name for name in names if known[name] is None or not (options.cache / known[name]).exists()]
    todo.sort(key=lambda name: (len(commands.get(name, "")), (ROOT / name).stat().st_size), reverse=True)  # the longest first
    findings = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, lines in zip(todo, pool.map(lambda name: check(name, options.cache, arguments), todo)):
            findings += lines
            if not lines and known[name] is not None:
                (options.cache / known[name]).touch()
    print(*dict.fromkeys(findings), sep="\n", end="\n" if findings else "")
    print(f"clang-tidy: {len(names)} files, {len(todo)} of them not known to be clean, {len(findings)} findings")
    return 1 if findings else 0


sys.exit(main())
