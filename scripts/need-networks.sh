#!/usr/bin/env bash
# Makes sure that there are databases of networks and countries beside the binary
# in bin: installs their data from the npm registry and converts it. Where there is
# no npm, or nothing can be installed, that is said and all else goes on: dmarcd
# then shows addresses without their networks.
set -euo pipefail
cd "$(dirname "$0")/.."

source=internal/senders/networks
cache=.cache/networks
data=$cache/node_modules/@ip-location-db
networks=bin/networks.mmdb
countries=bin/countries.mmdb

if [ -e "$networks" ] && [ -e "$countries" ] && [ "$networks" -nt "$source/package-lock.json" ]; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo "Without npm there are no databases of networks: addresses are shown without them." >&2
	exit 0
fi
mkdir -p "$cache" bin
cp "$source/package.json" "$source/package-lock.json" "$source/.npmrc" "$cache/"
if ! (cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error); then
	echo "The data of the networks could not be installed: addresses are shown without them." >&2
	exit 0
fi
# The version ends in the hour of the data: 2.3.YYYYMMDDHH.
version=$(sed -n 's/.*"version": *"[0-9]*\.[0-9]*\.\([0-9]*\)".*/\1/p' "$data/asn/package.json")
go run "./$source" -o "$networks" -built "${version:0:4}-${version:4:2}-${version:6:2}" \
	"$data/asn/asn-ipv4.csv" "$data/asn/asn-ipv6.csv"
install -m 644 "$data/iptoasn-country-mmdb/iptoasn-country.mmdb" "$countries"
