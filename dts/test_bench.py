# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""usertools/bench from start to end in its smallest form. What it measures is not judged here: only
that everything was measured, that the record has its shape, and that nothing is left behind."""

import json
import os
import pathlib
import signal

import pytest

from conftest import ROOT
from links import namespaces_allowed

BUILD = pathlib.Path(os.environ.get('PMF_BUILD', ROOT / 'build')).resolve()
BENCH = ROOT / 'usertools/bench'
SMALL = ['--quick', '--runs', '1', '--sizes', '8', '--against', 'shm', '--patience', '10',
         '--endpoints', '1,3', '--build', BUILD]


@pytest.fixture(autouse=True)
def programs():
    if not (BUILD / 'app/pmf-raw').exists():
        pytest.skip('pmf-raw is not built')


def namespaces(pid):
    """Those that the process of this number made, by the name that links.py gives them."""
    path = pathlib.Path('/run/netns')
    return [p.name for p in path.iterdir() if p.name.startswith(f'pmf{pid}n')] if path.exists() else []


def entries(record, **wanted):
    return [e for e in record['summary'] if wanted.items() <= e.items()]


def test_the_smallest_run(runner, tmp_path):
    file = tmp_path / 'bench.json'
    run = runner.run([BENCH, *SMALL, '--json', file], timeout=300)
    assert run.popen.returncode == 0, str(run)
    record = json.loads(file.read_text())
    assert record['failures'] == [] and not record['interrupted'], str(run)
    for who, program, kind, size, figure in (
            ('raw', 'pmf-raw', 'ping', 64, 'p99.9'), ('raw', 'pmf-raw', 'flood', 9014, 'bytes_per_s'),
            ('raw', 'dpdk-testpmd', 'flood', 64, 'messages_per_s'),
            ('pmf', 'pmf-perf', 'lat', 8, 'p50'), ('pmf', 'pmf-perf', 'bw', 8, 'bytes_per_s'),
            ('pmf', 'pmf-perf', 'reused', 8, 'messages_per_s'),
            ('pmf', 'pmf-perf', 'both', 8, 'bytes_per_s'),
            ('pmf', 'pmf-perf', 'more', 8, 'messages_per_s'),
            ('pmf', 'fi_pingpong', 'lat', 8, 'mean'), ('pmf', 'pmf-perf', 'one_core', 8, 'p50'),
            ('shm', 'pmf-perf', 'lat', 8, 'p50'), ('shm', 'fi_pingpong', 'lat', 8, 'mean')):
        found = entries(record, link='vhost', who=who, program=program, kind=kind, bytes=size,
                        figure=figure)
        assert len(found) == 1 and found[0]['runs'] == 1 and found[0]['median'] > 0, (who, kind, run)
    for kind in ('fan_out', 'fan_in'):
        for n in (1, 3):
            for size in (8, 1000):
                found = entries(record, link='vhost', who='pmf', kind=kind, bytes=size, n=n,
                                figure='ns_per_message')
                assert len(found) == 1 and found[0]['median'] > 0, (kind, n, size, run)
    for progress in ('manual', 'auto'):
        found = entries(record, link='loop', who='pmf', kind=progress, bytes=8, figure='p50')
        assert len(found) == 1 and found[0]['median'] > 0, (progress, run)
    assert len(entries(record, kind='single', bytes=8, figure='messages_per_s')) == 1, run
    for n in (1, 2):
        assert entries(record, link='loop', kind='engines', n=n, figure='messages_per_s'), (n, run)
    for figure in ('ms', 'mb'):
        assert entries(record, link='loop', kind='domain', figure=figure)[0]['median'] > 0, run
    ratio = entries(record, who='pmf', program='pmf-perf', kind='lat', figure='p50')[0]['to_raw']
    raw = entries(record, who='raw', kind='ping', bytes=64, figure='p50')[0]['median']
    mine = entries(record, who='pmf', program='pmf-perf', kind='lat', figure='p50')[0]['median']
    assert ratio['median'] == pytest.approx(mine / raw)
    assert record['trust']['raw_to_testpmd']['vhost']['median'] > 0
    assert isinstance(record['trust']['trusted'], bool)
    assert {'cpu', 'kernel', 'dpdk', 'cores', 'governor'} <= record['machine'].keys()
    judged = [t for t in record['targets'] if t['reached'] is not None]
    assert len(judged) == 10, judged  # those of 8 bytes over vhost, and of the loop link
    # The documentation's tables come from the record.
    text = runner.run([BENCH, '--markdown', file]).out
    assert '### vhost: half round trip, us, p50' in text and '| 8 B |' in text, text
    for name in ('latency', 'bandwidth'):
        assert (tmp_path / f'bench-vhost-{name}.png').read_bytes().startswith(b'\x89PNG')


def test_stopped_it_leaves_nothing(runner, tmp_path):
    """Stopped over veth, where there is most to undo, it still says what it has."""
    if not namespaces_allowed():
        pytest.skip('namespaces and interfaces need root')
    file = tmp_path / 'bench.json'
    run = runner.start([BENCH, *SMALL, '--links', 'af_packet', '--json', file])
    run.wait_for('ping 64 B', 120)
    assert namespaces(run.pid), str(run)
    run.signal(signal.SIGINT)
    assert run.wait(60) == 1, str(run)
    assert not namespaces(run.pid), str(run)
    record = json.loads(file.read_text())
    assert record['interrupted'] and record['samples'], str(run)
