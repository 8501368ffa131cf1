#!/usr/bin/env bash
# Makes sure that there are the name servers which the tests in test/realdns
# start: Knot DNS and Unbound. As root, on Debian and its kin, missing ones are
# installed. Nothing of them runs afterwards, nor after the next boot.
set -euo pipefail
# A user's PATH need not hold the folders of servers.
PATH=$PATH:/usr/sbin:/sbin

# missing prints the packages whose programs are not all there.
missing() {
	{ command -v knotd && command -v knotc; } >/dev/null || echo knot
	{ command -v unbound && command -v unbound-control; } >/dev/null || echo unbound
}

policy=/usr/sbin/policy-rc.d

# forbid_starts keeps packages from starting their services while they are being
# installed. A policy that the machine has already is left alone, and has to say
# the same.
forbid_starts() {
	if [ -e "$policy" ]; then
		local status=0
		"$policy" knot start >/dev/null || status=$?
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
		update-rc.d "$package" disable >/dev/null
	done
	hash -r
	[ -n "$(missing)" ] || exit 0
fi
echo "The tests need the name servers Knot DNS and Unbound. Install them (Debian: knot, unbound), or use make test-short." >&2
exit 1
