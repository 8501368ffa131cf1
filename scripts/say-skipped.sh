#!/bin/sh
# Says which tests did not run for want of the corpus or of a Citus cluster: go test prints
# nothing about tests that were skipped.
set -eu
cd "$(dirname "$0")/.."
if [ -z "${DMARCD_TEST_CITUS:-}" ]; then
	echo 'SKIPPED: DMARCD_TEST_CITUS is not set, so nothing was proven on Citus (make test-citus).'
fi
if [ -n "${DMARCD_CORPUS:-}" ]; then
	exit 0
fi
echo 'SKIPPED: DMARCD_CORPUS is not set, so the tests that compare with the reports and tables of other projects did not run in:'
grep -rl 'corpustest\.' --include='*_test.go' . | grep -v '^./internal/corpustest/' | xargs -n1 dirname | sort -u | sed 's/^/  /'
