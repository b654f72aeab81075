# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""From samples to figures: medians with their spread, ratios pair by pair, targets, trust.

A sample is one figure set of one run: link, who, program, run, kind, bytes, n (peers), touch (raw).
Ratios are taken between samples of the same run, and their median is the ratio: what disturbs one run
disturbs both of its sides.
"""

import statistics

from . import machine

RAW_SPREAD_MAX = 0.15      # (max - min) / median of the raw runs before figures are doubted
AGREEMENT = 0.05           # by which the two programs may differ over the same provider
RAW_LEAST = 0.9            # of dpdk-testpmd's rate, or the ratios do not count
ALONE = 1000               # bytes of a message that shares no frame, as subjects.ALONE
HEADERS = 60               # bytes of a frame that carry no payload, about: IP, UDP and the protocol's


def frame_of(size, mtu):
    """The raw frame that a message of this size is held against."""
    return 64 if size <= 64 else min(size, mtu + 14)


def spread(values):
    return {'median': statistics.median(values), 'min': min(values), 'max': max(values),
            'runs': len(values)}


class Figures:
    """All samples of a session, by what they are."""

    def __init__(self, samples, mtus):
        self.mtus = mtus
        self.runs = {}
        for s in samples:
            key = (s['link'], s['who'], s['program'], s['kind'], s['bytes'], s.get('n', 1))
            self.runs.setdefault(key, {})[s['run']] = s['figures']

    def values(self, key, name):
        """{run: value} of one figure; a key may leave out n."""
        key = key if len(key) == 6 else (*key, 1)
        return {run: figures[name] for run, figures in self.runs.get(key, {}).items()
                if name in figures}

    def raw(self, link, kind, frame, name):
        return self.values((link, 'raw', 'pmf-raw', kind, frame), name)

    def limit(self, link, kind, size, name):
        """{run: what raw DPDK does} to hold a figure against; {} where the two cannot be compared."""
        mtu = self.mtus[link]
        frame = frame_of(size, mtu)
        if kind == 'lat' and name in ('p50', 'p99', 'p99.9'):
            first = self.raw(link, 'ping', frame, name)
            if size <= mtu or name != 'p50':
                return first if size <= mtu else {}
            # A message of many frames: the first one's way, the others close behind it.
            rate = self.raw(link, 'flood', frame, 'messages_per_s')
            others = -(-size // (mtu - HEADERS)) - 1
            return {run: first[run] + 1e6 * others / rate[run] for run in first if rate.get(run)}
        if kind in ('bw', 'reused', 'single', 'more', 'peers') and name == 'messages_per_s' and size <= 64:
            return self.raw(link, 'flood', 64, name)
        if kind in ('bw', 'reused') and name == 'bytes_per_s' and size > 64:
            return self.raw(link, 'flood', frame, name)
        return {}

    def summary(self):
        """One entry for each figure of each series."""
        entries = []
        for key in sorted(self.runs):
            link, who, program, kind, size, n = key
            names = sorted({name for figures in self.runs[key].values() for name in figures})
            for name in names:
                values = self.values(key, name)
                entry = {'link': link, 'who': who, 'program': program, 'kind': kind, 'bytes': size,
                         'n': n, 'figure': name, **spread(list(values.values()))}
                limit = {} if who == 'raw' else self.limit(link, kind, size, name)
                ratios = pairs(values, limit)
                if ratios:
                    entry['to_raw'] = spread(ratios)
                entries.append(entry)
        return entries


def pairs(values, others):
    """The quotients of what was measured in the same run."""
    return [values[run] / others[run] for run in values if others.get(run)]


def check_raw(f, link):
    """(pmf-raw ÷ dpdk-testpmd, reasons why ratios on this link do not count, reasons to doubt)."""
    rate = f.raw(link, 'flood', 64, 'messages_per_s')
    against = pairs(rate, f.values((link, 'raw', 'dpdk-testpmd', 'flood', 64), 'messages_per_s'))
    ratio = spread(against) if against else None
    broken, doubts = [], []
    if ratio is None:
        broken.append(f'{link}: pmf-raw could not be held against dpdk-testpmd')
    elif ratio['median'] < RAW_LEAST:
        broken.append(f'{link}: pmf-raw reaches only {ratio["median"]:.2f} of dpdk-testpmd: the '
                      'ratios do not count')
    for what, values in (('rate', rate), ('half round trip', f.raw(link, 'ping', 64, 'p50'))):
        if len(values) > 1:
            s = spread(list(values.values()))
            wide = (s['max'] - s['min']) / s['median']
            if wide > RAW_SPREAD_MAX:
                doubts.append(f'{link}: the raw {what} spread over {100 * wide:.0f} % of its median')
    return ratio, broken, doubts


def check_agreement(f, link):
    """Why pmf-perf and fi_pingpong seem to measure different things."""
    apart = pairs(f.values((link, 'pmf', 'pmf-perf', 'lat', 8), 'mean'),
                  f.values((link, 'pmf', 'fi_pingpong', 'lat', 8), 'mean'))
    if apart and abs(statistics.median(apart) - 1) > AGREEMENT:
        yield (f'{link}: pmf-perf and fi_pingpong differ in the mean half round trip of 8 B: '
               f'{statistics.median(apart):.2f}')


def trust(f, noise, names, cores):
    """Whether the figures can be believed, and the reasons if not."""
    reasons, testpmd = machine.noise_reasons(noise), {}
    if len(set(cores)) < 2:
        reasons.append('both sides shared one core')
    for link in names:
        testpmd[link], broken, doubts = check_raw(f, link)
        reasons += [*broken, *doubts, *check_agreement(f, link)]
    return {'trusted': not reasons, 'reasons': reasons, 'raw_to_testpmd': testpmd}


def pmf(kind, size, link='vhost'):
    return (link, 'pmf', 'pmf-perf', kind, size)


def plain(who, kind, size, link):
    return (link, who, 'pmf-perf', kind, size)


def targets(f):
    """The rows of what is aimed at, with what was measured. reached is None where nothing was."""
    rate, lat, cost = 'messages_per_s', 'p50', 'ns_per_message'

    def to_raw(key, name):
        return pairs(f.values(key, name), f.limit(key[0], key[3], key[4], name))

    def to(key, other, name):
        return pairs(f.values(key, name), f.values(other, name))
    def flat(kind, size, n=1000):
        return to((*pmf(kind, size), n), pmf(kind, size), cost)

    def more(key, other, name):
        values, others = f.values(key, name), f.values(other, name)
        return [values[run] - others[run] for run in values if run in others]
    tcp, veth, domain = 'tcp', 'af_packet', pmf('domain', 0, 'loop')
    rows = [
        ('8 B half round trip / raw 64 B, p50', to_raw(pmf('lat', 8), lat), '<=', 1.35),
        ('8 B half round trip / raw 64 B, p99.9', to_raw(pmf('lat', 8), 'p99.9'), '<=', 1.5),
        ('8 B messages/s one way / raw 64 B frames/s', to_raw(pmf('reused', 8), rate), '>=', 1.0),
        ('the same, one message a frame', to_raw(pmf('single', 8), rate), '>=', 0.5),
        ('8 B messages/s one way / libfabric shm',
         to(pmf('reused', 8), plain('shm', 'reused', 8, 'vhost'), rate), '>', 1.0),
        ('1 MB bandwidth / raw full frames, payload touched',
         to_raw(pmf('bw', 1 << 20), 'bytes_per_s'), '>=', 0.85),
        ('64 KB half round trip / raw, the same frames (computed from first and further frames)',
         to_raw(pmf('lat', 65536), lat), '<=', 1.5),
        ('af_packet: 8 B half round trip / tcp',
         to(pmf('lat', 8, veth), plain(tcp, 'lat', 8, veth), lat), '<=', 0.5),
        ('af_packet: 8 B messages/s / tcp',
         to(pmf('reused', 8, veth), plain(tcp, 'reused', 8, veth), rate), '>=', 10),
        ('af_packet, MTU 9000: 64 KB bandwidth / raw, payload touched',
         to_raw(pmf('bw', 65536, veth), 'bytes_per_s'), '>=', 0.85),
        ('af_packet, MTU 9000: 1 MB bandwidth / raw, payload touched',
         to_raw(pmf('bw', 1 << 20, veth), 'bytes_per_s'), '>=', 0.85),
        ('auto progress on the loop link, 8 B half round trip, more than manual, us',
         more(pmf('auto', 8, 'loop'), pmf('manual', 8, 'loop'), lat), '<=', 0.5),
        ('two engines on the loop link: 8 B messages/s / one engine',
         to((*pmf('engines', 8, 'loop'), 2), pmf('engines', 8, 'loop'), rate), '>=', 1.6),
        ('1,000 peers, one message a frame: cost of a message / with one peer, to them',
         flat('fan_out', ALONE), '<=', 1.5),
        ('the same, from them', flat('fan_in', ALONE), '<=', 1.5),
        ('two processes on one core, 8 B half round trip, us',
         list(f.values(pmf('one_core', 8), lat).values()), '<', 5.0),
        ('opening a domain, EAL apart, ms', list(f.values(domain, 'ms').values()), '<', 20),
        ('memory of a domain at rest, MB', list(f.values(domain, 'mb').values()), '<', 64),
    ]
    return [judge(*row) for row in rows]


def judge(name, values, sign, wanted):
    row = {'name': name, 'target': f'{sign} {wanted}', 'value': None, 'reached': None}
    if values:
        row['value'] = value = statistics.median(values)
        row['reached'] = {'<=': value <= wanted, '>=': value >= wanted, '<': value < wanted,
                          '>': value > wanted}[sign]
    return row
