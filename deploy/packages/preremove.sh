#!/bin/sh
# Stops the service when the package is removed. An upgrade keeps it running until the new
# version is there.
set -eu

case ${1:-} in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	if command -v deb-systemd-invoke >/dev/null; then
		deb-systemd-invoke stop dmarcd.service
	else
		systemctl --no-reload disable --now dmarcd.service || true
	fi
fi
