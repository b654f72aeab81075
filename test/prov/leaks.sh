#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
#
# leaks.sh PROGRAM [ARGUMENT...]: runs a test program under valgrind. Fails by what the program has lost
# when it ends, by what it reads without having written it, and by what it touches that is not its own.
command -v valgrind >/dev/null || {
	echo "valgrind is not installed"
	exit 77
}
exec valgrind --leak-check=full --errors-for-leak-kinds=definite,indirect,possible --error-exitcode=9 \
	--num-callers=30 --suppressions="$(dirname "$0")/eal.supp" "$@"
