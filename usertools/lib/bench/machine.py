# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""What the figures were measured on, and what else ran there meanwhile."""

import os
import pathlib
import platform
import resource
import subprocess
import time

TICK = os.sysconf('SC_CLK_TCK')
OTHERS_MAX = 0.10  # processors that others may use before figures are doubted
STEAL_MAX = 0.01   # share of the time that a hypervisor may take


def read(path, default=''):
    try:
        return pathlib.Path(path).read_text(encoding='utf-8').strip()
    except OSError:
        return default


def said(*command):
    """What a command prints, or ''."""
    try:
        return subprocess.run(command, text=True, stdout=subprocess.PIPE, timeout=10, check=False,
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ''


def cpu_model():
    for line in read('/proc/cpuinfo').splitlines():
        if line.startswith('model name'):
            return line.split(':', 1)[1].strip()
    return platform.machine()


def system():
    for line in read('/etc/os-release').splitlines():
        if line.startswith('PRETTY_NAME='):
            return line.split('=', 1)[1].strip('"')
    return platform.system()


def describe(root, perf, cores):
    """The machine and the versions, as they stand in the record and in the documentation."""
    pool = '/sys/kernel/mm/hugepages/hugepages-2048kB/'
    governor = f'/sys/devices/system/cpu/cpu{cores[0]}/cpufreq/scaling_governor'
    return {
        'cpu': cpu_model(),
        'processors': os.cpu_count(),
        'cores': list(cores),
        'governor': read(governor, 'not told'),
        'memory_gib': round(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30, 1),
        'system': system(),
        'kernel': platform.release(),
        'hugepages_2m': int(read(pool + 'nr_hugepages', '0')),
        'hugepages_2m_free': int(read(pool + 'free_hugepages', '0')),
        'dpdk': said('pkg-config', '--modversion', 'libdpdk') or 'not told',
        'programs': said(str(perf), '--', '--version') or 'not told',
        'commit': said('git', '-C', str(root), 'describe', '--always', '--dirty') or 'not told',
    }


def _times():
    """Seconds since boot, over all processors: (busy in programs and kernel, stolen)."""
    words = [int(word) / TICK for word in read('/proc/stat').splitlines()[0].split()[1:9]]
    user, nice, kernel, _, _, irq, _, steal = words
    # Soft interrupts are left out: those of a veth pair are the link's own work.
    return user + nice + kernel + irq, steal


def _own():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Noise:
    """Processor time that went to others, from one look to the next. Between looks every program of
    the bench has ended and been waited for, so its time is known exactly."""

    def __init__(self):
        self.loads = []
        self.others = []
        self.steals = []
        self._start()

    def _start(self):
        self.at, (self.busy, self.steal), self.own = time.monotonic(), _times(), _own()

    def look(self):
        """Ends a stretch and begins the next; shorter ones than a second say nothing."""
        now, (busy, steal), own = time.monotonic(), _times(), _own()
        if now - self.at < 1:
            return
        seconds = now - self.at
        self.loads.append(os.getloadavg()[0])
        self.others.append(max(0.0, (busy - self.busy - (own - self.own)) / seconds))
        self.steals.append(max(0.0, (steal - self.steal) / seconds / (os.cpu_count() or 1)))
        self._start()

    def summary(self):
        def most(values):
            return round(max(values), 3) if values else 0.0

        def mean(values):
            return round(sum(values) / len(values), 3) if values else 0.0
        return {'loadavg_max': most(self.loads), 'others_max': most(self.others),
                'others_mean': mean(self.others), 'steal_max': most(self.steals),
                'steal_mean': mean(self.steals)}


def noise_reasons(noise):
    """Why a quiet machine looks different."""
    reasons = []
    if noise['others_mean'] > OTHERS_MAX:
        reasons.append(f'other programs used {noise["others_mean"]:.2f} processors on average')
    if noise['steal_mean'] > STEAL_MAX:
        reasons.append(f'the hypervisor took {100 * noise["steal_mean"]:.1f} % of the time')
    return reasons
