# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The lanes of --long: what takes too long for every change, run by hand.

# PMF_LONG is read by the tests themselves: more messages, more kills, more seeds.
lane_sim_long()
{
	PMF_LONG=1 suite plain sim --timeout-multiplier 60
}

# A hundred million messages, each verified, over a thousand wires that their seeds draw.
lane_sim_seeds()
{
	step "$builds/plain/test/sim/pmf-sim" --seeds 1000 --seed 1 --messages 100000 --jobs "$(nproc)"
}

# Four hundred thousand programs, from seeds that nobody has tried.
lane_model_long()
{
	PMF_LONG=1 suite plain model --num-processes 1 --timeout-multiplier 20
}

lane_prov_long()
{
	PMF_LONG=1 suite plain prov --num-processes 1 --timeout-multiplier 20
}

lane_mp_long()
{
	PMF_LONG=1 suite plain mp --num-processes 1 --timeout-multiplier 60
}

# The pci configuration in emulated guests. Their kernel and busybox come from apt, into build-test/guest.
lane_qemu() { guests qemu; }

lane_dts_long()
{
	install_packages hpcc lammps || skip "packages are missing"
	PMF_LONG=1 dts plain dts-long -m 'long and not soak'
}

# Two processes that talk without end, through changing faults, kills and restarts; PMF_SOAK: seconds.
lane_soak_long()
{
	PMF_SOAK=${PMF_SOAK:-3600} dts plain soak-long -m soak
}
