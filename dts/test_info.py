# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""What fi_info says of the provider, and that a program of another provider never notices it."""

import os
import re

import pytest

from conftest import hugepages_taken
from links import End
from proc import listens, wait_until

LOOP = End('loop', {}, '10.99.0.1')
VARIABLES = ('PORT', 'EAL', 'HUGEPAGES', 'MEMORY_MB', 'LCORES', 'RESCUE_US', 'LINGER_MS', 'DSCP',
             'FAULT', 'CAPTURE', 'MTU', 'PEER_TIMEOUT_MS', 'EAGER_LIMIT', 'UNEXPECTED_MB',
             'ACK_DELAY_US', 'AUTH_KEY_FILE', 'COALESCE', 'ENCRYPT', 'TX_SIZE', 'RX_SIZE', 'INJECT_SIZE')


def fabric_path(tree):
    return {'FI_PROVIDER_PATH': str(tree / 'build/src/fabric')}


def check_info(process):
    """One exact answer: infos as fi_info prints them, and not a byte beside them."""
    assert process.wait(20) == 0, str(process)
    assert process.err == '', str(process)
    # fi_info prints one block an info, whose lines are indented below it.
    blocks = re.findall(r'^fi_info:$', process.out, re.M)
    others = [line for line in process.out.splitlines()
              if line and not line.startswith((' ', 'fi_info:', '---'))]
    assert blocks and not others, str(process)
    assert set(re.findall(r'prov_name: (\S+)', process.out)) == {'pmf'}, str(process)
    assert 'ep_type' not in process.out or 'FI_EP_RDM' in process.out, str(process)
    assert 'FI_MSG' in process.out and '10.99.0.1' in process.out, str(process)


def test_info_without_hugepages(pmf_run):
    check_info(pmf_run(LOOP, 'fi_info', '-p', 'pmf', '-v', env={'FI_PMF_HUGEPAGES': 'off'}))


def test_info_with_hugepages(pmf_run, hugepages):
    check_info(pmf_run(LOOP, 'fi_info', '-p', 'pmf', '-v', env={'FI_PMF_HUGEPAGES': 'on'}))


def test_who_start_together_share_hugepages(pmf_run, tree, hugepages):
    """Six at once where hugepages are there for two: these have them, the others do without."""
    with hugepages_taken(leaving=300):
        begun = [pmf_run(LOOP, tree / 'build/app/pmf-perf', '--', '--self', '--duration', '2s')
                 for _ in range(6)]
        for process in begun:
            assert process.wait(60) == 0, str(process)


def test_info_is_the_same_with_and_without_hugepages(pmf_run):
    """fi_getinfo does not start EAL: what it says comes from the configuration alone."""
    outputs = []
    for huge in ('auto', 'off'):
        process = pmf_run(LOOP, 'fi_info', '-p', 'pmf', '-v', env={'FI_PMF_HUGEPAGES': huge})
        assert process.wait(20) == 0, str(process)
        outputs.append(process.out)
    assert outputs[0] == outputs[1]


def test_nothing_is_offered_without_a_port(runner, tree):
    process = runner.run(['fi_info', '-p', 'pmf'], fabric_path(tree))
    assert process.popen.returncode != 0
    assert re.search(r'^fi_getinfo: -61\b', process.err, re.M), str(process)  # -FI_ENODATA


def test_every_variable_is_listed(runner, tree):
    process = runner.run(['fi_info', '-e'], fabric_path(tree))
    assert process.popen.returncode == 0, str(process)
    for name in VARIABLES:
        assert re.search(rf'^# FI_PMF_{name}: \S+', process.out, re.M), (name, process.out)


@pytest.mark.parametrize('port', ('', 'net_ring0 10.99.0.1/24', 'no such thing'))
def test_another_provider_is_undisturbed(port, runner, tree):
    """Set up well, badly or not at all: with FI_PROVIDER=tcp there is no trace of pmf."""
    tcp = {'FI_PROVIDER': 'tcp'}
    before = runner.run(['fi_info', '-v'], tcp)
    here = {**tcp, **fabric_path(tree), 'FI_PMF_PORT': port}
    after = runner.run(['fi_info', '-v'], here)
    assert (after.popen.returncode, after.out, after.err) == (0, before.out, before.err)


def test_a_tcp_program_is_undisturbed(runner, tree, free_port):
    env = {'FI_PROVIDER': 'tcp', **fabric_path(tree), 'FI_PMF_PORT': 'net_ring0 10.99.0.1/24'}
    words = ['fi_pingpong', '-p', 'tcp', '-e', 'msg', '-S', '1024', '-I', '20000']
    server = runner.start([*words, '-B', free_port], env)
    wait_until(lambda: listens(free_port), 20, 'the server listens')
    client = runner.start([*words, '-P', free_port, '127.0.0.1'], env)
    # While it runs: EAL would show as threads and as maps.
    wait_until(lambda: 'libtcp' in maps(client) or 'libfabric' in maps(client), 20, 'it runs')
    assert threads(client) == ['fi_pingpong']
    assert client.wait(180) == 0 and server.wait(60) == 0, f'{server}\n{client}'
    assert client.err == '' and server.err == '', f'{server}\n{client}'


def maps(process):
    with open(f'/proc/{process.pid}/maps', encoding='utf-8') as file:
        return file.read()


def threads(process):
    top = f'/proc/{process.pid}/task'
    names = []
    for thread in os.listdir(top):
        with open(f'{top}/{thread}/comm', encoding='utf-8') as file:
            names.append(file.read().strip())
    return names
