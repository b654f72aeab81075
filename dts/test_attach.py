# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Senders' bytes that the driver reads where they lie, on each driver that does: every byte arrives,
through loss too, though the buffers are filled anew as soon as a send has completed.

PMF_SEED repeats a run; it is printed by a failure.
"""

import json
import os
import random
import re

import pytest

import telemetry
from conftest import PROVIDER

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='drivers that pmf knows')

SEED = int(os.environ.get('PMF_SEED', random.randrange(1, 1 << 31)))


# The end whose driver it is comes first.
@pytest.mark.parametrize('faults', ('', f'loss=1%,dup=1%,reorder=5%:20,seed={SEED}'),
                         ids=('clean', 'faults'))
@pytest.mark.parametrize('name', ('vhost', 'af_packet_9000'))
def test_every_attached_byte_arrives(name, faults, tree, make_link, pmf_run):
    if os.geteuid() != 0:
        pytest.skip('the telemetry socket is looked for where root has it')
    a, b = make_link(name).ends
    prefix = f'dts{os.getpid()}a'
    perf = [tree / 'build/app/pmf-perf', '--', '--provider', 'pmf', '--timeout', '120s']
    fault = {'FI_PMF_FAULT': faults} if faults else {}
    server = pmf_run(a, *perf, '--listen', '--forever',
                     env={**fault, 'FI_PMF_EAL': f'--file-prefix={prefix}'})
    client = pmf_run(b, *perf, '--peer', a.address, '--verify', '--mode', 'bw', '--direction', 'both',
                     '--walk', '0', '--window', '8', '--size', '8k,20000,64k,1m', '--count', 60,
                     env=fault)
    assert client.wait(300) == 0, f'PMF_SEED={SEED}\n{server}\n{client}'
    directory = f'/var/run/dpdk/{prefix}'
    text = json.dumps([telemetry.ask(directory, name) for name in telemetry.ask(directory, '/')['/']
                       if name.startswith('/pmf/')])
    counted = {word: [int(n) for n in re.findall(rf'"{word}": (\d+)', text)]
               for word in ('tx_attached', 'rx_bad_cksum')}
    # of each 1 MiB more than a hundred frames of which most are full
    assert max(counted['tx_attached']) > 60 * 64, f'{counted}\n{server}'
    assert max(counted['rx_bad_cksum']) == 0, str(counted)
