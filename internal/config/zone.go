package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Nameserver is an item of zone_nameservers, with the addresses of all items of its name.
type Nameserver struct {
	Name      string
	Addresses []netip.Addr
}

// Nameservers returns the name servers of the zone, in their order. ok is false if an item is not
// valid.
func (c Config) Nameservers() (servers []Nameserver, ok bool) {
	for _, item := range c.ZoneNameservers {
		text, address, given := strings.Cut(item, "=")
		name, err := dmarcd.ParseName(text)
		if err != nil {
			return nil, false
		}
		at := slices.IndexFunc(servers, func(s Nameserver) bool { return s.Name == name })
		if at < 0 {
			at = len(servers)
			servers = append(servers, Nameserver{Name: name})
		}
		if !given {
			continue
		}
		ip, err := netip.ParseAddr(address)
		if err != nil || ip.Zone() != "" {
			return nil, false
		}
		servers[at].Addresses = append(servers[at].Addresses, ip.Unmap())
	}
	return servers, true
}

// below reports whether a name is the zone or inside of it.
func (c Config) below(name string) bool {
	return name == c.Zone || strings.HasSuffix(name, "."+c.Zone)
}

// zoneSettings returns the settings of the DNS server for managed records.
func zoneSettings() []Setting {
	return []Setting{
		define("zone", zoneKind(), "", orEmpty(domainName()),
			func(c *Config) *string { return &c.Zone },
			"domain whose DNS dmarcd answers for, such as dns.example.net; requires zone_nameservers").
			defaulting("empty = off").
			needing(rule[Config]{
				want:  "set together with zone_nameservers (DMARCD_ZONE_NAMESERVERS)",
				valid: func(c Config) bool { return (c.Zone == "") == (len(c.ZoneNameservers) == 0) },
			}).
			needing(rule[Config]{
				want: "a domain of its own, without report_domain (DMARCD_REPORT_DOMAIN) and the host of base_url (DMARCD_BASE_URL): dmarcd would not answer for them",
				valid: func(c Config) bool {
					return c.Zone == "" || !c.below(c.ReportDomain) && !c.below(strings.ToLower(baseHost(c.BaseURL)))
				},
			}),
		define("zone_listen", textKind(), ":53", listenAddress("host:port, such as :53"),
			func(c *Config) *string { return &c.ZoneListen },
			"host:port of the DNS listener of zone, over UDP and TCP"),
		define("zone_nameservers", listKind(), "", nameservers(),
			func(c *Config) *[]string { return &c.ZoneNameservers },
			"comma-separated name servers that zone is delegated to, each name or name=address").
			defaulting("empty").
			needing(rule[Config]{
				want: "given with an address for each name inside of zone, such as ns1.dns.example.net=192.0.2.53",
				valid: func(c Config) bool {
					servers, _ := c.Nameservers()
					return !slices.ContainsFunc(servers, func(s Nameserver) bool { return c.Zone != "" && c.below(s.Name) && len(s.Addresses) == 0 })
				},
			}),
		define("zone_addresses", listKind(), "", each(address(), "a comma-separated list of IP addresses"),
			func(c *Config) *[]string { return &c.ZoneAddresses },
			"comma-separated public addresses of this host, for MTA-STS policies on port 443; requires tls=auto").
			defaulting("empty = no policies are served").
			needing(rule[Config]{
				want:  "empty without zone (DMARCD_ZONE)",
				valid: func(c Config) bool { return c.Zone != "" || len(c.ZoneAddresses) == 0 },
			}),
		define("zone_secondaries", listKind(), "", each(secondary(), "a comma-separated list of address[:port]=[algorithm:]name:secret, with the secret of the TSIG key in base64"),
			func(c *Config) *[]string { return &c.ZoneSecondaries },
			"comma-separated servers that may transfer zone, each address[:port]=[algorithm:]name:secret of a TSIG key").
			defaulting("empty = none").secret().
			needing(rule[Config]{
				want:  "empty without zone (DMARCD_ZONE)",
				valid: func(c Config) bool { return c.Zone != "" || len(c.ZoneSecondaries) == 0 },
			}),
	}
}

// zoneKind is a domain name in lower case. One that is not valid is kept, so that it is one mistake
// and not also a name server without a zone.
func zoneKind() kind[string] {
	k := textKind()
	k.parse = func(text string) (string, bool) { return strings.TrimSuffix(strings.ToLower(text), "."), true }
	return k
}

func baseHost(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// nameservers allows lists of at least two names.
func nameservers() rule[[]string] {
	return rule[[]string]{
		want: "a comma-separated list of at least two name servers, each a name or name=address",
		valid: func(items []string) bool {
			servers, ok := Config{ZoneNameservers: items}.Nameservers()
			return ok && len(servers) != 1
		},
	}
}

func address() rule[string] {
	return rule[string]{want: "an IP address", valid: func(v string) bool {
		ip, err := netip.ParseAddr(v)
		return err == nil && ip.Zone() == ""
	}}
}

// secondary checks the form; package zone checks the key.
func secondary() rule[string] {
	return rule[string]{want: "address[:port]=[algorithm:]name:secret", valid: func(v string) bool {
		address, key, _ := strings.Cut(v, "=")
		ip, err := netip.ParseAddr(strings.Trim(address, "[]"))
		if err != nil {
			var withPort netip.AddrPort
			withPort, err = netip.ParseAddrPort(address)
			ip = withPort.Addr()
		}
		parts := strings.Count(key, ":")
		return err == nil && ip.Zone() == "" && (parts == 1 || parts == 2)
	}}
}
