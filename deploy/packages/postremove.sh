#!/bin/sh
# Removes the data, the settings and the user when a Debian package is purged. An rpm
# leaves them.
set -eu

if command -v deb-systemd-helper >/dev/null; then
	case ${1:-} in
	remove) deb-systemd-helper mask dmarcd.service >/dev/null || true ;;
	purge)
		deb-systemd-helper purge dmarcd.service >/dev/null || true
		deb-systemd-helper unmask dmarcd.service >/dev/null || true
		;;
	esac
fi
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/dmarcd /etc/dmarcd
	if getent passwd dmarcd >/dev/null; then
		userdel dmarcd
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
