#!/usr/bin/env bash
# Makes sure that there are Node.js and npm, the packages of the OpenID provider
# that tests in test/oidc start, the library that test/webhooks verifies
# deliveries with, the linters and generators of test/clients, and the inspector of
# test/mcp. As root, on Debian and its kin, missing programs are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

# complete tells whether the programs are there, new enough for the packages.
complete() {
	command -v npm >/dev/null && command -v node >/dev/null &&
		[ "$(node --print 'process.versions.node.split(".")[0]')" -ge 18 ]
}

complete || install_packages nodejs npm || true
if ! complete; then
	echo "The tests need Node.js 18 or newer, and npm. Install them (Debian: nodejs, npm), or use make test-short." >&2
	exit 1
fi

# npm writes what it installed into node_modules; the same again is not needed.
for folder in test/oidc test/webhooks test/clients test/mcp; do
	[ "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ] || (cd "$folder" && npm ci --silent)
done
