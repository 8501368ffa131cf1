#!/usr/bin/env bash
# Bundles the charts of the web page into internal/web/built, from where they are
# embedded. It needs npm and the network, and never fails a build: without the
# bundle the page shows its tables, and everything else works.
set -euo pipefail
cd "$(dirname "$0")/.."

sources=internal/web/charts
built=internal/web/built

give_up() {
	echo "The charts of the web page were not built: $1. The page shows tables instead." >&2
	exit 0
}

# Nothing to do where the bundle is newer than all that it is made of.
if [ -f "$built/charts.js" ] &&
	[ -z "$(find "$sources" tools/go.mod "$0" -path '*/node_modules' -prune -o -type f -newer "$built/charts.js" -print -quit)" ]; then
	exit 0
fi

command -v npm >/dev/null || give_up "npm is not installed"
(cd "$sources" && npm ci --ignore-scripts --prefer-offline --fetch-retries=0 --loglevel=error >/dev/null) || give_up "npm ci failed"

bundle=$(mktemp -d)
trap 'rm -rf "$bundle"' EXIT
go tool -modfile=tools/go.mod esbuild "$sources/charts.js" --bundle --minify --format=esm --target=es2022 \
	--legal-comments=none --log-level=warning --outfile="$bundle/charts.js" || give_up "esbuild failed"

# What is bundled is distributed with the binary, and so are its licences.
for package in echarts zrender tslib; do
	printf '\n== %s ==\n' "$package"
	for file in LICENSE LICENSE.txt NOTICE; do
		if [ -f "$sources/node_modules/$package/$file" ]; then
			cat "$sources/node_modules/$package/$file"
		fi
	done
done >"$bundle/licenses.txt"

mv "$bundle/licenses.txt" "$bundle/charts.js" "$built/"
touch "$built/charts.js" # newer than the lock file that npm has just read
