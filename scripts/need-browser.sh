#!/usr/bin/env bash
# Makes sure that there are Chromium, which the tests in test/browser look at the web
# page with, and axe, which looks at its accessibility. As root, on Debian and its
# kin, a missing Chromium is installed. Node.js and npm are need-node.sh's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

complete() { command -v chromium >/dev/null; }

if ! complete && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "Installing Chromium from Debian's packages." >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq -o DPkg::Lock::Timeout=300 update
	apt-get -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends chromium fonts-dejavu-core >/dev/null
	hash -r
fi
if ! complete; then
	echo "The browser tests need Chromium. Install it (Debian: chromium), or use make test-short." >&2
	exit 1
fi

# npm writes what it installed into node_modules; the same again is not needed.
cd test/browser
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent
