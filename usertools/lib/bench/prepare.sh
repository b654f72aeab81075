# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# What usertools/bench has made for it before it measures: packages, build, hugepages. Runs as long as
# its standard input stays open, so that the hugepages go back however the bench ends.
# Usage: bash prepare.sh ROOT BUILD?  ("build": build ROOT/build first; "": it is there)
set -u

root=$1
# shellcheck source=usertools/lib/common.sh
. "$root/usertools/lib/common.sh"
# shellcheck source=usertools/lib/hugepages.sh
. "$root/usertools/lib/hugepages.sh"
# shellcheck source=usertools/lib/build.sh
. "$root/usertools/lib/build.sh"

undo_on_exit
install_packages "${build_packages[@]}" dpdk-dev gnuplot-nox iproute2 util-linux ||
	warn "going on with what is here"
[ "$2" != build ] || build_tree "$root"
if hugepages_reserve 512; then
	echo "ready on"
else
	echo "ready off"
fi
read -r _
