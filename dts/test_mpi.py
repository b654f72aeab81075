# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Open MPI and programs for it, as Debian ships them, on config/bridge.env: one file for all ranks."""

import os
import pathlib
import re
import shutil

import pytest

from conftest import PROVIDER

MPIRUN = ['mpirun', '--oversubscribe', '-x', 'FI_PROVIDER_PATH', '-x', 'FI_PMF_PORT', '-x', 'FI_PMF_HUGEPAGES',
          '-x', 'FI_LOG_LEVEL', '-x', 'FI_LOG_PROV', '--mca', 'pml', 'ob1', '--mca', 'btl', 'ofi,self',
          '--mca', 'btl_ofi_mode', '1', '--mca', 'btl_ofi_provider_include', PROVIDER]


@pytest.fixture
def mpirun(make_link, pmf_run, tmp_path):
    """Runs an MPI program on `ranks` ranks; returns its process when it has ended well."""
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

    def run(*program, timeout, ranks=2):
        process = pmf_run(end, *MPIRUN, '-np', ranks, *root, *program, env=env)
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


@pytest.mark.parametrize('ranks', (2, 4))
def test_mpi4py_ringtest(mpirun, ranks):
    process = mpirun('/usr/bin/python3', '-m', 'mpi4py.bench', 'ringtest', '-n', '65536',
                     '-l', '20', timeout=120, ranks=ranks)
    assert f'{ranks} processes, 65536 bytes' in process.out, str(process)


@pytest.mark.parametrize('ranks', (2, 4))
def test_mpi4py_helloworld(mpirun, ranks):
    """Every rank speaks in turn, by a token that goes round."""
    process = mpirun('/usr/bin/python3', '-m', 'mpi4py.bench', 'helloworld', timeout=120, ranks=ranks)
    for rank in range(ranks):
        assert f'I am process {rank} of {ranks} ' in process.out, str(process)


# Debian's example input for HPCC, made small: lines by their name at the end.
HPCC_SMALL = {'Ns': '64', 'NBs': '16', 'Ps': '1', 'Qs': None}


@pytest.mark.long
@pytest.mark.parametrize('ranks', (2, 4))
def test_hpcc(mpirun, runner, ranks):
    """HPC Challenge: collectives, transposes, random access, all-to-all of FFTs, latency and bandwidth."""
    example = pathlib.Path('/usr/share/doc/hpcc/examples/_hpccinf.txt')
    if not shutil.which('hpcc') or not example.exists():
        pytest.skip('hpcc is not installed')
    lines = example.read_text().splitlines()
    for name, value in HPCC_SMALL.items():
        at = next(i for i, line in enumerate(lines) if line.split()[1:] == [name])
        lines[at] = f'{value or ranks} {name}'
    directory = pathlib.Path(runner.directory.name)
    (directory / 'hpccinf.txt').write_text('\n'.join(lines) + '\n')
    mpirun('hpcc', timeout=900, ranks=ranks)
    report = (directory / 'hpccoutf.txt').read_text()
    assert re.search(r'^Success=1$', report, re.M) and 'FAILED' not in report, report


# A Lennard-Jones melt: the atoms that cross a rank's border travel every step.
MELT = """units lj
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 50
run 250
"""


@pytest.mark.long
@pytest.mark.parametrize('ranks', (2, 4))
def test_lammps_melt(mpirun, runner, ranks):
    if not shutil.which('lmp'):
        pytest.skip('lammps is not installed')
    (pathlib.Path(runner.directory.name) / 'in.melt').write_text(MELT)
    process = mpirun('lmp', '-in', 'in.melt', timeout=900, ranks=ranks)
    # Step, Temp, E_pair, E_mol, TotEng, Press: the total energy stays what it was.
    rows = [line.split() for line in process.out.splitlines()]
    energy = [float(row[4]) for row in rows if len(row) == 6 and row[0].isdigit()]
    assert len(energy) == 6 and max(energy) - min(energy) < 0.01, str(process)
