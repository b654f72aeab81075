# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# What quickstart and test share: words to the user, packages, and undoing on the way out.

say()
{
	echo "==> $*"
}

warn()
{
	echo "    note: $*" >&2
}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

is_root()
{
	[ "$(id -u)" = 0 ]
}

# Undo steps run in reverse order, once, however the script ends.
undo_steps=()

undo_later()
{
	undo_steps=("$*" "${undo_steps[@]}")
}

undo_all()
{
	local step

	for step in "${undo_steps[@]}"; do
		eval "$step"
	done
	undo_steps=()
}

# Ctrl-C and kill undo as well, and end with the exit code that a shell expects of them.
undo_on_exit()
{
	trap undo_all EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# Names of the packages among $@ that are not installed.
packages_missing()
{
	local name

	for name in "$@"; do
		dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' ||
			echo "$name"
	done
}

# The same software as Fedora and RHEL-likes (with EPEL and CRB) name it, for who has no apt.
dnf_names()
{
	local name

	for name in "$@"; do
		case $name in
		gcc | meson | clang | procps) echo "$name" ;;
		iproute2) echo iproute ;;
		iputils-ping) echo iputils ;;
		ninja-build | util-linux) echo "$name" ;;
		pkg-config) echo pkgconf-pkg-config ;;
		libdpdk-dev) echo dpdk-devel ;;
		dpdk-dev) echo dpdk-tools ;;
		gnuplot-nox) echo gnuplot ;;
		libfabric-dev) echo libfabric-devel ;;
		libfabric-bin) echo libfabric ;;
		libssl-dev) echo openssl-devel ;;
		libcunit1-dev) echo CUnit-devel ;;
		python3-pytest) echo python3-pytest ;;
		openmpi-bin) echo openmpi-devel ;;
		netpipe-openmpi) echo NetPIPE-openmpi ;;
		python3-mpi4py) echo python3-mpi4py-openmpi ;;
		libclang-rt-*) echo compiler-rt ;;
		clang-format*) echo clang-tools-extra ;;
		esac
	done
}

# Installs what is missing of $@. Returns 1, having said what is wanted, where that is not possible.
install_packages()
{
	local missing

	if ! command -v apt-get >/dev/null; then
		warn "no apt-get here; wanted (dnf names): $(dnf_names "$@" | tr '\n' ' ')"
		return 1
	fi
	missing=$(packages_missing "$@" | tr '\n' ' ')
	[ -n "${missing// /}" ] || return 0
	if ! is_root; then
		warn "not root, so these are not installed: apt-get install $missing"
		return 1
	fi
	# shellcheck disable=SC2086  # a list of words
	apt_install $missing
}

# Installs or upgrades $@, as root, whoever else holds dpkg's lock just now.
apt_install()
{
	local log=${PMF_LOGS:-/tmp}/apt-$$.log

	say "installing $*"
	export DEBIAN_FRONTEND=noninteractive
	if { apt-get -o DPkg::Lock::Timeout=600 update -q &&
		apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends "$@"; } \
		>"$log" 2>&1 </dev/null; then
		rm -f "$log"
		return 0
	fi
	tail -n 20 "$log" >&2
	warn "installing failed; the whole of it is in $log"
	return 1
}

# fi_info and fi_pingpong are in libfabric-bin: the README's next steps.
build_packages=(gcc meson ninja-build pkg-config libdpdk-dev libfabric-dev libfabric-bin libssl-dev)
