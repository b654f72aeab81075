# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# Reserves 2 MB hugepages for as long as a script runs, and gives back what was reserved and
# mounted. The kernel's counter is the one that says how many were to be had.

huge_pool=/sys/kernel/mm/hugepages/hugepages-2048kB

# Pages that this script added: subtracted at the end, since others may have reserved meanwhile.
huge_added=0

hugepages_give_back()
{
	local now

	now=$(cat $huge_pool/nr_hugepages)
	echo $((now > huge_added ? now - huge_added : 0)) >$huge_pool/nr_hugepages
}

# Makes $1 pages free. Returns 1, having said why, when that is not possible.
hugepages_reserve()
{
	local want=$1 free before now

	if [ ! -d $huge_pool ]; then
		warn "this kernel has no 2 MB hugepages"
		return 1
	fi
	free=$(cat $huge_pool/free_hugepages)
	if [ "$free" -lt "$want" ]; then
		if ! [ -w $huge_pool/nr_hugepages ] || ! is_root; then
			warn "only root can reserve hugepages ($free free, $want wanted)"
			return 1
		fi
		before=$(cat $huge_pool/nr_hugepages)
		# The debt is noted before it is made, so that a signal in between leaves nothing.
		huge_added=$((want - free))
		undo_later hugepages_give_back
		echo $((before + huge_added)) 2>/dev/null >$huge_pool/nr_hugepages
		huge_added=$(($(cat $huge_pool/nr_hugepages) - before))
		now=$(cat $huge_pool/free_hugepages)
		if [ "$now" -lt "$want" ]; then
			warn "memory is too full or fragmented for $want hugepages ($now free)"
			return 1
		fi
	fi
	hugetlbfs_mount
}

# DPDK looks for a hugetlbfs; systemd mounts one, a container or a bare machine may have none.
hugetlbfs_mount()
{
	grep -q ' hugetlbfs ' /proc/mounts && return 0
	if ! is_root; then
		warn "no hugetlbfs is mounted, and only root can mount one"
		return 1
	fi
	[ -d /dev/hugepages ] || { mkdir /dev/hugepages && undo_later "rmdir /dev/hugepages"; }
	undo_later "umount /dev/hugepages 2>/dev/null"
	mount -t hugetlbfs none /dev/hugepages || { warn "hugetlbfs cannot be mounted"; return 1; }
}
