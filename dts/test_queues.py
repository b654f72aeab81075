# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Ports with two queues, and so two engines, between two processes. With vhost the queue that a frame
is sent on is the one it comes in at: what goes from one engine to the other there is handed over.
"""

import os

import pytest

import telemetry
from conftest import PROVIDER

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='a parameter of pmf')

DEVICES = ('net_vhost0,iface={},client=0,queues=2 10.99.0.1/24 mtu=9000 queues=2',
           'net_virtio_user0,path={},queue_size=1024,queues=2 10.99.0.2/24 mtu=9000 queues=2')


def ports(run_dir):
    return [{'FI_PMF_PORT': device.format(run_dir / 'link.sock')} for device in DEVICES]


@pytest.mark.parametrize('progress', ('manual', 'auto'))
def test_frames_are_handed_over(progress, tree, make_link, pmf_run, run_dir):
    """Endpoints are given to the engines in turn: two of the client, on its two engines, send to one of
    the server and it to them. Every byte is checked."""
    if os.geteuid() != 0:
        pytest.skip('the telemetry socket is looked for where root has it')
    a, b = make_link('vhost').ends
    prefix = f'dts{os.getpid()}'
    env = ports(run_dir)
    perf = [tree / 'build/app/pmf-perf', '--', '--threading', 'safe', '--progress', progress]
    server = pmf_run(a, *perf, '--listen', '--forever',
                     env={**env[0], 'FI_PMF_EAL': f'--file-prefix={prefix}'})
    client = pmf_run(b, *perf, '--endpoints', 2, '--peer', a.address, '--verify', '--mode', 'bw',
                     '--direction', 'both', '--size', '1,1k,64k', '--count', 2000, env=env[1])
    assert client.wait(120) == 0, f'{server}\n{client}'
    assert client.out.count('\nbw ') == 3, str(client)
    answer = telemetry.ask(f'/var/run/dpdk/{prefix}', '/pmf/stats')['/pmf/stats']
    stats = {one['object']: one for one in answer.values()}
    assert stats['engine:0']['flows_opened'] > 0 and stats['engine:1']['flows_opened'] > 0, stats
    assert stats['port']['rx_steered'] > 0, stats


def test_a_device_with_fewer_queues_says_so(tree, make_link, pmf_run, run_dir):
    a, _ = make_link('vhost').ends
    env = {'FI_PMF_PORT': f'net_vhost0,iface={run_dir}/link.sock,client=0,queues=1 10.99.0.1/24 queues=2'}
    server = pmf_run(a, tree / 'build/app/pmf-perf', '--', '--listen',
                     env={**env, 'FI_LOG_LEVEL': 'warn', 'FI_LOG_PROV': 'pmf'})
    assert server.wait(60) == 1, str(server)
    assert 'queues=2, but net_vhost0 has 1' in server.err, str(server)
