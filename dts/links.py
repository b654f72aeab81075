# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""The links that one machine can make, each as a pair of ends made from a file in config/.

A link says for each end: the configuration, the variables to add, the words that enter its network
namespace, and the address by which the other end's plain TCP reaches it.
"""

import functools
import itertools
import os
import subprocess

_numbers = itertools.count()


@functools.cache
def namespaces_allowed():
    """Root in a container may lack the right to make them."""
    return os.geteuid() == 0 and subprocess.run(['unshare', '-n', 'true'], check=False,
                                                stderr=subprocess.DEVNULL).returncode == 0


@functools.cache
def root_is_mounted():
    with open('/proc/self/mountinfo', encoding='utf-8') as file:
        return any(line.split()[4] == '/' for line in file)


def inside(namespace):
    """The words that run a command in a namespace. `ip netns exec` gives it a /sys of its own too, but
    refuses in a chroot whose / is no mount point."""
    if root_is_mounted():
        return ['ip', 'netns', 'exec', namespace]
    return ['nsenter', f'--net=/run/netns/{namespace}']


def ip(*words):
    """One ip command; its error output is the test's."""
    command = ['ip', *words]
    if words[0] == '-n':
        command = [*inside(words[1]), 'ip', *words[2:]]
    run = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.returncode == 0, f'{" ".join(command)}: {run.stderr.strip()}'
    return run.stdout


class End:
    """One process's place on a link."""

    def __init__(self, config, env, address, net=(), control='127.0.0.1', *, namespace=None):
        self.config = config
        self.namespace = namespace
        self.env = env
        self.address = address
        self.net = list(net)
        self.control = control


class Link:
    """Base of the links, and the ones that need nothing made: sockets between two processes."""

    needs_root = False
    device = None

    def __init__(self, run_dir):
        self.namespaces = []
        self.run_dir = str(run_dir)
        try:
            self.ends = self.make()
        except BaseException:
            self.close()
            raise

    def make(self):
        raise NotImplementedError

    def started(self):
        """Called when both processes run, for what can only be done then."""

    def namespace(self):
        name = f'pmf{os.getpid()}n{next(_numbers)}'
        ip('netns', 'add', name)
        self.namespaces.append(name)
        ip('-n', name, 'link', 'set', 'lo', 'up')
        return name

    def close(self):
        """Interfaces go with their namespaces."""
        for name in self.namespaces:
            ip('netns', 'del', name)
        self.namespaces.clear()


class SocketLink(Link):
    configs = ()

    def make(self):
        env = {'PMF_RUN': self.run_dir}
        return [End(config, env, f'10.99.0.{i + 1}') for i, config in enumerate(self.configs)]


class Vhost(SocketLink):
    configs = ('link-a', 'link-b')


class Memif(SocketLink):
    configs = ('memif-a', 'memif-b')


class Veth(Link):
    """Two namespaces, one veth pair for pmf and another for the programs' own TCP: AF_XDP takes
    every frame of its interface."""

    needs_root = True
    config = None
    mtu = 1500

    def make(self):
        names = [self.namespace(), self.namespace()]
        for device, mtu in (('pmf0', self.mtu), ('ctl0', 1500)):
            ip('link', 'add', device, 'netns', names[0], 'mtu', str(mtu), 'type', 'veth',
               'peer', 'name', device, 'netns', names[1], 'mtu', str(mtu))
        ends = []
        for i, name in enumerate(names):
            ip('-n', name, 'addr', 'add', f'10.98.0.{i + 1}/24', 'dev', 'ctl0')
            for device in ('pmf0', 'ctl0'):
                ip('-n', name, 'link', 'set', device, 'up')
            ends.append(End(self.config, {'PMF_RUN': self.run_dir, 'PMF_IFACE': 'pmf0',
                                          'PMF_ADDR': f'10.99.1.{i + 1}/24'},
                            f'10.99.1.{i + 1}', inside(name),
                            f'10.98.0.{i + 1}', namespace=name))
        return ends


class AfPacket(Veth):
    config = 'af_packet'


class AfPacketJumbo(AfPacket):
    mtu = 9000


class AfXdp(Veth):
    config = 'af_xdp'


class Tap(Link):
    """Two TAP interfaces on a bridge in one namespace; each process makes its own."""

    needs_root = True

    def make(self):
        self.name = self.namespace()
        ip('-n', self.name, 'link', 'add', 'pmfbr', 'type', 'bridge')
        ip('-n', self.name, 'link', 'set', 'pmfbr', 'up')
        net = inside(self.name)
        return [End('tap', {'PMF_RUN': self.run_dir, 'PMF_IFACE': f'tap{i}',
                            'PMF_ADDR': f'10.99.2.{i + 1}/24'}, f'10.99.2.{i + 1}', net)
                for i in range(2)]

    def started(self):
        """A TAP is there once its process is: plug both in then."""
        from proc import wait_until
        for i in range(2):
            wait_until(lambda i=i: f'tap{i}' in self.interfaces(), 20, f'interface tap{i}')
            ip('-n', self.name, 'link', 'set', f'tap{i}', 'master', 'pmfbr')
            ip('-n', self.name, 'link', 'set', f'tap{i}', 'up')

    def interfaces(self):
        lines = ip('-n', self.name, '-o', 'link').splitlines()
        return {line.split(':')[1].strip().split('@')[0] for line in lines}


class Bridge(Link):
    """A bridge with one veth a rank, as config/bridge.env describes it, in one namespace. The two ends are
    ranks 0 and 1; MPI finds the others' interfaces."""

    needs_root = True
    ranks = 4

    def make(self):
        self.name = name = self.namespace()
        ip('-n', name, 'link', 'add', 'pmfbr', 'mtu', '9000', 'type', 'bridge')
        ip('-n', name, 'link', 'set', 'pmfbr', 'up')
        for r in range(self.ranks):
            ip('-n', name, 'link', 'add', f'pmf{r}', 'index', str(256 * (r + 1)), 'mtu', '9000',
               'type', 'veth', 'peer', 'name', f'pmfbr{r}', 'mtu', '9000')
            ip('-n', name, 'link', 'set', f'pmfbr{r}', 'master', 'pmfbr', 'up')
            ip('-n', name, 'link', 'set', f'pmf{r}', 'up')
        self.net = inside(name)
        return [End('bridge', {'PMF_RUN': self.run_dir, 'PMI_RANK': str(r)}, f'10.99.1.1{r}',
                    self.net) for r in range(2)]


LINKS = {'vhost': Vhost, 'memif': Memif, 'af_packet': AfPacket, 'af_packet_9000': AfPacketJumbo,
         'af_xdp': AfXdp, 'tap': Tap, 'bridge': Bridge}
