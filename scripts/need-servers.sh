#!/usr/bin/env bash
# Makes sure that there are the servers which tests start: Knot DNS with its client
# kdig, Unbound, BIND and PowerDNS (test/realdns), Exim and Dovecot (test/realmail), PgBouncer, and the certificate
# authority Pebble. As root, on Debian and its kin, missing ones are installed. Nothing of them
# runs afterwards, nor after the next boot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A user's PATH need not hold the folders of servers.
PATH=$PATH:/usr/sbin:/sbin
. scripts/debian.sh

# missing prints the packages whose programs are not all there.
missing() {
	{ command -v knotd && command -v knotc; } >/dev/null || echo knot
	command -v kdig >/dev/null || echo knot-dnsutils
	{ command -v unbound && command -v unbound-control; } >/dev/null || echo unbound
	command -v named >/dev/null || echo bind9
	{ command -v pdns_server && [ -e "/usr/lib/$(uname -m)-linux-gnu/pdns/liblmdbbackend.so" ]; } >/dev/null || printf '%s\n' pdns-server pdns-backend-lmdb
	command -v exim4 >/dev/null || echo exim4-daemon-light
	{ command -v dovecot && [ -x /usr/lib/dovecot/imap ]; } >/dev/null || echo dovecot-imapd
	command -v pgbouncer >/dev/null || echo pgbouncer
	command -v pebble >/dev/null || echo pebble
}

# service_of prints the name of the service that a package brings.
service_of() {
	case $1 in
	exim4-daemon-light) echo exim4 ;;
	dovecot-imapd) echo dovecot ;;
	bind9) echo named ;;
	*) echo "$1" ;;
	esac
}

mapfile -t packages < <(missing)
[ ${#packages[@]} -gt 0 ] || exit 0
if forbid_starts && install_packages "${packages[@]}"; then
	for package in "${packages[@]}"; do
		case $package in
		pebble | knot-dnsutils | pdns-backend-lmdb) ;;
		pdns-server) rm -f /etc/systemd/system/multi-user.target.wants/pdns.service ;; # it has a unit of systemd only
		*) update-rc.d "$(service_of "$package")" disable >/dev/null ;;
		esac
	done
	[ -n "$(missing)" ] || exit 0
fi
echo "The tests need servers that are not there. Install them (Debian: ${packages[*]}), or use make test-short." >&2
exit 1
