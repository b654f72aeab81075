# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""One process is killed in the middle: the other stays well, and the link serves the next one."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import PROVIDER, ROOT
from proc import listens, wait_until

# memif's driver can crash the survivor of a kill (it unmaps memory under a running burst), so that
# link is not held to this.
KILL_LINKS = ('vhost', 'af_packet', 'af_xdp')
# A peer counts as dead sooner than by default, or the tests would mostly wait for that.
SOON = {'FI_PMF_PEER_TIMEOUT_MS': '5000'}
PEER = pathlib.Path(os.environ.get('PMF_BUILD', ROOT / 'build')).resolve() / 'test/prov/mortal_peer'
PROGRAM = ['stdbuf', '-oL', 'fi_pingpong', '-p', PROVIDER, '-e', 'rdm', '-c', '-I', '2000']


def start(link, pmf_run, port):
    a, b = link.ends
    server = pmf_run(a, *PROGRAM, '-B', port, env=SOON)
    wait_until(lambda: listens(port, a.net) or not server.running(), 20, 'the server listens')
    return server, pmf_run(b, *PROGRAM, '-P', port, a.control, env=SOON)


@pytest.mark.parametrize('victim', ('server', 'client'))
@pytest.mark.parametrize('name', KILL_LINKS)
def test_kill_in_the_middle(name, victim, make_link, pmf_run, free_port):
    link = make_link(name)
    pair = dict(zip(('server', 'client'), start(link, pmf_run, free_port)))
    # A row on both sides: messages flow, and most sizes are still to come.
    for process in pair.values():
        process.wait_for('\n256 ', 60)
    pair[victim].signal(signal.SIGKILL)
    pair[victim].wait(10)
    survivor = pair['client' if victim == 'server' else 'server']
    # fi_pingpong sends and then waits; the sends end in errors, or it is asked to go.
    try:
        code = survivor.popen.wait(5)
    except subprocess.TimeoutExpired:
        survivor.signal(signal.SIGTERM)
        code = survivor.wait(10)
    # An exit code of its own choice, or our signal; any other signal is a crash.
    assert code > 0 or code == -signal.SIGTERM, f'it crashed: {survivor}'
    # The same link, two new processes: nothing of the dead ones is in their way.
    for process in start(link, pmf_run, free_port):
        process.wait_for('\n256 ', 60)


def served(pmf_run, end, client):
    """One whole run of a client; None when the server is still busy with another."""
    after = pmf_run(end, *client, '--mode', 'lat,bw', '--size', '8,64k', '--count', '1000')
    if after.wait(60) and 'busy' in after.err:
        return None
    assert after.popen.returncode == 0, str(after)
    return after


@pytest.mark.parametrize('name', KILL_LINKS)
def test_a_server_serves_the_next_after_a_kill(name, tree, make_link, pmf_run):
    """The server process stays: its port, its peers' table and its link see a client die."""
    if PROVIDER != 'pmf':
        pytest.skip('pmf-perf and tcp need other addresses')
    link = make_link(name)
    a, b = link.ends
    perf = [tree / 'build/app/pmf-perf', '--', '--provider', 'pmf', '--timeout', '5s']
    client = [*perf, '--peer', a.address, '--verify']
    server = pmf_run(a, *perf, '--listen', '--forever', env=SOON)
    for _ in range(2):
        victim = pmf_run(b, *client, '--mode', 'bw', '--size', '4k,64k', '--duration', '1s')
        victim.wait_for('\nbw', 30)  # the first size is done, the second under way
        victim.signal(signal.SIGKILL)
        victim.wait(10)
        # The server takes the dead client for busy until its time-out; then it serves again.
        after = wait_until(lambda: served(pmf_run, b, client), 30, f'served again by {server}')
        assert len(re.findall(r'^(?:lat|bw) +\d+ +', after.out, re.M)) == 4, str(after)
        assert server.running(), str(server)


@pytest.mark.skipif(PROVIDER != 'pmf', reason='its own program')
@pytest.mark.parametrize('kind', ('rdm', 'msg'))
def test_killed_within_a_message(kind, make_link, pmf_run):
    """The program says of itself what its peer's death has to look like: entries, events, time."""
    a, b = make_link('vhost').ends
    env = {'FI_PMF_PEER_TIMEOUT_MS': '1500'}
    survivor = pmf_run(a, PEER, kind, 'survivor', a.address, env=env)
    survivor.wait_for('ready', 30)
    pmf_run(b, PEER, kind, 'victim', a.address, env=env)
    assert survivor.wait(30) == 0 and 'told' in survivor.out, str(survivor)
