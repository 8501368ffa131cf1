#!/usr/bin/env bash
# Bundles what the pages need from npm, to where it is embedded: the charts of the web page
# (internal/web/built) and the viewer of the API (internal/api/built). It needs npm and the
# network, and never fails a build: without the bundles the web page shows its tables, the page
# of the API lists the operations, and everything else works.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null && npm=yes || npm=

# current SOURCES BUNDLE reports whether the bundle is newer than all that it is made of.
current() {
	[ -f "$2" ] && [ -z "$(find "$1" tools/go.mod "$0" -path '*/node_modules' -prune -o -type f -newer "$2" -print -quit)" ]
}

# bundle SOURCES MODULE OUTPUT OPTIONS... installs the packages of a folder and bundles a module of it.
bundle() {
	local sources=$1 module=$2 output=$3
	shift 3
	[ "$npm" ] || { echo "npm is not installed"; return 1; }
	(cd "$sources" && npm ci --ignore-scripts --prefer-offline --fetch-retries=0 --loglevel=error >/dev/null) || { echo "npm ci failed"; return 1; }
	go tool -modfile=tools/go.mod esbuild "$sources/$module" --bundle --minify --format=esm --target=es2022 \
		--legal-comments=none --log-level=error --outfile="$output/$module" "$@" || { echo "esbuild failed"; return 1; }
}

# licences SOURCES PACKAGE... prints the licences: what is bundled is distributed with the binary.
licences() {
	local sources=$1 package file
	shift
	for package in "$@"; do
		printf '\n== %s ==\n' "$package"
		for file in LICENSE LICENSE.txt LICENSE.md NOTICE; do
			if [ -f "$sources/node_modules/$package/$file" ]; then
				cat "$sources/node_modules/$package/$file"
			fi
		done
	done
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

charts=internal/web/charts built=internal/web/built
if ! current "$charts" "$built/charts.js"; then
	if why=$(bundle "$charts" charts.js "$folder"); then
		licences "$charts" echarts zrender tslib >"$built/licenses.txt"
		mv "$folder/charts.js" "$built/"
		touch "$built/charts.js" # newer than the lock file that npm has just read
	else
		echo "The charts of the web page were not built: $why. The page shows tables instead." >&2
	fi
fi

viewer=internal/api/viewer built=internal/api/built
if ! current "$viewer" "$built/viewer.js.gz"; then
	if why=$(bundle "$viewer" viewer.js "$folder" '--define:process.env.NODE_ENV="production"' \
		--define:__VUE_OPTIONS_API__=true --define:__VUE_PROD_DEVTOOLS__=false \
		--define:__VUE_PROD_HYDRATION_MISMATCH_DETAILS__=false --metafile="$folder/meta.json"); then
		# The packages that ended up in the bundle.
		# shellcheck disable=SC2046
		licences "$viewer" $(grep -oE 'node_modules/(@[^/"]+/)?[^/"]+' "$folder/meta.json" | cut -d/ -f2- | sort -u) >"$folder/licenses.txt"
		for file in viewer.js viewer.css licenses.txt; do
			gzip -9nc "$folder/$file" >"$built/$file.gz"
		done
		touch "$built/viewer.js.gz"
	else
		echo "The viewer of the API was not built: $why. Its page lists the operations instead." >&2
	fi
fi
