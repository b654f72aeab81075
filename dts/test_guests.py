# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""config/pci.env as on a real NIC: VFIO, an IOMMU, DPDK's drivers of PCI devices. Two guests in QEMU stand on
one wire, a UDP socket each, which loses what a guest does not take.

A pair boots for each device. The guests are emulated: what they show is that things hold, never how fast.
"""

import os
import pathlib
import random
import re
import shutil
import socket
import struct
import tempfile

import pytest

import guest
from conftest import PROVIDER
from proc import wait_until
from test_pingpong import check_rows

pytestmark = [pytest.mark.qemu, pytest.mark.skipif(PROVIDER != 'pmf', reason='the links are pmf\'s')]

SEED = int(os.environ.get('PMF_SEED', random.randrange(1, 1 << 31)))
# Behind an IOMMU virtio has to be told so.
DEVICES = {'e1000e': 'e1000e', 'vmxnet3': 'vmxnet3',
           'virtio': 'virtio-net-pci,disable-legacy=on,iommu_platform=on'}
# A guest may stand still for longer than a peer has to answer.
PATIENT = {'FI_PMF_PEER_TIMEOUT_MS': '3000000', 'FI_LOG_LEVEL': 'warn', 'FI_LOG_PROV': 'pmf'}
PERF = '/pmf/build/app/pmf-perf -- --timeout 3000s'
MAC = '52:54:00:0d:00:0{}'


class Pair:
    """Two guests and the ports of this host between which their frames travel."""

    def __init__(self, image, device, directory):
        self.guests = []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(type=socket.SOCK_DGRAM) as b, \
                socket.socket(type=socket.SOCK_DGRAM) as c, socket.socket(type=socket.SOCK_DGRAM) as d:
            for sock in (a, b, c, d):
                sock.bind(('127.0.0.1', 0))
            self.ports = [sock.getsockname()[1] for sock in (a, b, c, d)]
        try:
            for i in range(2):
                nets = [self.wire(*self.ports[at:at + 2][::1 - 2 * i]) for at in (0, 2)]
                self.guests.append(guest.Guest(i + 1, image, f'{device},mac={MAC.format(i + 1)}', nets,
                                               directory))
            for one in self.guests:
                one.ready()
        except BaseException:
            self.end()
            raise

    @staticmethod
    def wire(mine, other):
        return (f'dgram,local.type=inet,local.host=127.0.0.1,local.port={mine},'
                f'remote.type=inet,remote.host=127.0.0.1,remote.port={other}')

    def end(self):
        for one in self.guests:
            one.end()


@pytest.fixture(scope='module')
def image(tree):
    """The guests' kernel and file system; skipped where QEMU is missing or the kernel cannot be had."""
    if not shutil.which('qemu-system-x86_64'):
        pytest.skip('no qemu-system-x86_64')
    with tempfile.TemporaryDirectory(prefix='pmf-') as name:
        try:
            made = guest.image(tree, pathlib.Path(name))
        except guest.Unavailable as error:
            pytest.skip(str(error))
        yield made


@pytest.fixture(scope='module')
def booted(image):
    """Boots a pair with a device; the last pair serves as long as the same is asked for."""
    now = []

    def boot(device):
        if not now or now[0] != device:
            end()
            directory = tempfile.TemporaryDirectory(prefix='pmf-')
            now.extend((device, directory, Pair(image, device, pathlib.Path(directory.name))))
        return now[2]

    def end():
        if now:
            now[2].end()
            now[1].cleanup()
        now.clear()
    yield boot
    end()


@pytest.fixture
def guests(booted, request):
    """Two guests with the device that the test is given; no program is left in them afterwards."""
    pair = booted(DEVICES[request.param])
    yield pair
    for one in pair.guests:
        one.end_tasks()


# With the scope, tests of a device come together: a pair boots once.
on_each_device = pytest.mark.parametrize('guests', DEVICES, indirect=True, scope='module')


def pingpong(guests, options):
    a, b = guests.guests
    server = a.start(f'fi_pingpong -p pmf -c {options}', PATIENT)
    wait_until(lambda: a.listens(47592) or server.status() is not None, 60, 'the server listens', pause=0.2)
    client = b.start(f'fi_pingpong -p pmf -c {options} {a.control}', PATIENT)
    for task in (client, server):
        assert task.wait(300) == 0, f'{server}\n{client}\n{a.look()}\n{b.look()}'
    return server, client


def verified(guests, options, serve=''):
    """A server, and a client that streams both ways with each byte checked."""
    a, b = guests.guests
    env = {**PATIENT, 'FI_LOG_LEVEL': 'info'}  # for the lines in which endpoints say what they had to do
    server = a.start(f'{PERF} --listen {serve}', env)
    server.wait_for('listening', 60)
    return server, b.start(f'{PERF} --peer {a.address} --verify --mode bw --direction both --walk 0 {options}', env)


def ended_well(guests, client, rows):
    assert client.wait(300) == 0, f'{client}\n{guests.guests[0].look()}\n{guests.guests[1].look()}'
    assert client.out.count('\nbw ') == rows, str(client)


@on_each_device
def test_every_size_and_byte(guests):
    """Debian's fi_pingpong; two rounds of each size, since an emulated one takes its time."""
    check_rows(pingpong(guests, '-e rdm -S all -I 2'))


@on_each_device
def test_connected_endpoints(guests):
    pingpong(guests, '-e msg -S 65536 -I 4')


@on_each_device
def test_the_link_goes_and_comes_back(guests):
    """One guest's cable is pulled in the middle of a stream: its device says so, the other's does not."""
    a, b = guests.guests
    server, client = verified(guests, '--size 1k,4k --duration 10s')
    client.wait_for('\nbw ', 60)  # one row is printed, and the other has begun
    a.link(False)
    wait_until(lambda: a.link_status() == 'DOWN', 20, 'the device sees no link', pause=0.2)
    assert b.link_status() == 'UP'
    stopped = b.port_stats()['rx_frames']
    wait_until(lambda: b.retransmitted() > 0, 60, 'the other guest sends again', pause=0.2)
    assert b.port_stats()['rx_frames'] == stopped and client.status() is None, str(client)
    a.link(True)
    ended_well(guests, client, 2)
    assert server.wait(60) == 0, str(server)


def stranger(to, count, draw):
    """Frames of a stranger to an endpoint of a guest: whole and right but for what they say."""
    source, dest = socket.inet_aton('192.0.2.99'), socket.inet_aton(to.address)
    mac = bytes.fromhex(MAC.format(to.number).replace(':', ''))
    for _ in range(count):
        body = draw.randbytes(draw.randrange(18, 1400))
        udp = struct.pack('!HHHH', draw.randrange(1024, 65536), 9471, 8 + len(body), 0)
        ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 28 + len(body), 0, 0x4000, 64, 17, 0, source, dest)
        total = sum(struct.unpack('!10H', ip))
        total = (total & 0xffff) + (total >> 16)
        ip = ip[:10] + struct.pack('!H', ~(total + (total >> 16)) & 0xffff) + ip[12:]
        yield mac + b'\x52\x54\x00\x0d\x00\x63\x08\x00' + ip + udp + body


@on_each_device
def test_a_flood_that_the_device_drops(guests):
    """More frames than a guest takes come at its device, again and again beside a stream: those of the stream
    that are lost among them are sent again, and each byte is right."""
    a = guests.guests[0]
    server, client = verified(guests, '--size 1k,4k --duration 5s', '--forever')
    frames = list(stranger(a, 2000, random.Random(SEED)))
    sent = 0
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        def over():
            nonlocal sent
            for frame in frames:
                sock.sendto(frame, ('127.0.0.1', guests.ports[0]))
            sent += len(frames)
            return client.status() is not None
        wait_until(over, 300, 'the stream\'s end', pause=0.2)
    ended_well(guests, client, 2)
    engine = next(one for one in a.telemetry('/pmf/stats').values() if one['object'] == 'engine:0')
    refused = sum(value for name, value in engine.items() if name.startswith('drop_'))
    again = sum(map(int, re.findall(r'(\d+) retransmissions', client.err)))
    assert 0 < refused < sent and again > 0, f'PMF_SEED={SEED}: {sent} sent, {again} again\n{engine}\n{client}'
    assert server.status() is None, str(server)
