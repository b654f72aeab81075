# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The lanes of every run: the build that users get, its suites from cheap to dear, what it installs,
# and the whole system over real links.

# For the suites, and what programs of others they run besides.
suite_packages=("${build_packages[@]}" libcunit1-dev python3-pytest iproute2 iputils-ping procps
	util-linux)
test_packages=("${suite_packages[@]}" dpdk-dev gnuplot-nox openmpi-bin netpipe-openmpi
	python3-mpi4py)

lane_packages()
{
	# Without root or apt the lanes that follow show what is missing; that is no failure here.
	install_packages "${test_packages[@]}" || skip "packages are missing"
}

lane_build()
{
	step build plain "$(werror gcc)"
}

lane_lint() { suite plain lint; }
lane_unit() { suite plain unit; }
lane_sim() { suite plain sim; }
lane_fuzz() { suite plain fuzz; }

# These poll with two threads or two processes each: one at a time, or they time each other.
lane_prov()
{
	suite plain prov --num-processes 1
	suite plain walk --num-processes 1
}
lane_mp() { suite plain mp --num-processes 1; }
lane_model() { suite plain model --num-processes 1; }

# Without those that mostly wait for peers to count as dead, which is the same on every system.
lane_prov_short() { suite plain prov --num-processes 1 --no-suite waits; }

# Everything lands where libfabric, man and pkg-config look for it.
lane_install()
{
	local dest=$builds/dest libdir

	libdir=$(pkg-config --variable=libdir libfabric)
	rm -rf "$dest"
	DESTDIR=$dest meson install -C "$builds/plain" --no-rebuild >"$PMF_LOGS/install.log" 2>&1 || {
		tail -n 20 "$PMF_LOGS/install.log" >&2
		return 1
	}
	step test -f "$dest$libdir/libfabric/libpmf-fi.so"
	step exports_only_fi_prov_ini "$dest$libdir/libfabric/libpmf-fi.so"
	step test -n "$(find "$dest" -name pmf-perf -perm -u+x -print -quit)"
	step test -n "$(find "$dest" -name pmf-wire -perm -u+x -print -quit)"
	step test -n "$(find "$dest" -name 'fi_pmf.7*' -print -quit)"
	step test -n "$(find "$dest" -name 'pmf.pc' -print -quit)"
}

exports_only_fi_prov_ini()
{
	[ "$(nm -D --defined-only "$1" | awk '{print $NF}' | sed 's/@.*//' | sort -u)" = fi_prov_ini ]
}

lane_dts() { dts plain dts -m 'not long and not qemu'; }

# Two processes on the links that differ most, and one killed in the middle.
lane_dts_short()
{
	dts plain dts-short -m 'not long' \
		-k 'test_pingpong and (vhost or memif or af_packet) or test_kill_in_the_middle and vhost'
}

# Runs pytest over dts/ with build directory $1, its results under the name $2.
dts()
{
	local build=$1 name=$2 status=0

	shift 2
	rm -f "$PMF_LOGS/$name.xml"
	# The machine's own Python, which is the one that apt gave pytest to.
	PMF_BUILD=$builds/$build PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q -rfE \
		-p no:cacheprovider -o junit_family=xunit1 --junitxml "$PMF_LOGS/$name.xml" "$root/dts" "$@" \
		>"$PMF_LOGS/$name.log" 2>&1 </dev/null || status=$?
	if [ ! -s "$PMF_LOGS/$name.xml" ]; then
		tail -n 40 "$PMF_LOGS/$name.log" >&2
		return 1
	fi
	tail -n $((status == 0 ? 3 : 150)) "$PMF_LOGS/$name.log"
	tally pytest "$PMF_LOGS/$name.xml"
	return "$status"
}

# The tests between emulated guests, as $1. Without QEMU they say so and are skipped.
guests()
{
	install_packages qemu-system-x86
	dts plain "$1" -m qemu "${@:2}"
}
