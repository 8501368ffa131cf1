#!/usr/bin/env bash
# Makes sure that there are Chromium, with which the tests in test/browser open the web
# pages, and axe, which checks their accessibility. As root, on Debian and its
# kin, chromium-headless-shell is installed, which needs less processor time; elsewhere any
# Chromium works. Node.js and npm are need-node.sh's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

has() { command -v "$1" >/dev/null; }

has chromium-headless-shell || install_packages chromium-headless-shell fonts-dejavu-core || true
if ! has chromium-headless-shell && ! has chromium; then
	echo "The browser tests need Chromium. Install it (Debian: chromium-headless-shell), or use make test-short." >&2
	exit 1
fi

# npm writes what it installed into node_modules; the same again is not needed.
cd test/browser
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent
