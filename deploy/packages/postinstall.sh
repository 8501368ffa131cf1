#!/bin/sh
# Creates the user, and starts the service or restarts it with the new version.
# dpkg passes "configure" and the version that was configured last, rpm how many
# versions are installed.
set -eu

case ${1:-} in
configure) first=$([ -n "${2:-}" ] || echo yes) ;;
1) first=yes ;;
2) first= ;;
*) exit 0 ;;
esac

if ! getent passwd dmarcd >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/dmarcd \
		--shell "$(command -v nologin || echo /usr/sbin/nologin)" --comment "DMARC daemon" dmarcd
fi
chgrp dmarcd /etc/dmarcd/dmarcd.toml
if [ ! -d /var/lib/dmarcd ]; then
	install -d -m 0700 -o dmarcd -g dmarcd /var/lib/dmarcd
fi

if command -v deb-systemd-helper >/dev/null; then
	# Where an administrator has disabled or masked the service, it stays so.
	deb-systemd-helper unmask dmarcd.service >/dev/null || true
	if deb-systemd-helper --quiet was-enabled dmarcd.service; then
		deb-systemd-helper enable dmarcd.service >/dev/null || true
	fi
	deb-systemd-helper update-state dmarcd.service >/dev/null || true
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		deb-systemd-invoke "$([ -n "$first" ] && echo start || echo try-restart)" dmarcd.service || true
	fi
elif [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -n "$first" ]; then
		systemctl preset dmarcd.service || true
	else
		systemctl try-restart dmarcd.service || true
	fi
fi
