#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Prints what ninja has to make of a configured build directory for the tests of some suites.

    targets.py BUILD SUITE...
"""

import json
import os
import sys


def targets(build, suites):
    """Files that the tests of `suites` run or load, as ninja names them, each once."""
    def info(kind):
        with open(os.path.join(build, 'meson-info', f'intro-{kind}.json'), encoding='utf-8') as file:
            return json.load(file)

    files = {target['id']: target['filename'] for target in info('targets')}
    needed = {name for test in info('tests') if {s.split(':')[-1] for s in test['suite']} & set(suites)
              for name in test['depends']}
    return sorted(os.path.relpath(path, os.path.abspath(build)) for name in needed for path in files[name])


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    found = targets(sys.argv[1], sys.argv[2:])
    if not found:
        sys.exit(f'no test of {", ".join(sys.argv[2:])} needs anything built')
    print('\n'.join(found))
