#!/usr/bin/env bash
# Makes a release from a fresh clone, twice, and compares the bytes. Then installs the
# Debian package of the version before in a clean Debian, upgrades it with its data,
# rolls back to a backup, upgrades again, removes and purges it. It needs root, and
# Debian for debootstrap; the clean system is kept in .cache.
#
# DMARCD_PREVIOUS names the commit of the version before: the newest tag before this
# commit or, until there is one, the last commit before it that changed the schema. RELEASE can narrow the
# platforms, for example to `-platforms linux/amd64`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

[ "$(id -u)" = 0 ] || { echo "release: this test needs root, for a chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || install_packages debootstrap
command -v rpm >/dev/null || install_packages rpm

dir=$(mktemp -d)
root=$dir/root
server=
clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	umount "$root/proc" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT

fail() {
	echo "release: $1" >&2
	[ ! -s "$dir/log" ] || tail -n 20 "$dir/log" >&2
	exit 1
}

# expect NAME GOT WANT
expect() {
	[ "$2" = "$3" ] || fail "$1: got $2, want $3"
}

# one prints the only file that a pattern matches.
one() {
	[ $# = 1 ] && [ -e "$1" ] || fail "got $*, want one file"
	echo "$1"
}

arch=$(go env GOARCH)
commit=$(git rev-parse HEAD)
previous=${DMARCD_PREVIOUS:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git log -1 --format=%H HEAD^ -- internal/store/migrations)}
git cat-file -e "$previous^{commit}" 2>/dev/null || fail "the commit $previous is not in this clone, which may be shallow; set DMARCD_PREVIOUS"

# What npm makes is not made anew for each clone.
scripts/build-assets.sh
scripts/need-networks.sh
clone() {
	git clone --quiet . "$1"
	git -C "$1" checkout --quiet "$2"
	mkdir "$1/bin"
	cp bin/*.mmdb "$1/bin/"
	for built in internal/*/built; do [ ! -d "$1/$built" ] || cp "$built"/* "$1/$built/"; done
}

echo "release: from a fresh clone"
clone "$dir/clone" "$commit"
make --no-print-directory -C "$dir/clone" release RELEASE="${RELEASE:-}"
dist=$dir/clone/dist
(cd "$dist" && sha256sum --quiet --check SHA256SUMS)
cp "$dist/SHA256SUMS" "$dir/first"
make --no-print-directory -C "$dir/clone" release RELEASE="${RELEASE:-}" >/dev/null
diff "$dir/first" "$dist/SHA256SUMS" || fail "the same commit gave other bytes"

# The version before is packed by the packaging of this commit.
echo "release: the version before, $previous"
clone "$dir/previous" "$previous"
git -C "$dir/previous" checkout --quiet "$commit" -- tools/release deploy docs/metrics.md
[ -e "$dir/previous/cmd/dmarcd/man.go" ] || sed -i '/MANUALS}/d' "$dir/previous/deploy/packages/nfpm.yaml" # it has no manual pages
(cd "$dir/previous/tools/release" && go run . -o "$dir/previous/dist" -platforms "linux/$arch" 2>/dev/null)

new=$(one "$dist"/dmarcd_*_"$(dpkg --print-architecture)".deb)
old=$(one "$dir"/previous/dist/dmarcd_*.deb)
dpkg --compare-versions "$(dpkg-deb --field "$old" Version)" lt "$(dpkg-deb --field "$new" Version)" || fail "the new version does not sort after the old one"
for package in "$dist"/*.rpm; do
	rpm --query --package --list "$package" | grep -qx /usr/lib/systemd/system/dmarcd.service || fail "$package has no unit"
	rpm --query --package --list "$package" | grep -qx /usr/share/man/man1/dmarcd-check.1.gz || fail "$package has no manual pages"
	rpm --checksig --nosignature "$package" >/dev/null || fail "$package is damaged"
done

# A clean Debian, made once.
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=.cache/debian-$suite-$(dpkg --print-architecture).tar
if [ ! -e "$base" ]; then
	echo "release: a clean Debian $suite"
	mkdir -p .cache
	debootstrap --variant=minbase "$suite" "$dir/base" >"$dir/log" 2>&1 || fail "debootstrap failed"
	tar --create --numeric-owner --directory "$dir/base" --file "$base.new" .
	mv "$base.new" "$base"
	rm -rf "$dir/base"
fi
mkdir "$root"
tar --extract --numeric-owner --directory "$root" --file "$base"
mount -t proc proc "$root/proc"

inside=(chroot "$root" /usr/bin/env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive)
as_daemon=("${inside[@]}" setpriv --reuid=dmarcd --regid=dmarcd --clear-groups --)
inside() { "${inside[@]}" "$@"; }

# start runs what the unit runs, as its user, and waits until it is ready.
port=$((20000 + (RANDOM % 10000)))
start() {
	: >"$dir/log"
	local command
	command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/dmarcd.service")
	# shellcheck disable=SC2086 # a command with arguments
	"${as_daemon[@]}" env "DMARCD_LISTEN=127.0.0.1:$port" DMARCD_DNS=127.0.0.1:1 $command >>"$dir/log" 2>&1 &
	server=$!
	for _ in $(seq 600); do
		[ "$(curl --silent --output /dev/null --write-out '%{http_code}' "http://127.0.0.1:$port/readyz")" != 200 ] || return 0
		kill -0 "$server" 2>/dev/null || { server=; return 1; }
		sleep 0.1
	done
	fail "no answer from /readyz"
}
stop() {
	kill -TERM "$server"
	wait "$server" || fail "exit status $? after SIGTERM"
	server=
}
api() { curl --silent --show-error --fail-with-body --header "Authorization: Bearer $token" "http://127.0.0.1:$port/api$1" "${@:2}"; }
summary='{"total":3,"compliant":3,"non_compliant":0}'

echo "release: install"
cp "$old" "$root/package.deb"
inside dpkg --install /package.deb >"$dir/log" 2>&1 || fail "dpkg --install failed"
expect "mode of the settings" "$(inside stat --format=%U:%G:%a /etc/dmarcd/dmarcd.toml)" root:dmarcd:640
expect "mode of the data" "$(inside stat --format=%U:%G:%a /var/lib/dmarcd)" dmarcd:dmarcd:700
[ -L "$root/etc/systemd/system/multi-user.target.wants/dmarcd.service" ] || fail "the service is not enabled"
if command -v systemd-analyze >/dev/null; then
	systemd-analyze verify --root="$root" dmarcd.service 2>&1 | grep -i 'dmarcd.service' >"$dir/log" && fail "systemd does not accept the unit"
fi
start || fail "the old version does not start"
token=$(grep -o 'dmd_[0-9A-Za-z]\{40\}' "$dir/log" | head -n 1)
[ -n "$token" ] || fail "the first start printed no token"
api /domains --header 'Content-Type: application/json' --data '{"domain": "example.com"}' >/dev/null
api /reports --data-binary @aggregate/testdata/plain-rfc9990.xml >/dev/null
expect "summary" "$(api /reports/example.com)" "$summary"
"${as_daemon[@]}" dmarcd --config /etc/dmarcd/dmarcd.toml backup /var/lib/dmarcd/backup.db >/dev/null
stop
echo '# a change of the operator' >>"$root/etc/dmarcd/dmarcd.toml"

upgrade() {
	cp "$1" "$root/package.deb"
	inside dpkg --install --force-downgrade /package.deb >"$dir/log" 2>&1 || fail "dpkg --install failed"
	grep -q '^# a change of the operator$' "$root/etc/dmarcd/dmarcd.toml" || fail "the settings of the operator are gone"
}
check_data() {
	expect "summary $1" "$(api /reports/example.com)" "$summary"
	expect "domains $1" "$(api /domains | grep -o '"domain":"[^"]*"')" '"domain":"example.com"'
}

echo "release: upgrade with data"
upgrade "$new"
expect "manual page" "$(inside stat --format=%a /usr/share/man/man1/dmarcd-check.1.gz)" 644
start || fail "the new version does not start"
check_data "after the upgrade"
stop

echo "release: roll back by restore"
upgrade "$old"
if ! start; then
	# The old version refuses the newer schema, so that the operator restores the backup.
	grep -q "newer dmarcd" "$dir/log" || fail "the old version failed for another reason"
	inside sh -c 'cd /var/lib/dmarcd && rm -f dmarcd.db dmarcd.db-wal dmarcd.db-shm && install -o dmarcd -g dmarcd -m 600 backup.db dmarcd.db'
	start || fail "the old version does not start from the backup"
fi
check_data "after the restore"
stop
upgrade "$new"
start || fail "the new version does not start again"
check_data "after the second upgrade"
stop

echo "release: remove and purge"
inside dpkg --remove dmarcd >"$dir/log" 2>&1 || fail "dpkg --remove failed"
[ ! -e "$root/usr/bin/dmarcd" ] && [ -e "$root/var/lib/dmarcd/dmarcd.db" ] && [ -e "$root/etc/dmarcd/dmarcd.toml" ] || fail "removing takes the program, and leaves data and settings"
inside dpkg --purge dmarcd >"$dir/log" 2>&1 || fail "dpkg --purge failed"
left=$(inside find / -xdev -name '*dmarcd*' -not -path '/proc/*' 2>/dev/null || true)
expect "files after purge" "$left" ""
! inside getent passwd dmarcd >/dev/null || fail "the user is still there after purge"
echo "release: good"
