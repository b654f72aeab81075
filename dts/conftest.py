# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Fixtures: the built provider, processes, links, hugepages. What a test made goes with it.

PMF_BUILD names the build directory (default: build/). DTS_PROVIDER=tcp has the same programs run over
libfabric's own provider, which shows whether a failure is the suite's or pmf's.
"""

import contextlib
import mmap
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from links import LINKS, namespaces_allowed  # noqa: E402  (found through the path above)
from proc import Runner  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROVIDER = os.environ.get('DTS_PROVIDER', 'pmf')
HUGE = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
HUGE_WANTED = 400
MAP_HUGETLB = 0x40000  # which Python does not name


def pytest_configure(config):
    config.addinivalue_line('markers', 'long: minutes or hours; only run by name')
    config.addinivalue_line('markers', 'soak: as long as PMF_SOAK says')
    config.addinivalue_line('markers', 'qemu: needs QEMU and takes minutes; only run by name')


@pytest.fixture(scope='session')
def tree():
    """What a user has, copied where every user may read it: pmf-run, config/ and the build."""
    build = pathlib.Path(os.environ.get('PMF_BUILD', ROOT / 'build')).resolve()
    provider = build / 'src/fabric/libpmf-fi.so'
    if not provider.exists():
        pytest.fail(f'{provider} is not there: build first, or set PMF_BUILD')
    with tempfile.TemporaryDirectory(prefix='pmf-dts-') as name:
        top = pathlib.Path(name)
        top.chmod(0o755)
        (top / 'build/src/fabric').mkdir(parents=True)
        (top / 'usertools').mkdir()
        shutil.copytree(ROOT / 'config', top / 'config')
        shutil.copy(ROOT / 'usertools/pmf-run', top / 'usertools')
        shutil.copy(provider, top / 'build/src/fabric')
        (top / 'build/app').mkdir()
        for program in ('pmf-perf', 'pmf-wire'):
            if (build / 'app' / program).exists():
                shutil.copy(build / 'app' / program, top / 'build/app')
        yield top


@pytest.fixture
def run_dir():
    """A directory for sockets; short, since a socket's path is at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix='pmf-') as name:
        yield pathlib.Path(name)


@pytest.fixture
def runner():
    """Starts processes."""
    runner = Runner()
    yield runner
    runner.end()


@pytest.fixture
def make_link(run_dir):
    """Makes a link by its name in links.LINKS."""
    made = []

    def make(name):
        kind = LINKS[name]
        if kind.needs_root and not namespaces_allowed():
            pytest.skip('namespaces and interfaces need root')
        link = kind(run_dir)
        made.append(link)
        return link

    yield make
    for link in made:
        link.close()


@pytest.fixture
def pmf_run(tree, runner):
    """Starts a command at one end of a link, as `pmf-run CONFIG COMMAND`; `prefix` words (setpriv,
    taskset) come before it, inside the end's namespace. PMF_HUGEPAGES is what FI_PMF_HUGEPAGES is where the
    test leaves it open: off beside a run that takes hugepages and gives them back."""
    def start(end, *command, prefix=(), env=None):
        huge = os.environ.get('PMF_HUGEPAGES')
        return runner.start([*end.net, *prefix, tree / 'usertools/pmf-run', end.config, *command],
                            {**({'FI_PMF_HUGEPAGES': huge} if huge else {}), **end.env, **(env or {})})
    return start


@contextlib.contextmanager
def hugepages_taken(leaving=0):
    """All free hugepages but so many are mapped, and not touched: they still count as free."""
    free, reserved = (int((HUGE / name).read_text()) for name in ('free_hugepages', 'resv_hugepages'))
    with mmap.mmap(-1, (free - reserved - leaving) << 21,
                   mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_HUGETLB):
        yield


@pytest.fixture(scope='module')
def hugepages():
    """Free hugepages for two processes of 256 MB and some to spare; the pool is as before afterwards."""
    if os.geteuid() != 0 or not HUGE.exists():
        pytest.skip('reserving hugepages needs root')
    count = HUGE / 'nr_hugepages'
    before = int(count.read_text())
    missing = max(0, HUGE_WANTED - int((HUGE / 'free_hugepages').read_text()))
    count.write_text(str(before + missing))
    got = int(count.read_text()) - before
    if int((HUGE / 'free_hugepages').read_text()) < HUGE_WANTED:
        count.write_text(str(before))
        pytest.skip('no memory for hugepages')
    yield
    # Taken off again what was put on: another program may have reserved some meanwhile.
    count.write_text(str(max(0, int(count.read_text()) - got)))


@pytest.fixture
def free_port():
    """A TCP port nobody uses just now."""
    import socket
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
