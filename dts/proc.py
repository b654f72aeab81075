# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Processes that a test starts, watches and ends; none outlives its test."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time


# A limit ends a hang, it does not judge speed. Tests name what a quiet machine needs, with room; one that is ten
# times slower still passes.
SLOWER = 10
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_the_tests():
    """For the child: killed when this process is gone, even if it could not clean up.

    A shell starts what runs in the background with SIGINT ignored, which children inherit.
    """
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(condition, timeout, what, pause=0.01):
    """Waits until `condition()` is true and returns its value; fails with `what` after `timeout` s,
    ten times as on a quiet machine."""
    timeout *= SLOWER
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f'{what}: not within {timeout} s')
        time.sleep(pause)  # the pause between two looks, not a wait for an amount of time


class Process:
    """One program with its output in files, so that a full pipe never holds it up."""

    def __init__(self, command, env, directory):
        self.command = command
        self.out_file = tempfile.TemporaryFile()
        self.err_file = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                                      stdout=self.out_file, stderr=self.err_file,
                                      cwd=directory, start_new_session=True,
                                      preexec_fn=_die_with_the_tests)

    @property
    def pid(self):
        return self.popen.pid

    @staticmethod
    def _text(file):
        return os.pread(file.fileno(), 1 << 24, 0).decode(errors='replace')

    @property
    def out(self):
        return self._text(self.out_file)

    @property
    def err(self):
        return self._text(self.err_file)

    def running(self):
        return self.popen.poll() is None

    def wait(self, timeout):
        """The exit code; a process that does not end in time fails the test with what it printed."""
        timeout *= SLOWER
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'still running after {timeout} s: {self}') from None

    def wait_for(self, text, timeout):
        """Waits until its standard output holds `text`."""
        def look():
            return text in self.out or not self.running()
        wait_until(look, timeout, f'"{text}" from {self}')
        assert text in self.out, f'ended without "{text}": {self}'

    def signal(self, number):
        self.popen.send_signal(number)

    def end(self):
        """Kills it and what it started. For the end of a test."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()
        self.out_file.close()
        self.err_file.close()

    def __str__(self):
        return (f'{" ".join(self.command)}\n  exit code: {self.popen.poll()}'
                f'\n--- out ---\n{self.out}\n--- err ---\n{self.err}')

    __repr__ = __str__  # what an assertion prints


class Runner:
    """Starts processes, and ends those that are left."""

    def __init__(self):
        self.processes = []
        # Some programs leave files where they run.
        self.directory = tempfile.TemporaryDirectory(prefix='pmf-')
        os.chmod(self.directory.name, 0o777)

    def start(self, command, env=None):
        """`env` is added to a plain environment: a test does not depend on the caller's FI_*."""
        plain = {k: v for k, v in os.environ.items()
                 if not k.startswith(('FI_', 'PMF_', 'OMPI_', 'LD_'))}
        process = Process([str(word) for word in command], {**plain, **(env or {})},
                          self.directory.name)
        self.processes.append(process)
        return process

    def run(self, command, env=None, timeout=30):
        """Runs to the end. The exit code is the caller's to judge."""
        process = self.start(command, env)
        process.wait(timeout)
        return process

    def end(self):
        for process in reversed(self.processes):
            process.end()
        self.processes.clear()
        self.directory.cleanup()


def listens(port, net=()):
    """Whether somebody listens on that TCP port, in the namespace that the words of `net` enter."""
    text = subprocess.run([*net, 'cat', '/proc/net/tcp', '/proc/net/tcp6'], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return any(len(words) > 3 and words[3] == '0A' and words[1].endswith(f':{port:04X}')
               for words in map(str.split, text.splitlines()))
