# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The lanes of usertools/test and how one is run. A lane is a function lane_NAME; it calls count with
# what it tested, and returns non-zero when something other than a counted test went wrong.

passed=0 failed=0 skipped=0
lane_times=()

# Adds "PASSED FAILED SKIPPED" to the sums; a lane that tested nothing is a failure of its own.
count()
{
	# shellcheck disable=SC2086  # three words
	set -- $1
	if [ $# -ne 3 ] || [ $(($1 + $2 + $3)) = 0 ]; then
		echo "$lane: no test was run" >&2
		failed=$((failed + 1))
		return 1
	fi
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
	[ "$2" = 0 ] || lane_failed=1
}

# What cannot be tested here: why, in words, and one in the sum.
skip()
{
	warn "skipped: $*"
	skipped=$((skipped + 1))
}

# A step that is no test case of its own: one case, passed or failed.
step()
{
	if "$@"; then
		count "1 0 0"
	else
		echo "FAILED: $*" >&2
		count "0 1 0"
		return 1
	fi
}

run_lane()
{
	local start before=$failed

	lane=$1 lane_failed=0
	say "lane $lane"
	start=$(date +%s)
	if ! "lane_$lane" && [ "$failed" = "$before" ]; then
		echo "lane $lane failed" >&2
		failed=$((failed + 1))
	fi
	lane_times+=("$(printf '%-14s %4d s%s' "$lane" $(($(date +%s) - start)) \
		"$([ "$failed" = "$before" ] || echo '   FAILED')")")
}

# Configures (or configures again) build directory $1 with the options that follow, and builds it.
# Silent when all is well, since only the warnings and errors are of interest.
build()
{
	local dir=$builds/$1 log=$PMF_LOGS/build-$1.log

	shift
	if {
		if [ -f "$dir/build.ninja" ]; then
			meson configure "$dir" "$@"
		else
			rm -rf "$dir" && meson setup "$dir" "$root" "$@"
		fi && ninja -C "$dir"
	} >"$log" 2>&1 </dev/null; then
		return 0
	fi
	grep -E -A3 '[^w]error:|ERROR:|FAILED:' "$log" | head -n 60 >&2
	echo "the whole of it: $log" >&2
	return 1
}

# Warnings are errors with the compilers by which the tree is kept clean, Debian 12's and gcc up to Debian
# 13's; newer ones warn of more with every release, and that shall stop nobody. $1 is the compiler.
werror()
{
	local version

	version=$("$1" -dumpversion | cut -d. -f1)
	case $1 in
	clang) [ "$version" -le 14 ] ;;
	*) [ "$version" -le 14 ] ;;
	esac && echo -Dwerror=true || echo -Dwerror=false
}

# Runs the meson suite $2 of build directory $1; options of meson test follow.
suite()
{
	local dir=$builds/$1 name=$2 log ending before=$lane_failed

	shift 2
	lane_failed=0
	log=$PMF_LOGS/$lane-$name
	# meson appends its own endings, and a wrapper's name before them; its exit code says what tally
	# reads below.
	rm -f "$dir/meson-logs/$lane-$name"[-.]* "$log".*
	meson test -C "$dir" --no-rebuild --suite "$name" --logbase "$lane-$name" \
		--print-errorlogs "$@" >"$log.log" 2>&1 </dev/null
	for ending in txt json junit.xml; do
		cp "$dir/meson-logs/$lane-$name"[-.]*"$ending" "$log.$ending" 2>/dev/null
	done
	if [ ! -s "$log.json" ]; then
		tail -n 20 "$log.log" >&2
		count "0 0 0"
		return 1
	fi
	count "$(/usr/bin/python3 "$lib/tally.py" meson "$log.json")"
	grep -E '^ *[0-9]+/[0-9]+ ' "$log.log"
	# What a failed test printed stands in the log, between meson's rules; enough of it to go by.
	[ "$lane_failed" = 0 ] || grep -vE '^ *[0-9]+/[0-9]+ ' "$log.log" | tail -n 120 >&2
	[ "$lane_failed" = 0 ] || return 1
	lane_failed=$before
}
