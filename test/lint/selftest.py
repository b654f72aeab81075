#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Shows that lint.py finds what it is there to find: each rule is broken once in a small tree."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lint  # noqa: E402  (found through the path above)

HEAD = '/* SPDX-License-Identifier: BSD-3-Clause\n * Copyright (c) 2026 The pmf authors */\n'


class Tree(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        for path in ('include/internal/pmf_common.h', 'include/pmf/pmf_stats.h',
                     'src/proto/flow.h', 'src/pmd_glue/port.h', 'src/completion/cq.h',
                     'src/msg/engine.h', 'src/fabric/domain.h'):
            self.write(path, HEAD)

    def write(self, path, text):
        full = os.path.join(self.dir.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8') as file:
            file.write(text)
        return full

    def includes(self, path, *lines):
        self.write(path, HEAD + ''.join(f'#include {line}\n' for line in lines))
        return lint.check_includes(self.dir.name)[1]

    def test_what_the_table_allows_passes(self):
        for path, lines in {
                'src/proto/flow.c': ('"proto/flow.h"', '"pmf_common.h"', '<stdint.h>'),
                'src/proto/peer.c': ('"flow.h"', '<string.h>'),
                'src/pmd_glue/port.c': ('"pmd_glue/port.h"', '<rte_ethdev.h>', '<sys/mman.h>'),
                'src/completion/cq.c': ('"completion/cq.h"', '<rdma/fi_eq.h>', '<rte_ring.h>'),
                'src/msg/engine.c': ('"msg/engine.h"', '"proto/flow.h"', '"pmd_glue/port.h"',
                                     '"completion/cq.h"', '<rdma/fabric.h>'),
                'src/fabric/domain.c': ('"fabric/domain.h"', '"msg/engine.h"', '"pmf/pmf_stats.h"'),
                'app/main.c': ('<rdma/fabric.h>', '<pmf/pmf_stats.h>', '<rte_eal.h>')}.items():
            self.assertEqual(self.includes(path, *lines), [], path)

    def test_what_the_table_forbids_is_found(self):
        for path, line in (
                ('src/proto/a.c', '<rte_mbuf.h>'), ('src/proto/a.c', '<rdma/fabric.h>'),
                ('src/proto/a.c', '<stdlib.h>'), ('src/proto/a.c', '<time.h>'),
                ('src/proto/a.c', '"msg/engine.h"'), ('src/proto/a.c', '"../msg/engine.h"'),
                ('src/pmd_glue/a.c', '<rdma/fabric.h>'), ('src/pmd_glue/a.c', '"proto/flow.h"'),
                ('src/completion/a.c', '<rte_mbuf.h>'), ('src/completion/a.c', '"proto/flow.h"'),
                ('src/msg/a.c', '"fabric/domain.h"'), ('app/a.c', '"msg/engine.h"'),
                ('app/a.c', '"pmf_common.h"'), ('app/wire/a.c', '"pmd_glue/port.h"'), ('include/internal/a.h', '<rte_mbuf.h>'),
                ('include/pmf/a.h', '"pmf_common.h"'), ('src/msg/a.c', '"nowhere.h"')):
            errors = self.includes(path, line)
            self.assertEqual(len(errors), 1, (path, line))
            self.assertTrue(errors[0].startswith(f'{path}:3: '), errors)
            os.unlink(os.path.join(self.dir.name, path))

    def test_a_comment_is_no_include(self):
        self.write('src/proto/a.c', HEAD + '/*\n#include <rte_mbuf.h>\n*/\n// #include <time.h>\n')
        self.assertEqual(lint.check_includes(self.dir.name)[1], [])

    def test_a_file_outside_the_modules_is_found(self):
        self.write('src/stray/a.c', HEAD)
        self.assertEqual(len(lint.check_includes(self.dir.name)[1]), 1)

    def test_a_long_file_is_found(self):
        self.write('src/msg/long.c', 'int x;\n' * 801)
        self.assertIn('801 lines', lint.check_sizes(self.dir.name)[1][0])

    def test_missing_licences_are_found(self):
        self.write('src/msg/bare.c', 'int x;\n')
        self.write('usertools/bare', '#!/bin/sh\n')
        self.write('config/half.env', '# SPDX-License-Identifier: BSD-3-Clause\n')
        errors = lint.check_spdx(self.dir.name)[1]
        self.assertEqual(sorted(e.split(':')[0] for e in errors),
                         ['config/half.env', 'src/msg/bare.c', 'usertools/bare'])

    def archive(self, text):
        source, out = self.write('a.c', text), os.path.join(self.dir.name, 'a')
        subprocess.run(['cc', '-w', '-O0', '-c', source, '-o', out + '.o'], check=True)
        subprocess.run(['ar', 'rcs', out + '.a', out + '.o'], check=True)
        return lint.check_symbols(out + '.a')

    def test_proto_may_copy(self):
        text = '''#include <string.h>
            static int helper(void *a) { return memcmp(a, a, 64); }
            int run(void *a) { memcpy(a, a, 9999); return helper(a); }'''
        self.assertEqual(self.archive(text), (1, []))

    def test_proto_may_not_allocate_or_tell_the_time(self):
        text = 'void *malloc(unsigned long); long time(long *); int x(void) { malloc(time(0)); }'
        errors = self.archive(text)[1]
        self.assertEqual([e.split()[-1] for e in errors], ['malloc', 'time'])


if __name__ == '__main__':
    unittest.main()
