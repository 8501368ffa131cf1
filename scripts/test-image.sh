#!/usr/bin/env bash
# Builds the container image with buildah, as root, and checks that it is what
# deploy/Dockerfile promises: the user, the data folder, a binary that runs and
# serves. It shows nothing about a read-only root, volumes, or compose: those
# take a container engine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v buildah >/dev/null || { echo "The image is built with buildah. Install it (Debian: buildah)." >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "buildah mounts the image, which needs root." >&2; exit 1; }

# No kernel features are taken for granted: plain copies, no namespaces.
export BUILDAH_ISOLATION=chroot
dir=$(mktemp -d)
store=(buildah --storage-driver vfs --root "$dir/store" --runroot "$dir/run")
server=
clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	"${store[@]}" rm --all >/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT

fail() {
	echo "image: $1" >&2
	exit 1
}

# expect NAME GOT WANT
expect() {
	[ "$2" = "$3" ] || fail "$1: got $2, want $3"
}

make build
"${store[@]}" build --quiet --file deploy/Dockerfile --tag dmarcd . >/dev/null
config() { "${store[@]}" inspect --type image --format "{{.OCIv1.Config.$1}}" dmarcd; }
expect user "$(config User)" 65532:65532
expect entrypoint "$(config Entrypoint)" "[/dmarcd]"
expect command "$(config Cmd)" "[serve]"
expect volumes "$(config Volumes)" "map[/data:{}]"

container=$("${store[@]}" from --pull-never dmarcd)
root=$("${store[@]}" mount "$container")
expect "owner of /data" "$(stat --format=%u:%g "$root/data")" 65532:65532
expect "version" "$("${store[@]}" run "$container" -- /dmarcd version)" "$(bin/dmarcd version)"

# The server runs on nothing but the files of the image, as the user of it.
port=$((20000 + (RANDOM % 10000)))
env --ignore-environment DMARCD_DATA=/data DMARCD_LISTEN="127.0.0.1:$port" \
	"$(command -v chroot)" --userspec=65532:65532 "$root" /dmarcd serve >"$dir/log" 2>&1 &
server=$!
healthy() {
	exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3 | grep -q ' 200 '
}
for _ in $(seq 100); do
	(healthy) 2>/dev/null && break
	kill -0 "$server" 2>/dev/null || { cat "$dir/log" >&2; fail "the server ended"; }
	sleep 0.1
done
(healthy) 2>/dev/null || { cat "$dir/log" >&2; fail "no answer from /healthz"; }
kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
expect "exit status after SIGTERM" "$status" 0
echo "image: good, $(stat --format=%s "$root/dmarcd") bytes of binary"
