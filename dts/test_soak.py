# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Two processes (test/soak) talk without end, in every way at once, through a wire whose faults change. One is
stopped, ended and killed, and comes back at its address; keys roll. Now and then both are quiet: then each message
has come once and whole, and the other process has as many descriptors, threads, flows and buffers as ever.

PMF_SEED repeats a run; it is printed by a failure. PMF_SOAK is how long it goes on, in seconds (60).
usertools/test build soak_long by hand, two minutes in every --ci.
"""

import json
import os
import pathlib
import random
import signal
import time

import pytest

from conftest import PROVIDER, ROOT
from links import End
from proc import wait_until

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.skipif(PROVIDER != 'pmf', reason='its own programs')]

SEED = int(os.environ.get('PMF_SEED', random.randrange(1, 1 << 31)))
SECONDS = float(os.environ.get('PMF_SOAK', 60))
BUILD = pathlib.Path(os.environ.get('PMF_BUILD', ROOT / 'build')).resolve()
HUB, GUEST = '10.99.0.1', '10.99.0.2'
WARM_UP = 3  # rounds
# What is always the same when all is quiet: each unconnected slot knows all, and there are four connections.
EXACT = {'flows': 5 * 10 + 4, 'rx_away': 0}
TX_AWAY = 32  # buffers to send that an engine has taken at most, and not used yet
# What is only looked at over many rounds: bytes by which it may grow. Pools are touched bit by bit.
MANY = 100
TREND = {'rss': 16 << 20, 'heap': 1 << 20, 'dpdk_heap': 64 << 10}
# What has to have happened at the end, in numbers of the hub's.
SEEN = ('sent', 'got', 'bytes', 'cut', 'cancelled', 'failed', 'closed', 'rejected')
# What the wire does, in one way or both; nothing lasts as long as what lets a peer count as dead.
FAULTS = ('', '', 'loss=1%', 'loss=5%,dup=2%', 'burst=0.2%:10%', 'every=50', 'loss=20%,kinds=ack',
          'loss=10%,kinds=hello+challenge+open+probe+reset', 'dup=10%', 'reorder=10%:20', 'reorder=50%:3,jitter=100us',
          'corrupt=1%:14,truncate=1%', 'delay=100us,jitter=50us', 'delay=5ms', 'rate=300:100000:50000',
          'rate=2000:30000', 'cut=0s:700ms', 'cut=200ms:1s,loss=1%', 'pause=50ms:20ms',
          'loss=1%,burst=0.1%:20%,dup=1%,reorder=3%:10,corrupt=1%:14,truncate=0.5%,delay=20us,jitter=50us')


class Soak:
    def __init__(self, tree, runner, pmf_run, run_dir):
        self.random = random.Random(SEED)
        self.runner, self.pmf_run, self.run_dir = runner, pmf_run, run_dir
        self.keys, self.rolled = [], 0
        self.lives, self.quiets = 0, {}
        self.env = self.environment()
        self.hub = self.start(HUB, f'net_vhost0,iface={run_dir}/hub.sock,client=0', {
            'FI_PMF_FAULT': self.random.choice(('', 'loss=0.5%,dup=0.5%,reorder=2%:8,seed=5'))})
        self.wire = self.start_wire(tree / 'build/app/pmf-wire')
        self.guest = self.start_guest()
        self.known, self.failed = set(), {}
        self.rows = []

    # ---- processes ----

    def environment(self):
        env = {'PMF_RUN': str(self.run_dir), 'FI_PMF_HUGEPAGES': 'off', 'FI_PMF_PEER_TIMEOUT_MS': '60000'}
        if self.random.random() < 0.6:
            self.keys = [self.new_key()]
            self.write_keys()
            env['FI_PMF_AUTH_KEY_FILE'] = f'{self.run_dir}/keys'
            env['FI_PMF_ENCRYPT'] = str(self.random.randrange(2))
        return env

    def start(self, own, device, env):
        self.lives += 1
        self.quiets[own] = 0
        self.report(own).unlink(missing_ok=True)
        role, other = ('hub', GUEST) if own == HUB else ('guest', HUB)
        process = self.pmf_run(End('link-a', self.env, own), BUILD / 'test/soak/soak_peer', role, own, other,
                               self.lives % 4095 + 1, SEED, self.random.choice(('manual', 'auto')), self.report(own),
                               env={**env, 'FI_PMF_PORT': f'{device} {own}/24 mtu=9000'})
        process.wait_for('ready', 30)
        return process

    def start_wire(self, program):
        self.write_faults('')
        wire = self.runner.start([program, '--no-huge', '--no-shconf', '--single-file-segments', '-m', '256',
                                  '--no-telemetry', '--vdev', f'net_virtio_user0,path={self.run_dir}/hub.sock',
                                  '--vdev', f'net_vhost0,iface={self.run_dir}/guest.sock', '--', '--format', 'json',
                                  '--faults', f'{self.run_dir}/faults'])
        wire.wait_for('"begin"', 30)
        return wire

    def start_guest(self):
        faults = self.random.choice(('', '', 'loss=1%,dup=1%,reorder=3%:5,seed=9', 'corrupt=0.5%:14,seed=9'))
        return self.start(GUEST, f'net_virtio_user0,path={self.run_dir}/guest.sock,queue_size=1024',
                          {'FI_PMF_FAULT': faults})

    def report(self, own):
        return self.run_dir / ('hub' if own == HUB else 'guest')

    def alive(self):
        for process in (self.hub, self.wire, self.guest):
            assert process.running(), str(self)
        return True

    def go_on(self, seconds):
        """For so long all is well."""
        end = time.monotonic() + seconds
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)

    # ---- what goes wrong ----

    def new_key(self):
        return self.random.randbytes(32).hex()

    def write(self, name, text):
        """Nobody reads half of it."""
        path = self.run_dir / name
        path.with_suffix('.new').write_text(text)
        path.with_suffix('.new').rename(path)

    def write_keys(self):
        self.write('keys', ''.join(key + '\n' for key in self.keys))

    def write_faults(self, *ways):
        self.write('faults', ''.join(way + '\n' for way in ways))

    def change_faults(self):
        both = [self.random.choice(FAULTS)] * 2
        if self.random.random() < 0.5:
            both[1] = self.random.choice(FAULTS)
        seed = self.random.randrange(1, 1 << 31)
        self.write_faults(*(','.join(filter(None, (text, f'seed={seed + i}'))) for i, text in enumerate(both)))
        changes = self.wire.out.count('"changed"')
        self.wire.signal(signal.SIGHUP)
        wait_until(lambda: self.alive() and self.wire.out.count('"changed"') > changes, 20, str(self))

    def next_guest(self):
        self.runner.processes.remove(self.guest)
        self.guest.out_file.close()
        self.guest.err_file.close()
        self.guest = self.start_guest()

    def kill(self):
        self.guest.signal(signal.SIGKILL)
        self.guest.wait(20)
        self.next_guest()

    def restart(self):
        self.guest.signal(signal.SIGTERM)
        assert self.guest.wait(60) == 0 and 'end' in self.guest.out, str(self)
        self.next_guest()

    def stop(self):
        process = self.random.choice((self.guest, self.guest, self.wire))
        process.signal(signal.SIGSTOP)
        self.go_on(self.random.uniform(0.1, 1.5))
        process.signal(signal.SIGCONT)

    def roll(self):
        """The next step of changing the key, once the hub has seen the last one."""
        if not self.keys:
            return
        if len(self.keys) == 1:
            self.keys.append(self.new_key())
        elif self.rolled % 3 == 1:
            self.keys.reverse()
        else:
            self.keys.pop()
        self.rolled += 1
        self.write_keys()

    def round(self):
        self.change_faults()
        for _ in range(self.random.randrange(1, 4)):
            self.go_on(self.random.uniform(0.3, 2))
            self.random.choice((self.kill, self.restart, self.stop, self.change_faults))()
        self.go_on(self.random.uniform(0.3, 1))

    # ---- when it is quiet ----

    def said(self, own):
        """What a process has said of itself since it is quiet; None: nothing yet."""
        try:
            said = json.loads(self.report(own).read_text())
        except FileNotFoundError:
            return None
        return said if said['quiets'] == self.quiets[own] else None

    def disagree(self):
        """Messages that are missing, too many, or not yet there."""
        both = [self.said(own) for own in (HUB, GUEST)]
        if not self.alive() or not all(said and said['drained'] for said in both):
            return ['sends have not ended']
        slots = {slot['name']: slot for said in both for slot in said['slots']}
        wrong = []
        for name, slot in slots.items():
            for to, (sent, failed) in slot['to'].items():
                pair = slot['life'], slots[to]['life'] if to in slots else None
                was, lost = self.failed.get(pair, (0, 0))
                got = slots[to]['from'].get(slot['life']) if to in slots else None
                if pair[0] in self.known and pair[1] in self.known:
                    assert failed == was, f'{name} to {to}: {failed - was} sends failed\n{self}'
                if got:
                    low, high, count = got
                    if high != sent or count != high - low or (name.startswith('conn') and low):
                        wrong.append(f'{name} to {to}: {sent} sent, {count} of {low} to {high} came')
                elif pair[1] is None or (failed == was and slot['lost'] == lost):
                    wrong.append(f'{name} to {to}: {sent} sent, none came')
        if not wrong:
            self.known = {slot['life'] for slot in slots.values()}
            self.failed = {(slot['life'], slots[to]['life']): (failed, slot['lost'])
                           for slot in slots.values() for to, (_, failed) in slot['to'].items()}
        return wrong

    def ask(self):
        for own, process in ((HUB, self.hub), (GUEST, self.guest)):
            self.quiets[own] += 1
            process.signal(signal.SIGUSR1)

    def quiet(self):
        # What one says while the other still closes endpoints may have come to one that is closed: all is said again.
        self.ask()
        wait_until(lambda: self.alive() and self.said(HUB) and self.said(GUEST), 60, str(self))
        self.ask()
        try:
            wait_until(lambda: not self.disagree(), 60, 'all has come')
        except AssertionError as error:
            raise AssertionError('\n'.join((str(error), *self.disagree(), str(self)))) from None
        self.look()
        self.last = self.said(HUB)
        for process in (self.hub, self.guest):
            process.signal(signal.SIGUSR2)

    def measure(self):
        proc, said = pathlib.Path(f'/proc/{self.hub.pid}'), self.said(HUB)
        return {'descriptors': len(os.listdir(proc / 'fd')), 'threads': len(os.listdir(proc / 'task')),
                'rss': int((proc / 'statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE'),
                **{name: said[name] for name in ('flows', 'rx_away', 'tx_away', 'heap', 'dpdk_heap')}}

    def look(self):
        """What is counted is as it was; what is not, is kept for the end."""
        def settled():
            self.rows[-1:] = [self.measure()]
            now, first = self.rows[-1], self.rows[0]
            return self.alive() and now['tx_away'] < TX_AWAY and \
                all(now[name] == value for name, value in EXACT.items()) and \
                all(now[name] == first[name] for name in ('descriptors', 'threads'))
        self.rows.append(None)
        wait_until(settled, 30, f'{EXACT}, descriptors and threads are as they were\n{self}')

    def drift(self):
        """Bytes by which the least of the last third is above the most of the first."""
        rows = self.rows[WARM_UP:]
        third = len(rows) // 3
        return {name: min(row[name] for row in rows[-third:]) - max(row[name] for row in rows[:third])
                for name in TREND} if third else {}

    def end(self):
        for process in (self.guest, self.hub):
            process.signal(signal.SIGTERM)
            assert process.wait(60) == 0 and 'end' in process.out, str(self)
        self.wire.signal(signal.SIGTERM)
        assert self.wire.wait(20) == 0, str(self)

    def __str__(self):
        rows = '\n'.join(str(row) for row in self.rows[-12:])
        last = '\n'.join(f'{process.command[-7:]}, exit code {process.popen.poll()}: {process.err}\n'
                         f'{process.out[-500:]}' for process in (self.hub, self.wire, self.guest))
        for own in (HUB, GUEST):
            last += self.report(own).read_text() if self.report(own).exists() else ''
        return f'PMF_SEED={SEED} round {len(self.rows)}\n{rows}\n{last}'


@pytest.fixture
def soak(tree, runner, pmf_run, run_dir):
    if os.geteuid() != 0:
        pytest.skip('the telemetry socket is looked for where root has it')
    return Soak(tree, runner, pmf_run, run_dir)


def test_everything_at_once(soak, record_property):
    def figures():
        return {name: soak.last[name] for name in SEEN}

    begin = time.monotonic()
    # On a slow machine until each thing has been seen, within bounds.
    while time.monotonic() < begin + SECONDS or len(soak.rows) < 2 * WARM_UP or \
            (not all(figures().values()) and time.monotonic() < begin + 3 * SECONDS):
        soak.round()
        soak.quiet()
        soak.roll()
    record_property('soak', f'PMF_SEED={SEED}, {len(soak.rows)} rounds, {soak.lives} lives: {figures()}, {soak.drift()}')
    assert all(figures().values()), f'{figures()}\n{soak}'
    grown = {name: by for name, by in soak.drift().items() if by > TREND[name]}
    assert len(soak.rows) < MANY or not grown, f'{grown}\n{soak}'
    soak.end()
