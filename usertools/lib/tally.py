#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Counts the test cases of one run: prints "PASSED FAILED SKIPPED", and on stderr which failed and why.

A meson test is a program; where it counts cases itself (CUnit, unittest, TAP), those are counted.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

# CUnit's run summary:  tests   Total  Ran  Passed  Failed  Inactive
CUNIT = re.compile(r'^\s+tests\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+|n/a)', re.M)
TAP = re.compile(r'^(ok|not ok)\b(.*)$', re.M)
UNITTEST = re.compile(r'^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(?: \((.*)\))?', re.M)

# Of what a failed test printed, the lines by which to begin: the case and the assertion of a framework, what a
# sanitizer found, the seed to run it again.
TELLING = re.compile(r'FAILED|not ok|^ +\d+\. |^E  |(?i:seed)|[Aa]ssert.*fail|ERROR: |SUMMARY: |runtime error: ')


def explain(name, output):
    """Says on stderr that test `name` failed, with the telling lines of `output`."""
    lines = [line.strip()[:160] for line in output.splitlines() if TELLING.search(line)]
    print(name, *lines[-12:], sep='\n    ', file=sys.stderr)


def inner_cases(output):
    """(passed, failed, skipped) as the program itself counted, or None."""
    found = CUNIT.search(output)
    if found:
        return int(found.group(3)), int(found.group(4)), 0
    found = UNITTEST.search(output)
    if found:
        words = dict(re.findall(r'(\w+)=(\d+)', found.group(2) or ''))
        failed = int(words.get('failures', 0)) + int(words.get('errors', 0))
        skipped = int(words.get('skipped', 0))
        return int(found.group(1)) - failed - skipped, failed, skipped
    cases = TAP.findall(output)
    if cases:
        failed = sum(1 for word, _ in cases if word == 'not ok')
        skipped = sum(1 for word, rest in cases if word == 'ok' and '# SKIP' in rest.upper())
        return len(cases) - failed - skipped, failed, skipped
    return None


def meson(path):
    """Sums a testlog.json, one JSON object a line."""
    passed = failed = skipped = 0
    with open(path, encoding='utf-8') as file:
        for line in file:
            test = json.loads(line)
            good = test['result'] in ('OK', 'EXPECTEDFAIL')
            if test['result'] == 'SKIP':
                skipped += 1
                continue
            output = test.get('stdout', '') + test.get('stderr', '')
            inner = inner_cases(output)
            p, f, s = inner or (int(good), 0, 0)
            # A crash or a time-out after the last case is a failure that no case shows.
            if not good and f == 0:
                f = 1
            if f:
                explain(f'{test["name"]}: {test["result"]}', output)
            passed, failed, skipped = passed + p, failed + f, skipped + s
    return passed, failed, skipped


def pytest(path):
    """Sums a JUnit file as pytest writes it."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).iter('testcase'):
        kinds = {child.tag: child.text or '' for child in case}
        if 'failure' in kinds or 'error' in kinds:
            explain(f'{case.get("classname")}.{case.get("name")}', ''.join(kinds.values()))
            failed += 1
        elif 'skipped' in kinds:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


if __name__ == '__main__':
    if len(sys.argv) != 3 or sys.argv[1] not in ('meson', 'pytest'):
        sys.exit('usage: tally.py meson|pytest FILE')
    print(*globals()[sys.argv[1]](sys.argv[2]))
