#!/usr/bin/env bash
# Makes sure that there are Chromium, with which the tests in test/browser open the web
# pages, and axe, which checks their accessibility. As root, on Debian and its
# kin, Chromium's build without windows is installed, which takes less time; elsewhere
# Chromium will do. Node.js and npm are need-node.sh's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

there() { command -v "$1" >/dev/null; }

there chromium-headless-shell || install_packages chromium-headless-shell fonts-dejavu-core || true
if ! there chromium-headless-shell && ! there chromium; then
	echo "The browser tests need Chromium. Install it (Debian: chromium-headless-shell), or use make test-short." >&2
	exit 1
fi

# npm writes what it installed into node_modules; the same again is not needed.
cd test/browser
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent
