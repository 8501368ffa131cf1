#!/usr/bin/env bash
# Upgrades replicas on one PostgreSQL one after the other, under load, from the version before
# to this one: the newest tag before this commit or, until there is one, the last commit that
# changed the schema. DMARCD_PREVIOUS names another commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

previous=${DMARCD_PREVIOUS:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git log -1 --format=%H -- internal/store/migrations)}
git cat-file -e "$previous^{commit}" 2>/dev/null || {
	echo "rolling: the commit $previous is not in this clone, which may be shallow; set DMARCD_PREVIOUS" >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/source"
git archive "$previous" | tar --extract --directory "$dir/source"
(cd "$dir/source" && CGO_ENABLED=0 go build -trimpath -o "$dir/old" ./cmd/dmarcd)
CGO_ENABLED=0 go build -trimpath -o "$dir/new" ./cmd/dmarcd
echo "rolling: from $(git log -1 --format='%h %s' "$previous")"
DMARCD_TEST_OLD=$dir/old DMARCD_TEST_NEW=$dir/new scripts/with-postgres.sh go test -count=1 -v -timeout=30m ./test/rolling
