# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""What a running process shows of itself: ping, telemetry, a capture, the line at the end."""

import json
import os
import re
import shutil
import socket

import pytest

import pcapng
import telemetry
from conftest import PROVIDER
from links import ip
from proc import wait_until

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='only pmf shows these')


@pytest.fixture
def perf(tree, pmf_run):
    """Starts pmf-perf at an end of a link."""
    def start(end, *options, env=None, words=()):
        return pmf_run(end, tree / 'build/app/pmf-perf', *words, '--', '--provider', 'pmf',
                       *options, env=env)
    return start


def test_ping_is_answered(make_link, perf, runner):
    """By a process that waits for clients: the kernel at the other end of the veth asks."""
    if not shutil.which('ping'):
        pytest.skip('ping is not installed')
    a, b = make_link('af_packet').ends
    ip('-n', b.namespace, 'addr', 'add', '10.99.1.99/24', 'dev', 'pmf0')
    server = perf(a, '--listen')
    ask = [*b.net, 'ping', '-c', '1', '-W', '1']
    wait_until(lambda: runner.run([*ask, a.address]).popen.returncode == 0 or
               not server.running(), 20, 'an answer')
    for size in ('0', '56', '1472'):
        answer = runner.run([*ask, '-s', size, a.address])
        assert answer.popen.returncode == 0, f'{answer}\n{server}'
    assert server.running(), str(server)


def test_telemetry_shows_the_counters(make_link, perf):
    """All that DPDK's own script lists below /pmf/ answers, and the figures are those of the run."""
    if os.geteuid() != 0:
        pytest.skip('the socket is looked for where root has it')
    a, b = make_link('vhost').ends
    prefix = f'dts{os.getpid()}'
    directory = f'/var/run/dpdk/{prefix}'
    server = perf(a, '--listen', '--forever', env={'FI_PMF_EAL': f'--file-prefix={prefix}'})
    client = perf(b, '--peer', a.address, '--mode', 'rate', '--size', '64', '--count', '10000')
    assert client.wait(60) == 0, f'{server}\n{client}'
    listed = [name for name in telemetry.ask(directory, '/')['/'] if name.startswith('/pmf/')]
    assert listed, str(server)
    answers = {name: telemetry.ask(directory, name)[name] for name in listed}
    figures = [int(n) for n in re.findall(r': (\d+)', json.dumps(answers))]
    assert any(n >= 10000 for n in figures), answers


def test_capture_holds_both_directions(make_link, perf, tmp_path):
    """Whole blocks only, and in them UDP between the two addresses, both ways."""
    a, b = make_link('vhost').ends
    path = tmp_path / 'frames.pcapng'
    server = perf(a, '--listen')
    client = perf(b, '--peer', a.address, '--mode', 'lat', '--size', '8,4k', '--count', '100',
                  env={'FI_PMF_CAPTURE': str(path)})
    assert client.wait(60) == 0, f'{server}\n{client}'
    pairs = set()
    for frame in pcapng.frames(path):
        if frame[12:14] == b'\x08\x00' and frame[23] == socket.IPPROTO_UDP:
            pairs.add((socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34])))
    assert pairs == {(a.address, b.address), (b.address, a.address)}


def test_a_closed_endpoint_says_what_it_did(make_link, perf):
    a, b = make_link('vhost').ends
    server = perf(a, '--listen')
    client = perf(b, '--peer', a.address, '--mode', 'lat', '--size', '8', '--count', '1000',
                  env={'FI_LOG_LEVEL': 'info', 'FI_LOG_PROV': 'pmf'})
    assert client.wait(60) == 0 and server.wait(30) == 0, f'{server}\n{client}'
    lines = [line for line in client.err.splitlines() if 'retransmi' in line]
    assert len(lines) >= 1 and re.search(r'\d', lines[0]), str(client)
    assert 'EAL' not in client.out, str(client)
