# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Three processes in a group, over af_packet on a Linux bridge that learns who is a member."""

import os
import pathlib
import re

import pytest

from conftest import PROVIDER, ROOT
from links import Bridge, End, ip, namespaces_allowed
from proc import wait_until

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='its own program')

PEER = pathlib.Path(os.environ.get('PMF_BUILD', ROOT / 'build')).resolve() / 'test/prov/mcast_peer'
GROUPS = {'v4': '239.1.2.3', 'v6': 'ff05::1:3'}
PORT = ('net_af_packet%r,iface=pmf%r,blocksz=16384,framesz=16384,framecnt=512 10.99.1.1%r/24 '
        'fd00:99::1%r/64 mtu=1500')
COUNT = 1000


class Members(Bridge):
    """Three for the group; nobody uses the fourth interface."""

    def make(self):
        super().make()
        return [End('bridge', {'PMF_RUN': self.run_dir, 'PMI_RANK': str(r)}, f'10.99.1.1{r}', self.net)
                for r in range(3)]


@pytest.fixture
def bridge(run_dir):
    if not namespaces_allowed():
        pytest.skip('namespaces and interfaces need root')
    made = Members(run_dir)
    yield made
    made.close()


def snoop(bridge, on):
    """With a querier, since a bridge that hears none floods all the same."""
    words = ['mcast_query_response_interval', '100', 'mcast_snooping', '1', 'mcast_querier', '1',
             'mcast_igmp_version', '3', 'mcast_mld_version', '2'] if on else ['mcast_snooping', '0']
    try:
        ip('-n', bridge.name, 'link', 'set', 'pmfbr', 'type', 'bridge', *words)
    except AssertionError as why:
        if on:
            pytest.skip(f'this kernel does not snoop: {why}')


def members(runner, bridge, group):
    """The bridge's ports behind which it knows a member."""
    text = runner.run([*bridge.net, 'bridge', 'mdb', 'show', 'dev', 'pmfbr']).out
    return set(re.findall(rf'port (pmfbr\d) grp {re.escape(group)}\b', text))


def start(bridge, pmf_run, rank, group, what):
    return pmf_run(bridge.ends[rank], PEER, group, '4000', what, COUNT, env={'FI_PMF_PORT': PORT})


def heard(process):
    assert process.wait(60) == 0, str(process)
    return int(re.search(r'^heard (\d+)$', process.out, re.M).group(1))


@pytest.mark.parametrize('snooping', (False, True))
@pytest.mark.parametrize('family', GROUPS)
def test_all_members_hear(family, snooping, bridge, pmf_run, runner):
    group = GROUPS[family]
    snoop(bridge, snooping)
    hearers = [start(bridge, pmf_run, rank, group, 'hear') for rank in (0, 1)]
    for process in hearers:
        process.wait_for('joined', 30)
    if snooping:
        wait_until(lambda: members(runner, bridge, group) == {'pmfbr0', 'pmfbr1'}, 20,
                   'the bridge knows two members')
    teller = start(bridge, pmf_run, 2, group, 'say')
    teller.wait_for('joined', 30)
    # AF_PACKET may lose frames on a busy machine; what comes is in order, or the program fails.
    for process in (teller, *hearers):
        assert heard(process) > COUNT * 0.8, str(process)
    if snooping:
        wait_until(lambda: not members(runner, bridge, group), 20, 'the bridge knows that all left')
