#!/usr/bin/env bash
# Makes the image archive of a release, for the architecture of this machine, and
# checks as root with buildah that it is the image of deploy/Dockerfile, and what
# that promises: the user, the data folder, a binary that serves from a root file
# system on which nothing can be written. It shows nothing about compose: that takes
# a container engine. Where buildah cannot be had, the image is said to be unproven.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

unproven() {
	echo "image: unproven, $1" >&2
	exit 0
}
[ "$(id -u)" = 0 ] || unproven "because buildah mounts it, which needs root"
if ! command -v buildah >/dev/null; then
	install_packages buildah || unproven "because there is no buildah"
fi

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
"${store[@]}" build --quiet --file deploy/Dockerfile --tag dmarcd-dockerfile . >/dev/null
platform=linux/$(go env GOARCH)
(cd tools/release && go run . -o "$dir/dist" -platforms "$platform" >/dev/null)
if [ -z "$(git status --porcelain)" ]; then
	# The same commit in another folder gives the same bytes: binary, packages, image, chart and SBOM.
	git clone --quiet . "$dir/clone"
	mkdir -p "$dir/clone/bin"
	cp bin/*.mmdb "$dir/clone/bin/"
	for built in internal/*/built; do cp "$built"/* "$dir/clone/$built/"; done
	(cd "$dir/clone/tools/release" && go run . -o "$dir/again" -platforms "$platform" >/dev/null)
	diff "$dir/dist/SHA256SUMS" "$dir/again/SHA256SUMS" || fail "the same commit gave other bytes"
else
	echo "image: two builds are not compared, because files differ from the commit" >&2
fi
"${store[@]}" pull --quiet "oci-archive:$(echo "$dir"/dist/dmarcd-*.oci.tar)" >"$dir/id"
"${store[@]}" tag "$(cat "$dir/id")" dmarcd
config() { "${store[@]}" inspect --type image --format "{{.OCIv1.Config.$1}}" "${2:-dmarcd}"; }
for field in User Entrypoint Cmd Volumes ExposedPorts; do
	expect "$field, as of the Dockerfile" "$(config $field)" "$(config $field dmarcd-dockerfile)"
done
# A build from scratch may add a PATH.
expect "Env, as of the Dockerfile" "$(config Env)" "$(config Env dmarcd-dockerfile | sed 's/PATH=[^] ]* //')"
expect user "$(config User)" 65532:65532
expect entrypoint "$(config Entrypoint)" "[/dmarcd]"
expect command "$(config Cmd)" "[serve]"
expect volumes "$(config Volumes)" "map[/data:{}]"

container=$("${store[@]}" from --pull-never dmarcd)
root=$("${store[@]}" mount "$container")
expect "files with rights of others" "$(find "$root" -xdev \( -perm /6000 -o -perm -o+w \) ! -type l ! -path "$root/tmp" ! -path "$root/dev/*")" ""
expect "owner of /data" "$(stat --format=%u:%g "$root/data")" 65532:65532
expect "files" "$(cd "$root" && find . -maxdepth 1 -type f | sort)" "$(cd bin && find . -maxdepth 1 \( -name dmarcd -o -name '*.mmdb' \) | sort)"
"${store[@]}" run "$container" -- /dmarcd version | grep -q "^dmarcd 0\.\|^dmarcd [1-9]" || fail "the binary does not name its version"

# The server runs on nothing but the files of the image, as the user of it, with
# a volume for its data and everything else read-only.
port=$((20000 + (RANDOM % 10000)))
mkdir "$dir/volume"
chown 65532:65532 "$dir/volume"
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --mount --propagation private sh -c '
	mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount --bind "$2" "$1/data" || exit 1
	! touch "$1/x" 2>/dev/null || { echo "the root can be written" >&2; exit 1; }
	exec env --ignore-environment DMARCD_DATA=/data DMARCD_LISTEN="127.0.0.1:$3" \
		"$(command -v chroot)" --userspec=65532:65532 "$1" /dmarcd serve
' sh "$root" "$dir/volume" "$port" >"$dir/log" 2>&1 &
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
