#!/usr/bin/env bash
# Makes sure that there is a C compiler: Go's race detector links with one.
# As root, on Debian and its kin, a missing one is installed.
set -euo pipefail

compiles() {
	echo '#include <stdlib.h>
int main(void) { return EXIT_SUCCESS; }' | "$(go env CC)" -x c -o /dev/null - 2>/dev/null
}

compiles && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "Installing a C compiler for the race detector." >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq -o DPkg::Lock::Timeout=300 update
	apt-get -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends gcc libc6-dev >/dev/null
	compiles && exit 0
fi
echo "The race detector needs a C compiler. Install gcc and the headers of the C library, or use make test-short." >&2
exit 1
