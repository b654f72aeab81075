# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The build that quickstart and bench run: build/, without the tests.

# Builds tree $1. A build directory that is there is used as it is, with the options it was made with.
build_tree()
{
	local root=$1 log

	log=$(mktemp) || exit 1
	undo_later "rm -f '$log'"
	if [ ! -f "$root/build/build.ninja" ] &&
		! meson setup "$root/build" "$root" --buildtype=release -Dtests=false >"$log" 2>&1; then
		cat "$log" >&2
		die "meson could not configure the build"
	fi
	if [ -t 1 ]; then
		# On a terminal ninja shows its progress in one line.
		ninja -C "$root/build" || die "the build failed"
	elif ! ninja -C "$root/build" >"$log" 2>&1; then
		grep -A5 -E 'error:|FAILED:' "$log" >&2
		die "the build failed"
	fi
}
