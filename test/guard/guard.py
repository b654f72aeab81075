#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""The instruction guard: what a message costs may not rise unseen.

Counts the instructions of the data path by callgrind, on the loop link, and compares them with
those in counts.json. Instructions do not depend on what else the machine does; what is due by the
clock, which runs fast for a program under valgrind, is left out. A change that makes the path
dearer by more than the tolerance fails. One that is meant, or that makes it cheaper, keeps the new
counts: run with --update and commit.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COUNTS = HERE / "counts.json"
TOLERANCE = 0.04
TRIES = 3
NOT_COUNTED = ("tick", "run_timers", "pmf_cc_round")
SKIPPED = 77  # as meson understands it

# name, what one of it is, mode, bytes of a message, messages, units in one message
CASES = (
    ("ping_8", "8 B message, sent, received and answered in turn", "ping", 8, 2000, 1),
    ("stream_8", "8 B message, 64 under way", "stream", 8, 20000, 1),
    ("segment_1448", "1,448 B of a 64 KB message", "stream", 65160, 200, 45),
    ("idle_read", "fi_cq_read of an idle queue", "idle", 8, 20000, 1),
)


def by_the_clock(profile):
    """Instructions in NOT_COUNTED and what they called, from callgrind's profile."""
    names, cost, due = {}, 0, False
    for line in profile.read_text(errors="replace").splitlines():
        if line.startswith("cfn="):
            number, _, name = line[4:].partition(" ")
            if name:
                names[number] = name
            callee = names[number]
        elif line.startswith("fn="):
            number, _, name = line[3:].partition(" ")
            if name:
                names[number] = name
        elif line.startswith("calls="):
            due = callee.split("'")[0] in NOT_COUNTED
        elif due:
            cost += int(line.split()[1])
            due = False
    return cost


def count(program, mode, size, messages, profile):
    """Instructions of one message."""
    env = dict(os.environ)
    env.update({
        "FI_PROVIDER": "pmf",
        "FI_PMF_PORT": "net_ring0 10.99.0.1/24",
        "FI_PMF_HUGEPAGES": "off",
        # Time runs fast under valgrind: nothing is to become due by it.
        "FI_PMF_ACK_DELAY_US": "100000",
    })
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}",
               "--collect-atstart=no", "--toggle-collect=measured",
               program, mode, str(size), str(messages)]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not found:
        sys.exit(f"{' '.join(command)}: {run.stdout}{run.stderr}")
    return (int(found.group(1)) - by_the_clock(profile)) / messages


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="build directory, of type release")
    parser.add_argument("--compiler", required=True,
                        help="what built it, as 'gcc 12': counts of others are not compared")
    parser.add_argument("--update", action="store_true", help="write what is counted to counts.json")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("guard: valgrind is not installed")
        return SKIPPED
    kept = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    by = options.compiler
    if not options.update and kept.get("compiler") != by:
        print(f"guard: counts.json is of {kept.get('compiler')}, this build of {by}: not compared")
        return SKIPPED
    os.environ["FI_PROVIDER_PATH"] = str(options.build.resolve() / "src" / "fabric")
    program = str(options.build.resolve() / "test" / "guard" / "count")
    counts, bad = {}, 0
    print(f"{'':14} {'now':>8} {'kept':>8}  per")
    for name, what, mode, size, messages, units in CASES:
        before = kept.get("instructions", {}).get(name, 0)
        costs = []
        # On a busy machine more becomes due by the clock meanwhile: the least counts.
        while len(costs) < TRIES and (not costs or min(costs) > before * (1 + TOLERANCE)):
            with tempfile.TemporaryDirectory() as place:
                costs.append(count(program, mode, size, messages, Path(place) / "profile") / units)
        now = counts[name] = round(min(costs), 1)
        dearer = now > before * (1 + TOLERANCE)
        cheaper = now < before * (1 - TOLERANCE)
        bad += dearer
        print(f"{name:14} {now:8.1f} {before:8.1f}  {what}"
              f"{'   DEARER' if dearer else '   cheaper' if cheaper else ''}", flush=True)
    if options.update:
        COUNTS.write_text(json.dumps({"compiler": by, "instructions": counts}, indent=1) + "\n")
        return 0
    if bad:
        print(f"guard: {bad} of {len(CASES)} cost more than {TOLERANCE:.0%} above what is kept. Find out why. "
              f"Meant: test/guard/guard.py --build BUILD --compiler '{by}' --update, and commit counts.json.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
