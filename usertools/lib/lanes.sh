# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The lanes of usertools/test and how one is run. A lane is a function lane_NAME; it calls count with
# what it tested, and returns non-zero when something other than a counted test went wrong.

passed=0 failed=0 skipped=0
lane_times=()

# What failed and why, a few lines each, for the end of the run: who sees a record of it cut in the middle has
# them all the same.
failures=()

failure()
{
	echo "FAILED: $*" >&2
	failures+=("$lane: $*")
}

# Adds "PASSED FAILED SKIPPED" to the sums; a lane that tested nothing is a failure of its own.
count()
{
	# shellcheck disable=SC2086  # three words
	set -- $1
	if [ $# -ne 3 ] || [ $(($1 + $2 + $3)) = 0 ]; then
		failure "no test was run"
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
		failure "$@"
		count "0 1 0"
		return 1
	fi
}

# Seconds that processors have worked for what this shell has started and seen end.
cpu_seconds()
{
	local stat

	read -ra stat </proc/$$/stat
	echo $(((stat[15] + stat[16]) / $(getconf CLK_TCK)))
}

run_lane()
{
	local start cpu before=$failed

	lane=$1 lane_failed=0
	say "lane $lane"
	start=$(date +%s) cpu=$(cpu_seconds)
	if ! "lane_$lane" && [ "$failed" = "$before" ]; then
		failure "the lane itself"
		failed=$((failed + 1))
	fi
	lane_times+=("$(printf '%-14s %4d s, %4d of processors%s' "$lane" $(($(date +%s) - start)) \
		$(($(cpu_seconds) - cpu)) \
		"$([ "$failed" = "$before" ] || echo '   FAILED')")")
}

# The script again, with lanes $@ of its own, in a process group that can be ended as one.
beside_pid=
beside_start()
{
	set -m
	nice "$root/usertools/test" "$@" >"$PMF_LOGS/beside.log" 2>&1 </dev/null &
	beside_pid=$!
	set +m
	undo_later beside_stop
	say "beside the lanes that follow: $*"
}

beside_stop()
{
	[ -n "$beside_pid" ] || return 0
	kill -TERM -- "-$beside_pid" 2>/dev/null
	wait "$beside_pid"
	beside_pid=
}

# Waits for the lanes that run beside, shows what they said and adds what they counted.
lane_beside()
{
	local log=$PMF_LOGS/beside.log rows

	[ -n "$beside_pid" ] || return 1
	wait "$beside_pid"
	beside_pid=
	sed 's/^/    /' "$log"
	mapfile -t rows < <(grep -E '^[a-z0-9_]+ +[0-9]+ s, ' "$log" | grep -v '^all ')
	lane_times+=("${rows[@]/%/, beside}")
	count_from "$log"
}

# Adds what another run of the script says in the last line of its log $1.
count_from()
{
	mapfile -t -O ${#failures[@]} failures < <(sed -n '/^Failed:$/,/^$/ s/^    //p' "$1")
	count "$(tail -n 1 "$1" | awk '/^[0-9]+ passed, / { print $1, $3, $5 + 0 }')"
}

# Adds what the results of kind $1 in file $2 say.
tally()
{
	local said

	said=$(mktemp) || return 1
	count "$(/usr/bin/python3 "$lib/tally.py" "$1" "$2" 2>"$said")"
	[ ! -s "$said" ] || failure "$(cat "$said")"
	rm -f "$said"
}

# Configures (or configures again) build directory $1 with the meson options that follow, and builds it:
# all, or what the tests of each `--suite NAME` need, or each `--target NAME`, which stand before them.
# Silent when all is well, since only the warnings and errors are of interest.
build()
{
	local dir=$builds/$1 log=$PMF_LOGS/build-$1.log suites=() targets=()

	shift
	while :; do
		case ${1:-} in
		--suite) suites+=("$2") ;;
		--target) targets+=("$2") ;;
		*) break ;;
		esac
		shift 2
	done
	if {
		if [ -f "$dir/build.ninja" ]; then
			meson configure "$dir" "$@"
		else
			rm -rf "$dir" && meson setup "$dir" "$root" "$@"
		fi && build_targets
	} >"$log" 2>&1 </dev/null; then
		return 0
	fi
	grep -E -A3 '[^w]error:|ERROR:|FAILED:' "$log" | head -n 60 >&2
	echo "the whole of it: $log" >&2
	return 1
}

# The second half of build. Ninja first makes its rules anew where they are old, which are then looked at.
build_targets()
{
	local needed

	if [ ${#suites[@]} -gt 0 ]; then
		ninja -C "$dir" build.ninja || return 1
		needed=$(/usr/bin/python3 "$lib/targets.py" "$dir" "${suites[@]}") || return 1
		mapfile -t -O ${#targets[@]} targets <<<"$needed"
	fi
	ninja -C "$dir" "${targets[@]}"
}

# Warnings are errors with the compilers by which the tree is kept clean, clang up to Debian 12's and gcc up to
# Debian 13's, which are both 14; newer ones warn of more with every release, and that shall stop nobody. $1 is
# the compiler.
werror()
{
	local version

	version=$("$1" -dumpversion | cut -d. -f1)
	[ "$version" -le 14 ] && echo -Dwerror=true || echo -Dwerror=false
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
	tally meson "$log.json"
	grep -E '^ *[0-9]+/[0-9]+ ' "$log.log"
	# What a failed test printed stands in the log, between meson's rules; enough of it to go by.
	[ "$lane_failed" = 0 ] || grep -vE '^ *[0-9]+/[0-9]+ ' "$log.log" | tail -n 120 >&2
	[ "$lane_failed" = 0 ] || return 1
	lane_failed=$before
}
