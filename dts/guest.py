# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Two small machines in QEMU, for what only a PCI device shows: their image, and what runs in them.

Nothing is installed for it but QEMU. The kernel and busybox come from apt's packages, unpacked and kept
in build-test/guest; libraries and programs are this system's own. The guests are emulated, so they are
slow wherever they run, and they reach each other and nobody else.
"""

import json
import lzma
import pathlib
import re
import shlex
import shutil
import socket
import stat
import subprocess

from conftest import ROOT
from proc import SLOWER, Process, wait_until

CACHE = ROOT / 'build-test/guest'
# The network card for the guests' own TCP is the kernel's; the other is nobody's until it is bound.
MODULES = ('e1000', 'vfio-pci', 'vfio_iommu_type1')
PYTHON = '/usr/bin/python3'  # for telemetry.py, with the modules that it needs
PROGRAMS = ('/bin/bash', '/usr/bin/fi_pingpong', PYTHON)
MODULES_OF_PYTHON = ('import encodings.ascii, encodings.latin_1, json, os, socket, sys\n'
                     'print(*(m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None)))')
# Drivers of devices that QEMU has, and what EAL loads for each process.
PLUGINS = re.compile(r'librte_(bus_(pci|vdev)|mempool_ring|net_(e1000|virtio|vmxnet3|ring))\.so\.\d+\.\d+$')
NIC = '0000:00:10.0'

INIT = '''#!/bin/busybox sh
export PATH=/usr/bin:/bin HOME=/
/bin/busybox --install -s /bin
chmod 755 /
mkdir -p /proc /sys /dev /tmp /var
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ln -s /tmp /run
ln -s /tmp /var/run
while read -r module; do insmod "/modules/$module"; done </modules/order
ip link set lo up
ip link set eth0 up
ip addr add "10.98.0.$PMF_GUEST/24" dev eth0
exec 3<>/dev/ttyS1
stty raw -echo <&3
echo ready >&3
# "NUMBER COMMAND" comes in; what it prints goes out, and "NUMBER=STATUS" behind it.
while IFS= read -r line <&3; do
	(eval "${line#* }") >/tmp/answer 2>&1 </dev/null 3>&-
	status=$?
	{ cat /tmp/answer; echo; echo "${line%% *}=$status"; } >&3
done
'''


def run(*command, cwd=None):
    """A command of this system's; what it printed."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f'{command}: {done.stdout}'
    return done.stdout


class Unavailable(Exception):
    """The packages that a guest is made from cannot be had."""


def _unpack(package, wanted, top):
    """The files of a Debian package whose paths match, below `top`."""
    try:
        run('apt-get', '-q', '-o', 'APT::Sandbox::User=root', 'download', package, cwd=top)
    except (AssertionError, FileNotFoundError) as error:
        raise Unavailable(f'apt has no {package} for the guests: {error}') from None
    deb, = top.glob(f'{package}_*.deb')
    words = ' '.join(shlex.quote(word) for word in wanted)
    run('sh', '-c', f'dpkg-deb --fsys-tarfile "$1" | tar -x --wildcards {words}', 'sh', deb.name, cwd=top)
    deb.unlink()


def system():
    """The kernel, its modules and busybox, unpacked once: a directory."""
    if (CACHE / 'system').is_dir():
        return CACHE / 'system'
    part = CACHE / 'system.part'
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    depends = shutil.which('apt-cache') and run('apt-cache', 'depends', 'linux-image-amd64')
    kernel = re.search(r'Depends: (linux-image-\S+)', depends or '')
    if not kernel:
        raise Unavailable('apt knows no kernel for the guests')
    _unpack(kernel[1], ('*/vmlinuz-*', '*/kernel/drivers/vfio/*',
                        '*/kernel/drivers/net/ethernet/intel/e1000/*', '*/kernel/virt/*'), part)
    _unpack('busybox-static', ('*bin/busybox',), part)
    part.rename(CACHE / 'system')
    return CACHE / 'system'


def _modules(top):
    """The modules to load, each behind those that it needs: names and bytes."""
    files = {re.sub(r'\.ko.*', '', path.name).replace('-', '_'): path for path in top.rglob('*.ko*')}
    order = {}

    def add(name):
        name = name.replace('-', '_')
        if name in order or name not in files:
            return  # or built in
        data = files[name].read_bytes()
        if files[name].suffix == '.xz':
            data = lzma.decompress(data)
        needs = re.search(rb'\0depends=([^\0]*)\0', data)
        for other in needs[1].decode().split(',') if needs else ():
            add(other)
        order[name] = data
    for name in MODULES:
        add(name)
    return order


def _libraries(files):
    """What these programs and libraries are linked with, and the dynamic linker."""
    found = set()
    for file in files:
        found.update(re.findall(r'(/\S+) \(0x', run('ldd', file)))
    return sorted(found)


class Archive:
    """An initial file system, in the form that Linux unpacks ("newc")."""

    def __init__(self):
        self.data = bytearray()
        self.made = set()

    def _entry(self, path, mode, data=b'', device=(0, 0)):
        name = path.lstrip('/').encode() + b'\0'
        fields = (len(self.made), mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        self.data += b'070701' + b''.join(b'%08x' % field for field in fields) + name
        self.data += bytes(-len(self.data) % 4) + data
        self.data += bytes(-len(self.data) % 4)
        self.made.add(path)

    def directory(self, path):
        if path != '/' and path not in self.made:
            self.directory(str(pathlib.PurePosixPath(path).parent))
            self._entry(path, stat.S_IFDIR | 0o755)

    def file(self, path, data, mode=0o755):
        self.directory(str(pathlib.PurePosixPath(path).parent))
        if path not in self.made:
            self._entry(path, stat.S_IFREG | mode, data)

    def device(self, path, major, minor):
        self.directory(str(pathlib.PurePosixPath(path).parent))
        self._entry(path, stat.S_IFCHR | 0o600, device=(major, minor))

    def copy(self, path, source=None):
        """A file of this system. A name for another file stays one: a library that has two names is
        loaded once."""
        source = pathlib.Path(source or path)
        real = source.resolve()
        if source == pathlib.Path(path) and real != source:
            self.directory(str(source.parent))
            if str(path) not in self.made:
                self._entry(str(path), stat.S_IFLNK | 0o777, str(real).encode())
            path = real
        self.file(str(path), real.read_bytes())

    def end(self):
        self._entry('TRAILER!!!', 0)
        return bytes(self.data)


def image(tree, directory):
    """The kernel, and a file system with this build and all it needs: two paths."""
    top = system()
    archive = Archive()
    archive.device('/dev/console', 5, 1)  # init's output, before it has mounted a /dev
    archive.file('/init', INIT.encode())
    archive.copy('/bin/busybox', next(top.rglob('bin/busybox')))
    drivers = _modules(top)
    for name, data in drivers.items():
        archive.file(f'/modules/{name}.ko', data)
    archive.file('/modules/order', ''.join(f'{name}.ko\n' for name in drivers).encode())
    where = run('pkg-config', '--variable=libdir', 'libdpdk').strip()
    plugins = [path for path in pathlib.Path(where).glob('dpdk/pmds-*/*') if PLUGINS.fullmatch(path.name)]
    assert plugins, f'no drivers of DPDK in {where}'
    modules = run(PYTHON, '-I', '-S', '-c', MODULES_OF_PYTHON).split()
    extensions = [path for path in modules if path.endswith('.so')]
    built = [path for path in (tree / 'build').rglob('*') if path.is_file()]
    for path in [*PROGRAMS, *plugins, *modules, *_libraries([*PROGRAMS, *plugins, *extensions, *built])]:
        archive.copy(path)
    for path in (*built, *(tree / 'config').iterdir(), tree / 'usertools/pmf-run'):
        archive.copy(f'/pmf/{path.relative_to(tree)}', path)
    archive.copy('/pmf/dts/telemetry.py', ROOT / 'dts/telemetry.py')
    initrd = directory / 'initrd'
    initrd.write_bytes(archive.end())
    return next(top.rglob('vmlinuz-*')), initrd


class Task:
    """A program that runs in a guest."""

    def __init__(self, guest, number, command, env):
        self.guest = guest
        self.command = command
        self.base = f'/tmp/task{number}'
        words = ' '.join(f'{key}={shlex.quote(value)}' for key, value in env.items())
        inner = f'echo $$ >{self.base}.pid; exec env {words} {command}'
        guest.run(f'{{ sh -c {shlex.quote(inner)} >{self.base}.out 2>{self.base}.err </dev/null; '
                  f'echo $? >{self.base}.status; }} >/dev/null 2>&1 &')

    def _file(self, kind):
        return self.guest.run(f'cat {self.base}.{kind} 2>/dev/null || true')

    @property
    def out(self):
        return self._file('out')

    @property
    def err(self):
        return self._file('err')

    def status(self):
        """Its exit code; None while it runs."""
        text = self._file('status')
        return int(text) if text else None

    def wait(self, timeout):
        wait_until(lambda: self.status() is not None, timeout, f'the end of {self.command}', pause=0.2)
        return self.status()

    def wait_for(self, text, timeout):
        def look():
            return text in self.out or self.status() is not None
        wait_until(look, timeout, f'"{text}" from {self.command}', pause=0.2)
        assert text in self.out, f'ended without "{text}": {self}'

    def signal(self, name):
        self.guest.run(f'kill -{name} $(cat {self.base}.pid)')

    def end(self):
        if self.status() is None:
            self.signal('KILL')
            self.wait(10)

    def __str__(self):
        return (f'in guest {self.guest.number}: {self.command}\n  exit code: {self.status()}'
                f'\n--- out ---\n{self.out}\n--- err ---\n{self.err}')

    __repr__ = __str__


class Guest:
    """One emulated machine with a PCI device for DPDK."""

    def __init__(self, number, image, device, nets, directory):
        """`nets` are the arguments of the two networks: that of the device, that of the kernel."""
        self.number = number
        self.count = 0
        self.tasks = []
        self.console = directory / f'console{number}'
        shell, monitor = directory / f'shell{number}', directory / f'qmp{number}'
        self.process = Process([
            'qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
            '-machine', 'q35', '-accel', 'tcg', '-cpu', 'max', '-m', '512',
            '-kernel', str(image[0]), '-initrd', str(image[1]), '-append',
            f'console=ttyS0 panic=-1 quiet no_timer_check nowatchdog intel_iommu=on hugepages=140 PMF_GUEST={number}',
            '-device', 'intel-iommu', '-netdev', f'{nets[0]},id=nic', '-device', f'{device},netdev=nic,addr=0x10',
            '-netdev', f'{nets[1]},id=ctl', '-device', f'e1000,netdev=ctl,addr=0x11,mac=52:54:00:0c:00:0{number}',
            '-serial', f'file:{self.console}', '-serial', f'unix:{shell},server=on,wait=off',
            '-qmp', f'unix:{monitor},server=on,wait=off'], None, directory)
        self.sockets = []
        try:
            self.shell = self._connect(shell)
            self.monitor = self._connect(monitor).makefile('rw', encoding='utf-8')
            self.monitor.readline()  # its greeting
            self.qmp('qmp_capabilities')
        except BaseException:
            self.end()
            raise

    def _connect(self, path):
        def attempt():
            assert self.process.running(), str(self.process)
            try:
                sock.connect(str(path))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            return True
        sock = socket.socket(socket.AF_UNIX)
        self.sockets.append(sock)
        wait_until(attempt, 10, f'QEMU makes {path}')
        return sock

    def qmp(self, command, **arguments):
        self.monitor.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
        self.monitor.flush()
        for line in self.monitor:
            answer = json.loads(line)
            if 'event' not in answer:
                assert 'return' in answer, f'{command}: {line}'
                return answer['return']
        raise AssertionError(f'{command}: QEMU is gone: {self.process}')

    def link(self, up):
        """The device's cable."""
        self.qmp('set_link', name='nic', up=up)

    def _read(self, until, timeout):
        """What the guest's shell prints up to a line that matches."""
        self.shell.settimeout(timeout * SLOWER)
        data = b''
        while not (found := re.search(until, data)):
            try:
                more = self.shell.recv(65536)
            except TimeoutError:
                more = b''
            assert more, f'no answer from guest {self.number}: {data!r}\n{self.console.read_text()[-4000:]}'
            data += more
        return data[:found.start()].decode(errors='replace'), found

    def ready(self):
        """Waits until it has booted, and gives the device to VFIO as dpdk-devbind.py does."""
        self._read(rb'ready\n', 60)
        device = f'/sys/bus/pci/devices/{NIC}'
        self.run(f'echo vfio-pci >{device}/driver_override && echo {NIC} >/sys/bus/pci/drivers_probe && '
                 f'[ -e {device}/driver/{NIC} ]')

    def run(self, command, timeout=30, check=True):
        """One line for its shell; what it printed."""
        self.count += 1
        self.shell.sendall(f'{self.count} {command}\n'.encode())
        out, found = self._read(rb'\n%d=(\d+)\n' % self.count, timeout)
        assert not check or found[1] == b'0', f'in guest {self.number}: {command}: {found[1]}\n{out}'
        return out

    def start(self, command, env=None):
        """`pmf-run pci COMMAND` in the background, with this guest's address."""
        env = {'PMF_PCI': NIC, 'PMF_ADDR': f'{self.address}/24', 'PMF_BUILD': '/pmf/build', **(env or {})}
        task = Task(self, len(self.tasks), f'/pmf/usertools/pmf-run pci {command}', env)
        self.tasks.append(task)
        return task

    @property
    def address(self):
        return f'192.0.2.{self.number}'

    @property
    def control(self):
        return f'10.98.0.{self.number}'

    def telemetry(self, command):
        """What a running program answers to a command of DPDK's telemetry."""
        def ask():
            answer = json.loads(self.run(self.telemetry_words(command), 60))
            assert answer or any(task.status() is None for task in self.tasks), f'nobody to ask: {self.tasks}'
            return answer
        return wait_until(ask, 60, f'an answer to {command}', pause=0.2)[command.split(',')[0]]

    @staticmethod
    def telemetry_words(command):
        return f'{PYTHON} -I -S /pmf/dts/telemetry.py /var/run/dpdk/rte {command}'

    def port_stats(self):
        return next(one for one in self.telemetry('/pmf/stats').values() if one['object'] == 'port')

    def retransmitted(self):
        """Packets that were sent again."""
        return sum(one['tx_retrans'] for one in self.telemetry('/pmf/peers').values())

    def link_status(self):
        """UP or DOWN, as the device says."""
        return self.telemetry('/ethdev/link_status,0')['status']

    def listens(self, port):
        """Whether a program listens on that TCP port."""
        return f':{port:04X} 00000000:0000 0A' in self.run('cat /proc/net/tcp')

    def look(self):
        """What can be said of a run that went wrong."""
        questions = '/pmf/stats', '/pmf/peers', '/ethdev/xstats,0', '/ethdev/link_status,0'
        return '\n'.join(self.run(self.telemetry_words(question), 60, check=False) for question in questions)

    def end_tasks(self):
        for task in self.tasks:
            task.end()

    def end(self):
        for sock in self.sockets:
            sock.close()
        self.process.end()
