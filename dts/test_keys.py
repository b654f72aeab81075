# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Authorization keys between two processes: same ones, encrypted or not, and different ones."""

import pytest

from conftest import PROVIDER
from proc import listens, wait_until
from test_pingpong import ROW, check_rows

pytestmark = pytest.mark.skipif(PROVIDER != 'pmf', reason='a parameter of pmf')

# What fi_pingpong -c fills its messages with.
PLAIN = b'0123456789abcdefghijklmnopqrstuvwxyz'


@pytest.fixture
def key_file(run_dir):
    """Writes keys, and gives the variable that names their file."""
    def write(name, *keys):
        path = f'{run_dir}/{name}'
        with open(path, 'w', encoding='ascii') as file:
            file.writelines(key + '\n' for key in keys)
        return {'FI_PMF_AUTH_KEY_FILE': path}
    return write


def start(link, pmf_run, port, env_a, env_b, *options):
    """Both ends of fi_pingpong, each with an environment of its own."""
    a, b = link.ends
    program = ['fi_pingpong', '-p', PROVIDER, '-c', *options]
    server = pmf_run(a, *program, '-B', port, env=env_a)
    wait_until(lambda: listens(port, a.net) or not server.running(), 20, 'the server listens')
    return server, pmf_run(b, *program, '-P', port, a.control, env=env_b)


def check_both(processes):
    for process in processes:
        assert process.wait(120) == 0, '\n'.join(map(str, processes))
    check_rows(processes)


@pytest.mark.parametrize('kind', ('rdm', 'msg'))
@pytest.mark.parametrize('encrypt', (0, 1))
def test_every_size_and_byte(kind, encrypt, make_link, pmf_run, free_port, key_file, run_dir):
    """Under one key; who watches the wire reads the messages, or does not."""
    capture = f'{run_dir}/frames.pcapng'
    env = {**key_file('keys', 'a1' * 32), 'FI_PMF_ENCRYPT': str(encrypt)}
    check_both(start(make_link('vhost'), pmf_run, free_port, {**env, 'FI_PMF_CAPTURE': capture},
                     env, '-e', kind, '-S', 'all'))
    with open(capture, 'rb') as file:
        frames = file.read()
    assert len(frames) > 100000
    assert (PLAIN in frames) == (not encrypt)


@pytest.mark.parametrize('kind', ('rdm', 'msg'))
def test_different_keys(kind, make_link, pmf_run, free_port, key_file):
    """Nothing is received, and the log says what to look for. (fi_pingpong itself waits on for an
    answer, whatever becomes of what it has sent.)"""
    common = {'FI_PMF_PEER_TIMEOUT_MS': '1500', 'FI_LOG_LEVEL': 'warn'}
    server, client = start(make_link('vhost'), pmf_run, free_port,
                           {**common, **key_file('a', 'a1' * 32)},
                           {**common, **key_file('b', 'b2' * 32)}, '-e', kind, '-S', '64')
    wait_until(lambda: 'authorization key' in client.err + client.out, 60, str(client))
    assert 'FI_PMF_AUTH_KEY_FILE' in client.err + client.out, str(client)
    assert not ROW.search(client.out + server.out), f'{server}\n{client}'


def test_old_and_new_key(make_link, pmf_run, free_port, key_file):
    """One host has rolled its keys already, the other has not: all that they share will do."""
    check_both(start(make_link('vhost'), pmf_run, free_port,
                     key_file('a', 'a1' * 32, 'b2' * 32), key_file('b', 'b2' * 32, 'a1' * 32),
                     '-e', 'rdm', '-S', 'all'))
