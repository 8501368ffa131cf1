package outbound_test

import (
	"net/netip"
	"testing"

	"github.com/dmarcd/dmarcd/internal/outbound"
)

func prefixes(all ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, p := range all {
		parsed = append(parsed, netip.MustParsePrefix(p))
	}
	return parsed
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		address string
		allow   []netip.Prefix
		want    bool
	}{
		{name: "public IPv4", address: "9.9.9.9", want: true},
		{name: "public IPv4, first octet above 191", address: "193.0.14.129", want: true},
		{name: "public IPv4, last unicast", address: "223.255.255.254", want: true},
		{name: "beside CGNAT, below", address: "100.63.255.255", want: true},
		{name: "beside CGNAT, above", address: "100.128.0.0", want: true},
		{name: "beside private 172.16/12", address: "172.32.0.1", want: true},
		{name: "AS112, globally reachable", address: "192.175.48.1", want: true},
		{name: "public IPv6", address: "2620:fe::fe", want: true},
		{name: "public IPv6 of 2001, above the assignments", address: "2001:500:2::c", want: true},
		{name: "public IPv6, last of 2000::/3 but documentation", address: "3ffe::1", want: true},
		{name: "IPv4-mapped, public", address: "::ffff:9.9.9.9", want: true},

		{name: "the zero value", address: ""},
		{name: "unspecified IPv4", address: "0.0.0.0"},
		{name: "this network", address: "0.1.2.3"},
		{name: "loopback", address: "127.0.0.1"},
		{name: "loopback, last", address: "127.255.255.255"},
		{name: "private 10/8", address: "10.1.2.3"},
		{name: "private 172.16/12", address: "172.31.255.255"},
		{name: "private 192.168/16", address: "192.168.0.1"},
		{name: "link-local", address: "169.254.0.1"},
		{name: "metadata service", address: "169.254.169.254"},
		{name: "metadata service behind CGNAT", address: "100.100.100.200"},
		{name: "platform service of Azure", address: "168.63.129.16"},
		{name: "CGNAT, first", address: "100.64.0.0"},
		{name: "CGNAT, last", address: "100.127.255.255"},
		{name: "protocol assignments", address: "192.0.0.192"},
		{name: "documentation 1", address: "192.0.2.1"},
		{name: "documentation 2", address: "198.51.100.1"},
		{name: "documentation 3", address: "203.0.113.1"},
		{name: "6to4 relay", address: "192.88.99.1"},
		{name: "benchmarking", address: "198.19.255.255"},
		{name: "multicast", address: "224.0.0.1"},
		{name: "multicast, last", address: "239.255.255.255"},
		{name: "reserved", address: "240.0.0.1"},
		{name: "broadcast", address: "255.255.255.255"},

		{name: "unspecified IPv6", address: "::"},
		{name: "loopback IPv6", address: "::1"},
		{name: "IPv4-compatible, private", address: "::10.0.0.1"},
		{name: "IPv4-compatible, public", address: "::9.9.9.9"},
		{name: "IPv4-mapped, loopback", address: "::ffff:127.0.0.1"},
		{name: "IPv4-mapped, loopback, in hex", address: "::ffff:7f00:1"},
		{name: "IPv4-mapped, private", address: "::ffff:192.168.1.1"},
		{name: "IPv4-mapped, metadata service", address: "::ffff:169.254.169.254"},
		{name: "IPv4-translated, loopback", address: "::ffff:0:127.0.0.1"},
		{name: "IPv4-translated, public", address: "::ffff:0:9.9.9.9"},
		{name: "NAT64, loopback", address: "64:ff9b::127.0.0.1"},
		{name: "NAT64, public", address: "64:ff9b::9.9.9.9"},
		{name: "NAT64, local prefix", address: "64:ff9b:1::10.0.0.1"},
		{name: "6to4, loopback", address: "2002:7f00:1::1"},
		{name: "6to4, public", address: "2002:909:909::1"},
		{name: "Teredo", address: "2001:0:4136:e378:8000:63bf:3fff:fdd2"},
		{name: "ORCHIDv2", address: "2001:20::1"},
		{name: "benchmarking IPv6", address: "2001:2::1"},
		{name: "documentation IPv6", address: "2001:db8::1"},
		{name: "documentation IPv6, second", address: "3fff::1"},
		{name: "discard", address: "100::1"},
		{name: "segment routing", address: "5f00::1"},
		{name: "unassigned", address: "4000::1"},
		{name: "ULA fc00", address: "fc00::1"},
		{name: "ULA fd00", address: "fd00:ec2::254"},
		{name: "link-local IPv6", address: "fe80::1"},
		{name: "link-local IPv6 with zone", address: "fe80::1%eth0"},
		{name: "public IPv6 with zone", address: "2620:fe::fe%eth0"},
		{name: "site-local", address: "fec0::1"},
		{name: "multicast IPv6, link", address: "ff02::1"},
		{name: "multicast IPv6, global", address: "ff0e::1"},

		{name: "allowed private", address: "10.1.2.3", allow: prefixes("10.0.0.0/8"), want: true},
		{name: "allowed private, IPv4-mapped", address: "::ffff:10.1.2.3", allow: prefixes("10.0.0.0/8"), want: true},
		{name: "allowed loopback IPv6", address: "::1", allow: prefixes("::1/128"), want: true},
		{name: "allowed NAT64", address: "64:ff9b::10.1.2.3", allow: prefixes("64:ff9b::/96"), want: true},
		{name: "outside of what is allowed", address: "10.2.0.0", allow: prefixes("10.1.0.0/16")},
		{name: "NAT64 of an allowed IPv4", address: "64:ff9b::10.1.2.3", allow: prefixes("10.0.0.0/8")},
		{name: "6to4 of an allowed IPv4", address: "2002:a01:203::1", allow: prefixes("10.0.0.0/8")},
		{name: "IPv4-compatible of an allowed IPv4", address: "::10.1.2.3", allow: prefixes("10.0.0.0/8")},
		{name: "IPv4-translated of an allowed IPv4", address: "::ffff:0:10.1.2.3", allow: prefixes("10.0.0.0/8")},
		{name: "all of IPv4 allowed, IPv6 asked for", address: "::1", allow: prefixes("0.0.0.0/0")},
		{name: "zone in an allowed network", address: "fe80::1%eth0", allow: prefixes("fe80::/10")},
		{name: "public although something else is allowed", address: "9.9.9.9", allow: prefixes("10.0.0.0/8"), want: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var address netip.Addr
			if row.address != "" {
				address = netip.MustParseAddr(row.address)
			}
			if got := (&outbound.Dialer{Allow: row.allow}).Permits(address); got != row.want {
				t.Errorf("%s: got %v, want %v", row.address, got, row.want)
			}
		})
	}
}
