# shellcheck shell=sh
# To be sourced: keeps temporary files of tests in memory.

# plenty_of_memory reports whether 4 GiB are free there. DMARCD_TEST_DISK=1 is for more data.
plenty_of_memory() {
	[ -z "${DMARCD_TEST_DISK:-}" ] &&
		[ "$(df --output=avail --block-size=1G /dev/shm 2>/dev/null | tail -1)" -ge 4 ] 2>/dev/null &&
		[ "$(awk '$1 == "MemAvailable:" { print int($2 / 1024 / 1024) }' /proc/meminfo 2>/dev/null)" -ge 4 ] 2>/dev/null
}

# use_memory has temporary files lie in memory, where a commit of SQLite does not wait
# for the disk; those of the go command stay where they were. The name of the folder
# is always the same: go test runs a test again if TMPDIR has changed. Tests run
# programs from there, which a system may forbid, and servers as other users.
use_memory() {
	memory=/dev/shm/dmarcd-$(id -u)
	mkdir -p "$memory" && [ -O "$memory" ] && [ ! -L "$memory" ] && chmod 1777 "$memory" || return 0
	printf '#!/bin/sh\n' >"$memory/runs.$$" && chmod 700 "$memory/runs.$$"
	if "$memory/runs.$$" 2>/dev/null; then
		export GOTMPDIR="${GOTMPDIR:-${TMPDIR:-/tmp}}" TMPDIR="$memory"
	fi
	rm "$memory/runs.$$"
	# What was left by tests that were killed.
	find "$memory" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
}
