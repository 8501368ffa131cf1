#!/usr/bin/env bash
# Runs a command with DMARCD_TEST_POSTGRES set to the URL of a PostgreSQL
# server that exists for it alone:
#
#     scripts/with-postgres.sh go test ./...
#
# Where the variable is set already, that server is used and none is started.
# Where there is plenty of memory, the databases of tests lie in it: those of the
# server, and those of SQLite, which are temporary files (TMPDIR).
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: with-postgres.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
[ -z "${DMARCD_TEST_POSTGRES:-}" ] || exec "$@"

scripts=$(dirname "${BASH_SOURCE[0]}")
bin=$("$scripts/find-postgres.sh")
# shellcheck source=scripts/memory.sh
. "$scripts/memory.sh"

# A short path that every user can enter: a clone may lie under root's home.
dir=$(mktemp -d /tmp/dmarcd-postgres.XXXXXX)
child=

# Every test makes a database of some hundred files, which take up to 1 GiB.
data=$dir/data
if plenty_of_memory; then
	data=$(mktemp -d /dev/shm/dmarcd-postgres.XXXXXX)
	use_memory
fi

# stop_child ends the command with all that it has started.
stop_child() {
	trap '' INT TERM HUP
	[ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null || true
	[ -z "$child" ] || wait "$child" 2>/dev/null || true
	exit "$1"
}

clean_up() {
	[ ! -f "$data/postmaster.pid" ] || server pg_ctl stop --pgdata="$data" --mode=immediate --silent || true
	rm -rf "$dir" "$data"
}

trap clean_up EXIT
trap 'stop_child 129' HUP
trap 'stop_child 130' INT
trap 'stop_child 143' TERM

# server runs one of PostgreSQL's programs, which refuse to run as root.
if [ "$(id -u)" = 0 ]; then
	user=nobody
	! id postgres >/dev/null 2>&1 || user=postgres
	case $bin in
	*/.cache/*)
		cp -R "${bin%/bin}" "$dir/native"
		bin=$dir/native/bin
		;;
	esac
	chown -R "$user" "$dir"
	[ ! -d "$data" ] || chown "$user" "$data"
	server() {
		(cd "$dir" && setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups -- "$bin/$1" "${@:2}")
	}
else
	server() { "$bin/$1" "${@:2}"; }
fi

# Most installations order text by the rules of a language and not by bytes.
# The tests use such an order where the server can, so that a query which
# relies on bytes shows.
cluster=(initdb --pgdata="$data" --username=dmarcd --auth=trust --encoding=UTF8 --locale=C --no-sync)
if ! server "${cluster[@]}" --locale-provider=icu --icu-locale=en-US >"$dir/log" 2>&1; then
	echo "This PostgreSQL knows no ICU: text is ordered by bytes." >&2
	rm -rf "$data"
	server "${cluster[@]}" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
fi

# The tests kill our process, never the server: what it has written survives
# without fsync and its kin, which take most of the time of small transactions.
settings="-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=400 -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_wal_size=256MB"
for attempt in 1 2 3 4 5 6 7 8 9 10; do
	port=$((20000 + (RANDOM % 10000))) # below the ports that the system hands out
	if server pg_ctl start --pgdata="$data" --log="$data/log" --silent --wait --timeout=60 \
		--options="$settings -p $port" >/dev/null 2>&1; then
		break
	fi
	if [ "$attempt" = 10 ] || ! grep -q "could not bind" "$data/log"; then
		cat "$data/log" >&2
		exit 1
	fi
	rm -f "$data/log"
done

# A process group of its own lets one signal reach everything it starts.
export DMARCD_TEST_POSTGRES="postgres://dmarcd@127.0.0.1:$port/postgres?sslmode=disable"
set -m
"$@" &
child=$!
set +m
status=0
wait "$child" || status=$?
exit "$status"
