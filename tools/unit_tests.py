#!/usr/bin/env python3
"""The unit tests that a build folder declares (tests/unit/meson.build), for the shell: a line `NAME <tab> COMMAND` each, those of
the suite `slow` first. Exit status 1 where there is none.

    unit_tests.py FOLDER [--suite NAME] [--without NAME]... [--share K/N] [-- WRAPPER...]

--suite: only the tests of this suite; --without: not those of that one; --share: of those of the suite `long` this share of
their work (tests/unit/shard.h); WRAPPER: what the programs are run with."""

import argparse
import json
import shlex
import sys
from pathlib import Path


def parse(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--share")
    before = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:before]), words[before + 1 :]


def main():
    options, wrapper = parse(sys.argv[1:])
    lines, slow = [], []
    for test in json.loads((options.folder / "meson-info" / "intro-tests.json").read_text(encoding="utf-8")):
        suites = {suite.partition(":")[2] for suite in test["suite"]}
        if (options.suite and options.suite not in suites) or suites & set(options.without):
            continue
        settings = [f"{name}={value}" for name, value in test["env"].items()]
        if options.share and "long" in suites:
            settings.append(f"HOLOGRAM_TEST_SHARE={options.share}")
        command = shlex.join(["env", *settings, *wrapper, *test["cmd"]])
        (slow if "slow" in suites else lines).append(f"{test['name']}\t{command}")
    print("\n".join(slow + lines))
    return 0 if slow or lines else 1


sys.exit(main())
