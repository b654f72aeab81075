# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""pmf-wire between two links of real processes: what it does to frames costs time, and nothing else.

PMF_SEED repeats a run; it is printed by a failure.
"""

import json
import os
import random
import signal

import pytest

import telemetry
from conftest import PROVIDER
from links import End
from proc import listens, wait_until
from test_pingpong import check_rows

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='the counters and the links are pmf\'s')

SEED = int(os.environ.get('PMF_SEED', random.randrange(1, 1 << 31)))

# The wire is the server of both links. For each: its two devices, and the port of an end.
LINKS = {
    'vhost': ('net_vhost{i},iface={sock}',
              'net_virtio_user0,path={sock},queue_size=1024 10.99.0.{n}/24 mtu=9000'),
    'memif': ('net_memif{i},role=server,id=0,socket={sock},socket-abstract=no,bsize=2048',
              'net_memif0,role=client,id=0,socket={sock},socket-abstract=no,bsize=2048,'
              'zero-copy=no 10.99.0.{n}/24'),
}
EVERYTHING = ('loss=1%,burst=0.1%:20%,every=200,dup=1%,reorder=3%:10,corrupt=1%,truncate=0.5%,delay=20us,'
              'jitter=50us,rate=2000:200000:50000')
LOST = ('fault_lost', 'fault_cut', 'fault_full', 'fault_crowded', 'runts', 'refused', 'held')
# What pmf counts of frames that are not as they were sent.
REFUSED = ('rx_short', 'rx_not_mine', 'rx_no_group', 'rx_not_ip', 'rx_not_udp', 'rx_fragment', 'rx_bad_len',
           'rx_bad_cksum', 'rx_no_cksum')


class Wire:
    """A wire that forwards, and the two ends that can be plugged into it."""

    def __init__(self, start, kind, run_dir, *options):
        device, port = LINKS[kind]
        socks = [run_dir / 'a.sock', run_dir / 'b.sock']
        self.process = start(*(word for i, sock in enumerate(socks)
                               for word in ('--vdev', device.format(i=i, sock=sock))),
                             '--', '--format', 'json', '--seed', SEED, *options)
        self.process.wait_for('"begin"', 20)
        config = {'vhost': 'link-b', 'memif': 'memif-b'}[kind]
        # Without hugepages, of which another process may take the last ones meanwhile.
        self.ends = [End(config, {'PMF_RUN': str(run_dir), 'FI_PMF_HUGEPAGES': 'off',
                                  'FI_PMF_PORT': port.format(sock=sock, n=i + 1)}, f'10.99.0.{i + 1}')
                     for i, sock in enumerate(socks)]

    def reports(self, event):
        lines = self.process.out.splitlines(True)
        found = [json.loads(line) for line in lines if line.endswith('\n')]
        return [report['ways'] for report in found if report['event'] == event]

    def now(self):
        """The counters of both ways, as the wire prints them when asked."""
        before = len(self.reports('counters'))
        self.process.signal(signal.SIGUSR1)
        wait_until(lambda: len(self.reports('counters')) > before or not self.process.running(), 20,
                   'the wire\'s counters')
        return self.reports('counters')[-1]

    def end(self, number=signal.SIGTERM):
        """Ends it; its counters, each frame accounted for."""
        self.process.signal(number)
        assert self.process.wait(20) == 0, str(self)
        for way in self.reports('end')[0]:
            assert way['rx_frames'] + way['fault_dup'] == way['tx_frames'] + sum(way[n] for n in LOST), str(self)
        return self.reports('end')[0]

    def __str__(self):
        return f'PMF_SEED={SEED}\n{self.process}'


@pytest.fixture
def start(tree, runner):
    """Starts pmf-wire with devices and options."""
    def begin(*words):
        return runner.start([tree / 'build/app/pmf-wire', '--no-huge', '--no-shconf', '-m', '384',
                             '--no-telemetry', *words])
    return begin


@pytest.fixture
def wire(start, run_dir):
    def make(kind, *options):
        return Wire(start, kind, run_dir, *options)
    return make


@pytest.fixture
def verified(tree, pmf_run):
    """Streams both ways at once through a wire, each byte checked."""
    def run(wire, *options):
        a, b = wire.ends
        perf = [tree / 'build/app/pmf-perf', '--', '--provider', 'pmf', '--timeout', '30s']
        server = pmf_run(a, *perf, '--listen')
        client = pmf_run(b, *perf, '--peer', a.address, '--verify', '--mode', 'bw', '--direction',
                         'both', '--window', '8', *options)
        assert client.wait(60) == 0 and server.wait(30) == 0, f'{wire}\n{server}\n{client}'
        rows = [line for line in client.out.splitlines() if line.startswith('bw ')]
        assert rows and all(int(row.split()[4]) > 0 for row in rows), str(client)
    return run


@pytest.mark.parametrize('kind', LINKS)
def test_every_byte_through_everything(kind, wire, verified):
    w = wire(kind, '--fault', EVERYTHING)
    verified(w, '--size', '1,1k,64k,1m', '--count', '60')
    for way in w.end():
        for name in ('lost', 'dup', 'reordered', 'delayed', 'corrupted', 'truncated'):
            assert way[f'fault_{name}'] > 0, f'{name}\n{w}'


@pytest.mark.parametrize('kind', LINKS)
def test_pingpong_through_everything(kind, wire, pmf_run, free_port):
    w = wire(kind, '--fault', EVERYTHING)
    a, b = w.ends
    command = ['fi_pingpong', '-p', 'pmf', '-c', '-e', 'rdm', '-S', 'all', '-I', '2']
    server = pmf_run(a, *command, '-B', free_port)
    wait_until(lambda: listens(free_port) or not server.running(), 20, 'the server listens')
    client = pmf_run(b, *command, '-P', free_port, '127.0.0.1')
    for process in (client, server):
        assert process.wait(120) == 0, f'{w}\n{server}\n{client}'
    check_rows((server, client))
    assert all(way['fault_lost'] > 0 for way in w.end())


# A fault, which way, what it counts; it is in force for a part of three seconds.
@pytest.mark.parametrize('option, fault, count', (
    ('--forth', 'cut=1s:2s', 'fault_cut'),
    ('--back', 'cut=1s:2s', 'fault_cut'),
    ('--fault', 'pause=1s:500ms', 'fault_delayed'),
    ('--fault', 'loss=30%,kinds=ack', 'fault_lost'),
    ('--fault', 'loss=30%,kinds=data', 'fault_lost'),
    ('--forth', 'rate=200:12000', 'fault_full'),
    ('--forth', 'rate=200:300000:20000', 'fault_marked')))
def test_every_byte_through(option, fault, count, wire, verified):
    w = wire('vhost', option, fault)
    verified(w, '--size', '8k', '--duration', '3s')
    forth, back = w.end()
    assert (forth[count] > 0, back[count] > 0) == (option != '--back', option != '--forth'), str(w)


@pytest.mark.parametrize('fault, count', (('corrupt=3%:14', 'fault_corrupted'), ('truncate=3%', 'fault_truncated')))
def test_what_is_altered_is_refused(fault, count, wire, tree, pmf_run):
    """Each altered frame is dropped by its receiver, and counted; but for those of ARP, which bear no sum."""
    if os.geteuid() != 0:
        pytest.skip('the socket is looked for where root has it')
    w = wire('vhost', '--back', fault)
    a, b = w.ends
    prefix = f'dts{os.getpid()}'
    perf = [tree / 'build/app/pmf-perf', '--', '--provider', 'pmf', '--timeout', '30s']
    server = pmf_run(a, *perf, '--listen', '--forever', env={'FI_PMF_EAL': f'--file-prefix={prefix}'})
    client = pmf_run(b, *perf, '--peer', a.address, '--verify', '--mode', 'bw', '--size', '64,8k', '--count', '5000')
    assert client.wait(60) == 0, f'{w}\n{server}\n{client}'

    def agree():
        way = w.now()[1]
        objects = telemetry.ask(f'/var/run/dpdk/{prefix}', '/pmf/stats')['/pmf/stats'].values()
        port = next(o for o in objects if o['object'] == 'port')
        refused = sum(port[name] for name in REFUSED)
        altered = way[count] - way['runts']
        state.update(way=way, port=port)
        return altered > 50 and port['rx_frames'] == way['tx_frames'] and \
            altered - port['arp_rx'] <= refused <= altered
    state = {}
    try:
        wait_until(agree, 1, 'counters that agree')
    except AssertionError as error:
        raise AssertionError(f'{error}: {state}\n{w}') from None
    w.end()


def test_an_end_that_comes_back(wire, verified):
    """Frames for who is not there are lost, and counted; the next process finds the wire as it was."""
    w = wire('vhost')
    for _ in range(2):
        verified(w, '--size', '1k', '--count', '1000')
    assert all(way['fault_lost'] == 0 for way in w.end())


@pytest.mark.parametrize('number', (signal.SIGINT, signal.SIGTERM))
def test_a_signal_ends_it(number, wire):
    w = wire('vhost', '--fault', 'loss=1%')
    assert [way['rx_frames'] for way in w.now()] == [0, 0]
    w.end(number)
    begun = w.reports('begin')[0]
    assert [way['fault'] for way in begun] == [f'loss=1%,seed={SEED + i}' for i in range(2)]
    assert not w.process.err, str(w)


def test_faults_from_a_file_change(wire, run_dir):
    """A line for each way, or one for both; one that is no good changes nothing."""
    file = run_dir / 'faults'
    file.write_text('loss=1%\n')
    w = wire('vhost', '--faults', file)
    assert [way['fault'] for way in w.reports('begin')[0]] == [f'loss=1%,seed={SEED + i}' for i in range(2)]
    file.write_text('lose=1%\n')
    w.process.signal(signal.SIGHUP)
    wait_until(lambda: 'lose=1%' in w.process.err or not w.process.running(), 20, 'it says what is wrong')
    file.write_text('dup=1%\nloss=2%\n')
    w.process.signal(signal.SIGHUP)
    wait_until(lambda: w.reports('changed') or not w.process.running(), 20, 'the faults are changed')
    assert [way['fault'] for way in w.reports('changed')[0]] == [f'dup=1%,seed={SEED}', f'loss=2%,seed={SEED + 1}']
    w.end()


def test_a_duration_ends_it(wire):
    w = wire('vhost', '--duration', '100ms')
    assert w.process.wait(20) == 0 and len(w.reports('end')) == 1, str(w)


@pytest.mark.parametrize('words, status, what', (
    (('--', '--bogus'), 2, '--bogus'), (('--', 'word'), 2, 'word'),
    (('--', '--fault', 'lose=1%'), 2, 'lose=1%'), (('--', '--ports', '1,1'), 2, 'two ports'),
    (('--', '--held', '0'), 2, 'wait'), (('--',), 1, 'no port 0'),
    (('--vdev', 'net_ring0', '--'), 1, 'no port 1'), (('--vdev', 'net_nothing0', '--'), 1, 'EAL did not start')))
def test_mistakes_are_one_sentence(words, status, what, start):
    process = start(*words)
    assert process.wait(20) == status, str(process)
    assert process.err.startswith('pmf-wire: ') and process.err.count('\n') == 1, str(process)
    assert what in process.err and not process.out, str(process)


def test_help_names_every_option(start):
    process = start('--', '--help')
    assert process.wait(20) == 0 and '--duration' in process.out and 'reorder' in process.out, str(process)
