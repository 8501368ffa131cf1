# shellcheck shell=bash
# Installs Debian's packages for the scripts that source it.

# install_packages installs packages, as root on Debian and its kin; elsewhere it
# fails.
install_packages() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "Installing $* from Debian's packages." >&2
	export DEBIAN_FRONTEND=noninteractive
	local apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
	"${apt[@]}" update >/dev/null && "${apt[@]}" install --no-install-recommends "$@" >/dev/null && hash -r
}

# forbid_starts keeps packages from starting services while they are being installed.
# A policy that the machine has already is left alone, and has to say the same.
forbid_starts() {
	local policy=/usr/sbin/policy-rc.d
	[ "$(id -u)" = 0 ] || return 1
	if [ -e "$policy" ]; then
		local status=0
		"$policy" any start >/dev/null || status=$?
		[ "$status" = 101 ]
		return
	fi
	# shellcheck disable=SC2064 # the name of now
	trap "rm -f $policy" EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
}
