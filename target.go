package dmarcd

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// TargetKind is how a DNS server takes changes.
type TargetKind string

// The kinds of targets.
const (
	TargetRFC2136  TargetKind = "rfc2136"  // dynamic updates with TSIG
	TargetPowerDNS TargetKind = "powerdns" // the HTTP API of PowerDNS
)

// PublishTarget is the DNS server to which the managed records of a domain are published, instead of a
// CNAME record.
type PublishTarget struct {
	Domain DomainID
	Kind   TargetKind
	// Server is host:port, or the URL of the API.
	Server string
	// Zone is the zone at the server, the domain or one above it.
	Zone string
	// Secret is the key, encrypted. It is set only for publishing.
	Secret    []byte
	CreatedAt time.Time
}

// MaxTargetKey is the length of the key of a target, in bytes.
const MaxTargetKey = 1000

// TargetFor returns a target for a domain in its stored form, or an *InvalidError. Without a port the
// server is asked at port 53, without a zone that of the domain.
func TargetFor(domain string, t PublishTarget) (PublishTarget, error) {
	t.Server, t.Zone = strings.TrimSpace(t.Server), dns.Name(strings.TrimSpace(t.Zone))
	if t.Zone == "" {
		t.Zone = domain
	}
	if !strings.HasSuffix("."+domain, "."+t.Zone) || len(dns.Labels(t.Zone)) < 2 {
		return t, &InvalidError{Field: "zone", Message: "The zone is the domain, or a domain above it."}
	}
	var ok bool
	switch t.Kind {
	case TargetRFC2136:
		if t.Server, ok = hostPort(t.Server); !ok {
			return t, &InvalidError{Field: "server", Message: "The server is a host name or an IP address, with a port if it is not 53: ns1.example.com or 192.0.2.53:5353."}
		}
	case TargetPowerDNS:
		u, err := url.Parse(t.Server)
		if err != nil || len(t.Server) > maxTargetServer || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return t, &InvalidError{Field: "server", Message: "The server is the URL of the API of PowerDNS: https://dns.example.com:8081"}
		}
		t.Server = strings.TrimRight(t.Server, "/")
	default:
		return t, &InvalidError{Field: "kind", Message: "The kind of a target is rfc2136 or powerdns."}
	}
	return t, nil
}

// maxTargetServer is the length of the URL of a target, in bytes.
const maxTargetServer = 300

// hostPort returns a host as host:port, with port 53 if there is none.
func hostPort(server string) (string, bool) {
	host, port := server, "53"
	if _, err := netip.ParseAddr(server); err != nil {
		if i := strings.LastIndexByte(server, ':'); i >= 0 {
			host, port = server[:i], server[i+1:]
		}
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || strings.ContainsAny(host, "/@ ") {
		return "", false
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		return "[" + host + "]:" + port, true
	}
	return host + ":" + port, dns.ValidName(dns.Name(host)) && !strings.Contains(host, ":")
}

// SecretContext is the context that Secret is bound to.
func (t PublishTarget) SecretContext(team TeamID) string {
	return "target " + team.String() + "/" + t.Domain.String()
}
