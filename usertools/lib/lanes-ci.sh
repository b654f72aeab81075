# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
# shellcheck shell=bash
#
# The lanes that --ci adds: the second compiler with its formatter, and the same suites under
# sanitizers.

ci_packages=(clang clang-format valgrind)

lane_ci_packages()
{
	install_packages "${ci_packages[@]}" || return 1
	# The fuzzers' and sanitizers' runtime has clang's own version in its package's name.
	install_packages "libclang-rt-$(clang_version)-dev"
}

clang_version()
{
	clang -dumpversion | cut -d. -f1
}

lane_clang()
{
	CC=clang step build clang "$(werror clang)" || return 1
	# Once more, since what proto's archive asks for is the compiler's choice too.
	suite clang lint
	suite clang unit
	suite clang sim
}

# What a message costs in instructions, against what is kept in test/guard/counts.json.
lane_guard() { suite plain guard; }

# Everything at once for two minutes, from a seed that nobody has tried; longer: soak_long.
lane_soak() { PMF_SOAK=120 dts plain soak -m soak; }

# Messages of every size between two emulated machines, through one PCI device; all of it: qemu.
lane_qemu_short() { guests qemu-short -k 'virtio and every_size'; }

# What is lost when a life ends, by valgrind.
lane_leaks() { suite plain leaks --num-processes 1; }

# No werror under sanitizers, whose code makes gcc warn of what is not there. The shadow lies where
# EAL would like its memory, which then goes elsewhere by itself. Leaks at exit are EAL's own, which
# never frees what it starts with.
lane_asan()
{
	step build asan --suite unit --suite sim --suite fuzz --suite prov --suite walk --suite mp --suite sample \
		--target test/prov/mortal_peer \
		-Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false || return 1
	export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	suite asan unit --timeout-multiplier 3
	suite asan sim --timeout-multiplier 5
	suite asan fuzz --timeout-multiplier 3
	suite asan prov --timeout-multiplier 4 --num-processes 1
	suite asan walk --timeout-multiplier 4 --num-processes 1
	suite asan mp --timeout-multiplier 4 --num-processes 1
	suite asan sample --timeout-multiplier 4 --num-processes 1
	# Programs of the tree's own, since a sanitizer has to be there from a program's start. Lane dts, which
	# may run at the same time, takes hugepages and gives them back.
	PMF_HUGEPAGES=off dts asan asan-dts -m 'not long' \
		-k 'vhost and (test_every_byte_through_faults or test_a_server_serves) or test_killed_within'
	unset ASAN_OPTIONS UBSAN_OPTIONS
}

# ThreadSanitizer sees the provider and its tests; DPDK's libraries are not built with it. The
# kernel's address randomisation may be wider than the runtime's map: setarch -R turns it off.
lane_tsan()
{
	step build tsan --suite prov -Dbuildtype=debugoptimized -Db_sanitize=thread \
		-Db_lundef=false || return 1
	# A test ends the process within a signal handler, which nothing that cleans up at exit is made for.
	export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:report_signal_unsafe=0
	TSAN_OPTIONS+=:suppressions=$lib/tsan.supp
	suite tsan prov --timeout-multiplier 6 --num-processes 1 --wrapper 'setarch -R'
	unset TSAN_OPTIONS
}

# A quarter of a minute of each fuzzer from the corpus, beside the replay that every run does; as many at a
# time as there are processors.
lane_libfuzzer()
{
	local targets target name found

	CC=clang step build fuzz --target fuzzers -Dfuzz=true -Dperf=false -Db_lundef=false || return 1
	mapfile -t targets < <(find "$builds/fuzz/test/fuzz" -type f -name '*_fuzz' -perm -u+x)
	[ ${#targets[@]} -gt 0 ] || return 1
	found=$(mktemp -d) || return 1
	(
		for target in "${targets[@]}"; do
			[ "$(jobs -pr | wc -l)" -lt "$(nproc)" ] || wait -n
			fuzz "$target" &
		done
		wait
	)
	for target in "${targets[@]}"; do
		name=${target##*/}
		step test -f "$found/$name.passed" || tail -n 40 "$PMF_LOGS/$name.log" >&2
	done
	rm -rf "$found"
}

# Runs fuzzer $1. What it finds goes to a directory of its own: the corpus in the tree grows by hand.
fuzz()
{
	local name=${1##*/}

	mkdir "$found/$name"
	timeout 120 "$1" -max_total_time="${FUZZ_SECONDS:-15}" -artifact_prefix="$PMF_LOGS/" \
		"$found/$name" "$root/test/fuzz/corpus/${name%_fuzz}" \
		>"$PMF_LOGS/$name.log" 2>&1 </dev/null && touch "$found/$name.passed"
}
