# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The lanes that run this script's other lanes in a Debian 13 beside the machine's own system: newer
# DPDK, libfabric and gcc, whose warnings are errors. Its root directory lies in build-test/debian13, made
# from the package mirror that this machine's apt uses, and serves again as long as it is there (1.5 GB).

guest=$builds/debian13
guest_release=trixie

guest_packages=("${suite_packages[@]}")

# The system alone, for debian13 to find; that lane says what is wrong with it.
lane_debian13_root()
{
	guest_allowed && guest_make
	return 0
}

# For every change: what another DPDK, libfabric or compiler may break.
lane_debian13()
{
	guest_lanes build unit prov_short dts_short
}

# The whole suite.
lane_debian13_long()
{
	guest_packages=("${test_packages[@]}")
	guest_lanes build unit sim fuzz prov model mp install dts sim_long prov_long model_long mp_long \
		dts_long
}

# Runs lanes $@ in Debian 13 with guest_packages installed, and adds what they count.
guest_lanes()
{
	local log=$PMF_LOGS/$lane.log

	guest_allowed || { skip "a Debian 13 beside this system needs root and mount namespaces"; return 0; }
	if ! guest_make; then
		[ -z "$(guest_mirror)" ] || return 1
		skip "no package mirror answers for Debian 13"
		return 0
	fi
	in_guest /pmf/usertools/test "$@" 2>&1 </dev/null | tee "$log" | sed 's/^/    /'
	count_from "$log"
}

guest_allowed()
{
	is_root && unshare --mount --pid --fork true 2>/dev/null
}

# The first of apt's mirrors that has the release, or nothing. apt names them only once it has their lists;
# its own helper asks them, through its proxies.
guest_mirror()
{
	local uri answer status=1

	apt-get -o DPkg::Lock::Timeout=600 update -q >/dev/null 2>&1 </dev/null
	answer=$(mktemp -d) || return 1
	# shellcheck disable=SC2016  # apt's own variables
	while IFS= read -r uri; do
		/usr/lib/apt/apt-helper download-file "${uri%/}/dists/$guest_release/Release" \
			"$answer/Release" >/dev/null 2>&1 </dev/null &&
			grep -q '^Origin: Debian$' "$answer/Release" && echo "$uri" && status=0 && break
	done < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk '$2 !~ /-/ && $3 == "main" && !seen[$1]++ { print $1 }')
	rm -rf "$answer"
	return "$status"
}

# Makes sure of the root directory and of what is installed in it; one at a time.
guest_make()
{
	{ flock 9 && guest_make_locked 9>&-; } 9>"$builds/debian13.lock"
}

guest_make_locked()
{
	local mirror log=$PMF_LOGS/debian13-root.log

	if [ ! -d "$guest/root" ]; then
		mirror=$(guest_mirror) && apt_install debootstrap debian-archive-keyring || return 1
		say "making a Debian 13 in $guest/root"
		guest_bootstrap "$mirror" >"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; return 1; }
	fi
	# shellcheck disable=SC2016  # expanded over there
	in_guest bash -c 'dpkg --configure -a && cd /pmf/usertools/lib && root= builds= &&
		. ./common.sh && install_packages "$@"' bash "${guest_packages[@]}" \
		>>"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; return 1; }
}

# What debootstrap mounts is in a namespace of its own too. The name is the right one only at the end.
guest_bootstrap()
{
	local part=$guest/root.part

	mkdir -p "$guest" && rm -rf --one-file-system "$part" || return 1
	(
		eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
		export http_proxy https_proxy
		exec unshare --mount --propagation private debootstrap --variant=minbase "$guest_release" \
			"$part" "$1"
	) || return 1
	# A root directory that a power failure spoils is made anew: no waiting for the disk.
	echo force-unsafe-io >"$part/etc/dpkg/dpkg.cfg.d/unsafe-io"
	apt-config dump | grep -E '^Acquire::https?::Proxy' >"$part/etc/apt/apt.conf.d/80proxy"
	mv "$part" "$guest/root"
}

# Runs a command in Debian 13, with this tree as /pmf and a build-test of its own.
in_guest()
{
	mkdir -p "$guest/build-test" || return 1
	unshare --mount --pid --fork --kill-child --propagation private \
		"$lib/in-root" "$guest/root" "$root" "$guest/build-test" "$@"
}
