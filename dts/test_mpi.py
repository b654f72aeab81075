# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Open MPI, as Debian ships it, between two ranks on config/bridge.env: one file for all ranks."""

import os
import shutil

import pytest

from conftest import PROVIDER

MPIRUN = ['mpirun', '--oversubscribe', '-np', '2', '-x', 'FI_PROVIDER_PATH', '-x', 'FI_PMF_PORT',
          '-x', 'FI_PMF_HUGEPAGES', '-x', 'FI_LOG_LEVEL', '-x', 'FI_LOG_PROV', '--mca', 'pml', 'ob1', '--mca', 'btl', 'ofi,self', '--mca',
           'btl_ofi_mode', '1', '--mca', 'btl_ofi_provider_include', PROVIDER]


@pytest.fixture
def mpirun(make_link, pmf_run, tmp_path):
    """Runs an MPI program on two ranks; returns its process when it has ended well."""
    if PROVIDER != 'pmf':
        pytest.skip('the ranks have only pmf in common')
    if not shutil.which('mpirun'):
        pytest.skip('Open MPI is not installed')
    end = make_link('bridge').ends[0]
    # The rank comes from Open MPI alone.
    end.env.pop('PMI_RANK')
    # What the provider warns of is what a failure is understood by.
    env = {'HOME': str(tmp_path), 'FI_LOG_LEVEL': 'warn', 'FI_LOG_PROV': PROVIDER}
    root = ['--allow-run-as-root'] if os.geteuid() == 0 else []

    def run(*program, timeout):
        process = pmf_run(end, *MPIRUN, *root, *program, env=env)
        assert process.wait(timeout) == 0, str(process)
        return process
    return run


def test_netpipe(mpirun, tmp_path):
    """NetPIPE goes through the sizes up to 1 MB and prints a row for each."""
    result = tmp_path / 'np.out'
    mpirun('NPopenmpi', '-u', '1048576', '-n', '3', '-o', result, timeout=120)
    rows = [line.split() for line in result.read_text().splitlines()]
    assert len(rows) > 60 and int(rows[-1][0]) >= 1 << 20, rows


def test_netpipe_integrity(mpirun):
    """The same with every byte checked."""
    process = mpirun('NPopenmpi', '-i', '-u', '65536', '-n', '5', timeout=120)
    assert 'failed' not in (process.out + process.err).lower(), str(process)


def test_mpi4py_ringtest(mpirun):
    process = mpirun('/usr/bin/python3', '-m', 'mpi4py.bench', 'ringtest', '-n', '65536',
                     '-l', '100', timeout=120)
    assert '2 processes, 65536 bytes' in process.out, str(process)
