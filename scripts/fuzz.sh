#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME, one after the other: go
# test takes one target at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=$(grep -rlE --include='*_test.go' '^func Fuzz[A-Z0-9]' . | sort || true)
[ -n "$files" ] || { echo "There is no fuzz target." >&2; exit 1; }
for file in $files; do
	for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file"); do
		go test -run='^$' -fuzz="^$target\$" -fuzztime="${FUZZTIME:-30s}" -fuzzminimizetime=10x "$(dirname "$file")"
	done
done
