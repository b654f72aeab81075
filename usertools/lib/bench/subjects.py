# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""How each program that is measured is run over a link, and what it says.

Every function here starts a pair of processes, one pinned to each core, waits for their end with a
time-out, and returns samples: dictionaries with kind, bytes and figures. The links and processes are
those of dts/.
"""

import itertools
import json
import os
import re
import signal
import statistics
import subprocess

import links
import proc

HEADROOM = 128         # bytes that DPDK keeps before a frame in its buffer
ALONE = 1000           # bytes of a message that shares no frame where the MTU is 1500
TIMEOUT = 30           # s, beyond what a program was asked to take
RX_RATE = re.compile(r'Rx-pps:\s+(\d+)')
PINGPONG_ROW = re.compile(r'^(\d+)\S*\s+\S+\s+=\S+\s+\S+\s+\S+\s+\S+\s+([\d.]+)\s', re.M)
EAL = ['--no-pci', '--in-memory', '--single-file-segments', '--no-telemetry']


class Failed(Exception):
    """A program that did not do what it was asked; the text says which and why."""


class Crowd(links.Bridge):
    """A client, and as many servers as wanted, each with a veth of its own on one bridge."""

    def __init__(self, run_dir, peers):
        self.ranks = peers + 1
        super().__init__(run_dir)

    def make(self):
        super().make()
        return [links.End('bridge', {'PMF_RUN': self.run_dir, 'PMI_RANK': str(r)}, f'10.99.1.1{r}',
                          self.net) for r in range(self.ranks)]


class AfPacketBench(links.AfPacketJumbo):
    """With the second pair of interfaces, for the kernel's own protocols, as wide as the first."""

    def make(self):
        ends = super().make()
        for end in ends:
            links.ip('-n', end.namespace, 'link', 'set', 'ctl0', 'mtu', str(self.mtu))
        return ends


# Name: how it is made, and the largest payload of its Ethernet frames.
LINKS = {
    'vhost': (links.Vhost, 9000),
    'memif': (links.Memif, 1500),
    'af_packet': (AfPacketBench, 9000),
    'af_xdp': (links.AfXdp, 1500),
}
PLAIN = ('tcp', 'tcp;ofi_rxm', 'udp;ofi_rxd', 'shm')

# What one run of pmf-perf measures: mode, direction, FI_MORE, and the kind that it is called here.
KINDS = {('lat', 'both', 1): 'lat', ('bw', 'tx', 1): 'bw', ('rate', 'tx', 1): 'reused',
         ('bw', 'both', 1): 'both'}


class Bench:
    """The programs, the cores and the run's directory; used by one thread."""

    def __init__(self, root, build, run_dir, cores, duration_ms, patience):
        # The tests wait long, since they run on loaded machines; a bench has a quiet one.
        proc.SLOWER = patience
        self.root, self.build, self.run_dir = root, build, run_dir
        self.cores = cores
        self.duration_ms = duration_ms
        self.hugepages = True
        self.runner = proc.Runner()
        self.ports = itertools.count(20000 + os.getpid() % 20000)

    def close(self):
        self.runner.end()

    # Processes.

    def start(self, end, core, command, *, config=False, env=None, pin=True):
        words = [*end.net, *(['taskset', '-c', core] if pin else [])]
        if config:
            words += [self.root / 'usertools/pmf-run', end.config]
        huge = {} if self.hugepages or not config else {'FI_PMF_HUGEPAGES': 'off'}
        more = {'PMF_BUILD': str(self.build), **end.env, **huge, **(env or {})}
        return self.runner.start([*words, *command], more)

    def forget(self, *processes):
        """Ends what still runs and closes its files."""
        for process in processes:
            process.end()
            self.runner.processes.remove(process)

    def pair(self, first, second, ready, seconds):
        """Starts `first()`, waits for `ready`, starts `second()`, waits for both. Their outputs."""
        begun = [first()]
        try:
            proc.wait_until(lambda: ready(begun[0]) or not begun[0].running(), TIMEOUT,
                            'the first program gets ready')
            begun.append(second())
            codes = [begun[1].wait(seconds + TIMEOUT)]
            # A server whose client failed may wait for long.
            codes.append(begun[0].wait(TIMEOUT) if codes[0] == 0 else 0)
            return (begun[1].out, None if codes == [0, 0] else self.reason(begun))
        except AssertionError as error:
            raise Failed(f'{str(error).splitlines()[0]}; {self.reason(begun)}') from None
        finally:
            self.forget(*reversed(begun))

    @staticmethod
    def reason(processes):
        """The last words of those that failed."""
        words = []
        for process in reversed(processes):
            lines = [line for line in process.err.splitlines() if line.strip()]
            if lines:
                words.append(lines[-1].strip())
        return ' | '.join(words) or 'it said nothing'

    # DPDK alone.

    def device(self, end):
        """The device of a configuration, as pmf-run expands it."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(('FI_', 'PMF_'))}
        text = subprocess.run([str(self.root / 'usertools/pmf-run'), '-n', end.config],
                              env={**environment, **end.env}, text=True, check=True,
                              stdout=subprocess.PIPE).stdout
        return re.search(r'^FI_PMF_PORT=(\S+)', text, re.M).group(1)

    def room(self, end):
        """Bytes that a buffer needs: af_packet hands over frames as large as it was told."""
        found = re.search(r'framesz=(\d+)', self.device(end))
        return int(found.group(1)) if found else 2048

    def memory(self):
        return EAL if self.hugepages else ['--no-pci', '--no-huge', '--no-shconf', '-m', '512',
                                           '--no-telemetry']

    def eal(self, end):
        return [*self.memory(), '--vdev', self.device(end)]

    def socket_listens(self, _process):
        """For the links that are a socket: whether it takes connections. The others need no order."""
        if not self.on_socket:
            return True
        with open('/proc/net/unix', encoding='utf-8') as file:
            return any(words[3] == '00010000' and words[-1].lstrip('@').startswith(str(self.run_dir))
                       for words in map(str.split, file) if len(words) == 8)

    def fresh(self, link):
        """No socket of an earlier process is taken for that of the next."""
        self.on_socket = isinstance(link, links.SocketLink)
        for path in self.run_dir.glob('*.sock'):
            path.unlink()

    def raw(self, link, mode, frame, touch):
        """pmf-raw: `mode` is ping or flood; one sample."""
        self.fresh(link)
        program = self.build / 'app/pmf-raw'

        def side(end, core, word):
            return self.start(end, core, [program, *self.eal(end), '--', '--mode', word, '--size',
                                          frame, '--touch', touch, '--seconds',
                                          f'{self.duration_ms}ms', '--room', self.room(end),
                                          '--format', 'json'])
        a, b = link.ends
        answer = {'ping': 'echo', 'flood': 'sink'}[mode]
        out, error = self.pair(lambda: side(a, self.cores[0], answer),
                               lambda: side(b, self.cores[1], mode), self.socket_listens,
                               self.duration_ms / 1e3)
        if error:
            raise Failed(f'pmf-raw {mode} {frame}: {error}')
        row = json.loads(out)
        figures = {'messages_per_s': row['frames_per_s'], 'bytes_per_s': row['bytes_per_s']}
        if mode == 'ping':
            figures = dict(row['half_rtt_us'])
        return {'kind': mode, 'bytes': frame, 'touch': touch, 'figures': figures}

    def testpmd(self, link, frame=64):
        """DPDK's own program: txonly on one side, rxonly on the other; the receiver's rate."""
        self.fresh(link)

        def side(end, core, word):
            return self.start(end, core, ['dpdk-testpmd', *self.eal(end), '--lcores',
                                          f'0@{core},1@{core}', '--', f'--forward-mode={word}',
                                          f'--txpkts={frame}', '--stats-period=1',
                                          f'--mbuf-size={self.room(end) + HEADROOM}',
                                          '--total-num-mbufs=8192'], pin=False)
        a, b = link.ends
        begun = [side(a, self.cores[0], 'rxonly')]

        def rates():
            if not all(process.running() for process in begun):
                raise Failed(f'dpdk-testpmd ended: {self.reason(begun)}')
            return [int(rate) for rate in RX_RATE.findall(begun[0].out) if int(rate) > 0]
        try:
            proc.wait_until(lambda: rates() or self.socket_listens(None), TIMEOUT,
                            'dpdk-testpmd gets ready')
            begun.append(side(b, self.cores[1], 'txonly'))
            # The first counts a second in which the other side was starting.
            proc.wait_until(lambda: len(rates()) >= 3, TIMEOUT, 'dpdk-testpmd receives')
            rate = statistics.median(rates()[1:])
            for process in reversed(begun):
                process.signal(signal.SIGINT)
                process.wait(TIMEOUT)
        except AssertionError as error:
            raise Failed(str(error).splitlines()[0]) from None
        finally:
            self.forget(*reversed(begun))
        return {'kind': 'flood', 'bytes': frame, 'touch': 'none',
                'figures': {'messages_per_s': rate, 'bytes_per_s': rate * frame}}

    # libfabric.

    def address(self, link, who, i):
        """Where side i of this provider is found on the link, and the options that make it so."""
        end = link.ends[i]
        if who == 'pmf':
            return end.address, []
        if who == 'shm':
            name = f'bench-{self.run_dir.name}-{i}'
            return name, ['--name', name]
        return end.control, ['--bind', end.control]

    def perf(self, link, who, options, points, *, listen=(), cores=None, env=None, **kind):
        """pmf-perf with one list of options; `listen` are the server's own, `kind` goes into the
        samples. (samples, error or None)"""
        self.fresh(link)
        port = ['--port', str(next(self.ports))]
        cores = cores or self.cores
        peer, own = self.address(link, who, 0)

        def side(i, words):
            return self.start(link.ends[i], cores[i], [self.build / 'app/pmf-perf', '--',
                                                       '--provider', who, *port, *words],
                              config=who == 'pmf', env=env)
        seconds = points * (3 * self.duration_ms / 1e3 + 1)
        out, error = self.pair(
            lambda: side(0, ['--listen', *own, *listen]),
            lambda: side(1, ['--peer', peer, *self.address(link, who, 1)[1], '--format', 'json',
                             '--duration', f'{self.duration_ms}ms', *options]),
            lambda process: 'listening' in process.out, seconds)
        return self.long_enough(samples_of(out, **kind), error)

    def endpoints(self, link, kind, n):
        """One endpoint sends to n of the other process (fan_out), or n send to one (fan_in): 8 B
        messages, and some of which no two fit into a frame."""
        many, one = ['--endpoints', str(n)], ['--endpoints', '1']
        here, there = (one, many) if kind == 'fan_out' else (many, one)
        return self.perf(link, 'pmf', ['--mode', 'rate', '--size', f'8,{ALONE}', *here], 2,
                         listen=there, env={'FI_PMF_MTU': '1500'}, kind=kind, n=n)

    def alone(self, options, env=None, cores=None, eal=()):
        """All ends in one program on the loop link. What it printed."""
        end = links.End('loop', {'PMF_RUN': str(self.run_dir), **(env or {})}, '10.99.0.1')
        process = self.start(end, cores or self.cores[0],
                             [self.build / 'app/pmf-perf', *eal, '--', '--self', *options,
                              '--duration', f'{self.duration_ms}ms', '--format', 'json'],
                             config=True)
        try:
            if process.wait(TIMEOUT + self.duration_ms / 1e3):
                raise Failed(self.reason([process]))
            return process.out
        finally:
            self.forget(process)

    def progress(self, kind):
        """The application's thread on one core; in automatic progress an lcore has the other."""
        lcores = {'FI_PMF_LCORES': self.cores[1]} if kind == 'auto' else {}
        out = self.alone(['--progress', kind], lcores)
        return self.long_enough(samples_of(out, kind), None)

    def engines(self, n):
        """So many engines, each with a thread, a domain and a core; the rate of all together."""
        out = self.alone(['--mode', 'rate', '--threads', str(n)],
                         {'FI_PMF_PORT': f'net_ring0 10.99.0.1/24 queues={n}'},
                         ','.join(self.cores[:n]))
        return self.long_enough(samples_of(out, 'engines', n=n), None)

    def domain(self):
        """What fi_domain takes in a program whose EAL runs already."""
        out = self.alone([], eal=self.memory())
        found = json.loads(out)['domain']
        return [{'kind': 'domain', 'bytes': 0, 'figures': found}], None

    def long_enough(self, samples, error):
        """Leaves out streams whose messages came in at one go: their rate means nothing."""
        least = self.duration_ms / 2e3
        short = [s for s in samples if s.pop('seconds') < least]
        if short and not error:
            error = f'too short to be measured: {", ".join(str(s["bytes"]) for s in short)} bytes'
        return [s for s in samples if s not in short], error

    def crowd(self, link):
        """One client of pmf-perf and all the others of the link as its servers, on the other core."""
        self.fresh(link)
        program = [self.build / 'app/pmf-perf', '--', '--provider', 'pmf']
        begun = []
        try:
            for end in link.ends[1:]:
                begun.append(self.start(end, self.cores[0], [*program, '--listen'], config=True))
            for server in begun:
                server.wait_for('listening', TIMEOUT)
            peers = [word for end in link.ends[1:] for word in ('--peer', end.address)]
            begun.append(self.start(link.ends[0], self.cores[1],
                                    [*program, *peers, '--mode', 'rate', '--size', '8', '--duration',
                                     f'{self.duration_ms}ms', '--format', 'json'], config=True))
            code = begun[-1].wait(TIMEOUT + self.duration_ms / 1e3)
            if code:
                raise Failed(self.reason(begun))
            return self.long_enough(samples_of(begun[-1].out, 'peers', n=len(link.ends) - 1), None)
        except AssertionError as error:
            raise Failed(str(error).splitlines()[0]) from None
        finally:
            self.forget(*reversed(begun))

    def pingpong(self, link, who, size, count):
        """Debian's fi_pingpong, unmodified: the mean of half a round trip."""
        self.fresh(link)
        port = str(next(self.ports))
        a, b = link.ends
        program = ['fi_pingpong', '-p', who, '-e', 'rdm', '-S', size, '-I', count]
        pmf = who == 'pmf'
        out, error = self.pair(
            lambda: self.start(a, self.cores[0], [*program, '-B', port], config=pmf),
            lambda: self.start(b, self.cores[1], [*program, '-P', port, a.control], config=pmf),
            lambda process: proc.listens(int(port), a.net), 10)
        row = PINGPONG_ROW.search(out)
        if error or not row:
            raise Failed(f'fi_pingpong: {error or "no row in what it printed"}')
        return {'kind': 'lat', 'bytes': size, 'figures': {'mean': float(row.group(2))}}


def samples_of(out, kind=None, **more):
    """The rows of pmf-perf's record; those before a failure count."""
    samples = []
    try:
        rows = json.loads(out)['results']
    except (ValueError, KeyError):
        return samples
    for row in rows:
        # Of two directions the longer counts for both, where one ended early.
        rate = row['messages'] / row['seconds'] if row['seconds'] else 0
        figures = {'messages_per_s': rate, 'bytes_per_s': rate * row['bytes']}
        if 'n' in more and rate:
            figures['ns_per_message'] = 1e9 / rate
        if 'half_rtt_us' in row:
            figures.update(row['half_rtt_us'])
        key = (row['mode'], row['direction'], row['more'])
        samples.append({'kind': kind or KINDS[key], 'bytes': row['bytes'], **more,
                        'seconds': row['seconds'], 'figures': figures})
    return samples
