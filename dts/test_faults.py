# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Loss, doubling and reordering on a real link, through FI_PMF_FAULT: every byte arrives, in order.

PMF_SEED repeats a run; it is printed by a failure.
"""

import os
import random

import pytest

from conftest import PROVIDER

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='a parameter of pmf')

SEED = int(os.environ.get('PMF_SEED', random.randrange(1, 1 << 31)))


def verified(tree, pmf_run, link, sizes, count, timeout):
    """Streams both ways at once with each byte checked, while frames are mistreated both ways."""
    a, b = link.ends
    perf = [tree / 'build/app/pmf-perf', '--', '--provider', 'pmf', '--timeout', '30s']
    fault = {'FI_PMF_FAULT': f'loss=1%,dup=1%,reorder=5%:20,seed={SEED}'}
    server = pmf_run(a, *perf, '--listen', env=fault)
    client = pmf_run(b, *perf, '--peer', a.address, '--verify', '--mode', 'bw', '--direction',
                     'both', '--size', sizes, '--count', count, env=fault)
    assert client.wait(timeout) == 0, f'PMF_SEED={SEED}\n{server}\n{client}'
    assert client.out.count('\nbw ') == len(sizes.split(',')), str(client)


@pytest.mark.parametrize('name', ('vhost', 'af_packet'))
def test_every_byte_through_faults(name, tree, make_link, pmf_run):
    verified(tree, pmf_run, make_link(name), '1,100,1k,8k,64k,1m', 200, 120)


@pytest.mark.long
def test_a_million_messages_through_faults(tree, make_link, pmf_run):
    verified(tree, pmf_run, make_link('vhost'), '1,64,1k,8k', 250000, 3600)
