#!/usr/bin/env bash
# Makes sure that there are the mail servers which the tests in test/realmail
# start: Exim, which sends, and Dovecot, which keeps mailboxes. As root, on Debian
# and its kin, missing ones are installed. Nothing of them runs afterwards, nor after
# the next boot.
set -euo pipefail
# A user's PATH need not hold the folders of servers.
PATH=$PATH:/usr/sbin:/sbin

# missing prints the packages whose programs are not there.
missing() {
	command -v exim4 >/dev/null || echo exim4-daemon-light
	{ command -v dovecot && [ -x /usr/lib/dovecot/imap ]; } >/dev/null || echo dovecot-imapd
}

# service_of prints the name of the service that a package brings.
service_of() {
	case $1 in
	exim4-daemon-light) echo exim4 ;;
	dovecot-imapd) echo dovecot ;;
	esac
}

policy=/usr/sbin/policy-rc.d

# forbid_starts keeps packages from starting their services while they are being
# installed. A policy that the machine has already is left alone, and has to say
# the same.
forbid_starts() {
	if [ -e "$policy" ]; then
		local status=0
		"$policy" exim4 start >/dev/null || status=$?
		[ "$status" = 101 ]
		return
	fi
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
}

mapfile -t packages < <(missing)
[ ${#packages[@]} -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && forbid_starts; then
	echo "Installing ${packages[*]} from Debian's packages." >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq -o DPkg::Lock::Timeout=300 update
	apt-get -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends "${packages[@]}" >/dev/null
	for package in "${packages[@]}"; do
		update-rc.d "$(service_of "$package")" disable >/dev/null 2>&1
	done
	hash -r
	[ -n "$(missing)" ] || exit 0
fi
echo "The tests need the mail servers Exim and Dovecot. Install them (Debian: exim4-daemon-light, dovecot-imapd), or use make test-short." >&2
exit 1
