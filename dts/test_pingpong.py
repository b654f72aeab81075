# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""libfabric's own fi_pingpong, as Debian ships it, over every link: every size, every byte checked."""

import os
import re

import pytest

from conftest import PROVIDER, hugepages_taken
from links import LINKS
from proc import listens, wait_until

# A row of fi_pingpong: bytes, iterations, the same number again where nothing was lost, ...
ROW = re.compile(r'^(\d+(?:\.\d+)?[kmg]?)\s+(\d+)\s+=(\d+)\s', re.M)
LARGEST = '6m'
PROGRAM = ['fi_pingpong', '-p', PROVIDER, '-c']


def pingpong(link, pmf_run, port, options=('-S', 'all'), kind='rdm', timeout=120, **how):
    """Runs both ends; returns (server, client) when both have ended well."""
    a, b = link.ends
    options = ('-e', kind, *options)
    server = pmf_run(a, *PROGRAM, *options, '-B', port, **how)
    wait_until(lambda: listens(port, a.net) or not server.running(), 20, 'the server listens')
    client = pmf_run(b, *PROGRAM, *options, '-P', port, a.control, **how)
    link.started()
    for process in (client, server):
        assert process.wait(timeout) == 0, f'{server}\n{client}'
    return server, client


@pytest.mark.parametrize('name', LINKS)
def test_every_size_and_byte(name, make_link, pmf_run, free_port):
    if name in ('tap', 'bridge') and PROVIDER != 'pmf':
        pytest.skip('both ends are in one namespace, and the addresses are only pmf\'s')
    options = ('-S', 'all') if name != 'tap' else ('-S', 'all', '-I', '2')
    processes = pingpong(make_link(name), pmf_run, free_port, options)
    check_rows(processes)


@pytest.mark.parametrize('name', ('vhost', 'memif', 'af_packet'))
def test_connected_endpoints(name, make_link, pmf_run, free_port):
    """FI_EP_MSG: the server listens, the client connects, both close."""
    check_rows(pingpong(make_link(name), pmf_run, free_port, kind='msg'))


def check_rows(processes):
    """A row for every size, with as many answers as messages, and nothing else printed."""
    for process in processes:
        rows = ROW.findall(process.out)
        assert len(rows) > 40 and rows[-1][0] == LARGEST, str(process)
        assert all(sent == returned for _, sent, returned in rows), str(process)
        assert not re.search(r'EAL|TELEMETRY|VHOST', process.out), str(process)


def test_both_ends_as_nobody(make_link, pmf_run, free_port, run_dir):
    """Without any right: no root, no capability, no hugepages of one's own."""
    if os.geteuid() != 0:
        pytest.skip('becoming another user needs root')
    os.chown(run_dir, 65534, 65534)
    become = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all',
              '--bounding-set=-all', '--no-new-privs']
    pingpong(make_link('vhost'), pmf_run, free_port, prefix=become)


def test_with_hugepages(make_link, pmf_run, free_port, hugepages):
    pingpong(make_link('vhost'), pmf_run, free_port, env={'FI_PMF_HUGEPAGES': 'on'})


def test_with_hugepages_that_are_taken(make_link, pmf_run, free_port, hugepages):
    """Mapped by somebody else and not touched yet they cannot be had, though they count as free."""
    with hugepages_taken():
        pingpong(make_link('vhost'), pmf_run, free_port, ('-S', '64'))


def test_without_hugepages(make_link, pmf_run, free_port):
    pingpong(make_link('vhost'), pmf_run, free_port, env={'FI_PMF_HUGEPAGES': 'off'})


def test_on_one_core(make_link, pmf_run, free_port):
    """Both processes poll; sharing a core they must let each other run."""
    pingpong(make_link('vhost'), pmf_run, free_port, ('-S', '64', '-I', '1000'),
             prefix=['taskset', '-c', '0'])


def test_the_second_run_finds_nothing_of_the_first(make_link, pmf_run, free_port, run_dir):
    link = make_link('vhost')
    for _ in range(2):
        pingpong(link, pmf_run, free_port, ('-S', '64'))
