#!/usr/bin/env bash
# Runs a command with DMARCD_TEST_PGBOUNCER set to the URL of a PgBouncer in transaction
# mode that exists for it alone, in front of the server of DMARCD_TEST_POSTGRES:
#
#     scripts/with-postgres.sh scripts/with-pgbouncer.sh go test ./internal/store
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: with-pgbouncer.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
# A user's PATH need not hold the folders of servers.
PATH=$PATH:/usr/sbin:/sbin

# postgres://user@host:port/database?options
[[ $DMARCD_TEST_POSTGRES =~ ^postgres://([^@:/]+)@([^:/]+):([0-9]+)/ ]] ||
	{ echo "with-pgbouncer.sh: DMARCD_TEST_POSTGRES must be postgres://user@host:port/database" >&2; exit 2; }
user=${BASH_REMATCH[1]} host=${BASH_REMATCH[2]} server=${BASH_REMATCH[3]}

dir=$(mktemp -d /tmp/dmarcd-pgbouncer.XXXXXX)
child=
clean_up() {
	[ -z "$child" ] || kill "$child" 2>/dev/null || true
	[ -z "$child" ] || wait "$child" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# PgBouncer refuses to run as root.
run=()
if [ "$(id -u)" = 0 ]; then
	run=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups --)
	chown nobody "$dir"
fi

printf '"%s" ""\n' "$user" >"$dir/users"
chmod 644 "$dir/users"
# Versions before 1.21 know no prepared statements: see docs/scaling.md.
options="sslmode=disable&default_query_exec_mode=exec"
for attempt in 1 2 3 4 5 6 7 8 9 10; do
	port=$((20000 + (RANDOM % 10000))) # below the ports that the system hands out
	cat >"$dir/ini" <<-INI
		[databases]
		* = host=$host port=$server
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = $port
		unix_socket_dir =
		auth_type = trust
		auth_file = $dir/users
		pool_mode = transaction
		default_pool_size = 20
		max_client_conn = 2000
		server_idle_timeout = 5
		log_connections = 0
		log_disconnections = 0
		log_stats = 0
	INI
	chmod 644 "$dir/ini"
	"${run[@]}" pgbouncer --quiet "$dir/ini" >"$dir/log" 2>&1 &
	child=$!
	for _ in $(seq 100); do
		kill -0 "$child" 2>/dev/null || break
		(: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break 2
		sleep 0.1
	done
	kill "$child" 2>/dev/null || true
	wait "$child" 2>/dev/null || true
	child=
	[ "$attempt" != 10 ] || { cat "$dir/log" >&2; exit 1; }
done

export DMARCD_TEST_PGBOUNCER="postgres://$user@127.0.0.1:$port/postgres?$options"
status=0
"$@" || status=$?
kill -0 "$child" 2>/dev/null || { echo "with-pgbouncer.sh: PgBouncer ended:" && cat "$dir/log"; } >&2
exit "$status"
