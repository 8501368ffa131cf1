#!/usr/bin/env bash
# Makes sure that there is a C compiler: Go's race detector links with one.
# As root, on Debian and its kin, a missing one is installed.
set -euo pipefail
# shellcheck source=scripts/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

compiles() {
	echo '#include <stdlib.h>
int main(void) { return EXIT_SUCCESS; }' | "$(go env CC)" -x c -o /dev/null - 2>/dev/null
}

compiles && exit 0
if install_packages gcc libc6-dev; then
	compiles && exit 0
fi
echo "The race detector needs a C compiler. Install gcc and the headers of the C library, or use make test-short." >&2
exit 1
