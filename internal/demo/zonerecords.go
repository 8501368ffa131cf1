package demo

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// nameserver answers for all domains.
const nameserver = "ns1.name-service.example"

// Zone returns the DNS as it was at a moment.
func (s *Scenario) Zone(at time.Time) *Zone {
	z := newZone()
	z.authority("example")
	z.authority("arpa")
	ago := s.ago(at)
	for _, h := range mailNetworks {
		z.mailNetwork(h, ago)
	}
	for i := range s.domains {
		s.publish(z, &s.domains[i], ago)
	}
	z.host(nameserver, netip.MustParseAddr("192.0.2.254"))
	return z
}

// hostingShrank is how many days ago a network was taken out of the SPF records of
// the mail hosting, which many include.
const hostingShrank = 147

// mailNetwork adds the hosts of a mailNetwork and its own SPF records on a day.
func (z *Zone) mailNetwork(h *mailNetwork, ago int) {
	if h.domain == "" {
		return
	}
	z.authority(h.domain)
	for i := range h.hosts {
		z.host(h.hostName(i), h.address(i))
		z.pointTo(dns.PTR, senders.PointerName(h.address(i)), h.hostName(i))
	}
	z.host(h.exchange())
	networks := "ip4:" + h.v4.String()
	if h.v6.IsValid() {
		networks += " ip6:" + h.v6.String()
	}
	names := h.spfNames()
	for _, asked := range names {
		switch {
		case asked.holds:
			z.text(asked.name, "v=spf1 "+networks+" -all")
		case asked == names[0]:
			z.text(asked.name, "v=spf1 include:"+names[1].name+" include:"+names[2].name+" -all")
		case h == cloudpost && ago > hostingShrank:
			z.text(asked.name, "v=spf1 ip4:192.0.2.128/28 ip4:192.0.2.144/28 -all")
		default:
			z.text(asked.name, "v=spf1 ip4:192.0.2.128/28 -all") // a network that is not used any more
		}
	}
	z.text(h.envelope(), "v=spf1 include:"+h.spfName()+" -all")
}

// publish adds the records of a domain of the scenario on a day.
func (s *Scenario) publish(z *Zone, d *domain, ago int) {
	z.authority(d.name)
	z.signed[d.name] = d.signed
	address := s.options.ReportAddress(d.name)
	z.text("_dmarc."+d.name, d.record(ago, address))
	z.reportsGoTo(d, address)
	z.text(d.name, d.sendingAt(ago).record())
	for name, mailNetwork := range d.delegated {
		z.text(name, "v=spf1 include:"+mailNetwork.spfName()+" -all")
	}
	for _, k := range d.keys {
		if k.there(ago) {
			z.text(k.selector+"._domainkey."+d.name, "v=DKIM1; k=rsa; p="+s.publicKey(d.name, k))
		}
	}
	if d.asksForTLSReports(ago) {
		z.text("_smtp._tls."+d.name, "v=TLSRPTv1; rua=mailto:"+address)
	}
	if len(d.mx) == 0 {
		z.add(dns.Record{Name: d.name, Type: dns.MX}) // RFC 7505
		return
	}
	z.host(d.name, webstack.address(0)) // its web site
	for i, h := range d.mx {
		name, _ := h.exchange()
		z.add(dns.Record{Name: d.name, Type: dns.MX, Host: name, Preference: uint16(10 * (i + 1))})
		if d.signed {
			z.add(dns.Record{Name: "_25._tcp." + name, Type: dns.TLSA, Raw: certificateRecord(name)})
		}
	}
}

// reportsGoTo adds what makes receivers send the reports about a domain to an
// address: a host that takes mail there and, where the address is elsewhere, leave to
// send reports there (RFC 9990 §4).
func (z *Zone) reportsGoTo(d *domain, address string) {
	_, at, _ := strings.Cut(address, "@")
	if !dmarcd.Covers(d.name, at) {
		z.text(d.name+"._report._dmarc."+at, "v=DMARC1;")
	}
	if len(z.records[dns.Question{Name: at, Type: dns.MX}]) == 0 {
		z.authority(at)
		z.add(dns.Record{Name: at, Type: dns.MX, Host: "mx." + at, Preference: 10})
		z.host("mx."+at, netip.MustParseAddr("192.0.2.253"))
	}
}

// certificateRecord returns the data of the TLSA record of a host: DANE-EE, the hash
// of the public key (RFC 7672 §3.1.1).
func certificateRecord(host string) []byte {
	hash := sha256.Sum256([]byte(host))
	return append([]byte{3, 1, 1}, hash[:]...)
}

func (d *domain) asksForTLSReports(ago int) bool { return ago <= d.tlsReports && d.tlsReports != 0 }

// authority makes a name the top of a zone.
func (z *Zone) authority(name string) {
	if z.apex(name) == name {
		return
	}
	z.pointTo(dns.NS, name, nameserver)
	z.add(dns.Record{Name: name, Type: dns.SOA, Raw: startOfAuthority(name)})
}

// startOfAuthority returns the data of an SOA record (RFC 1035 §3.3.13).
func startOfAuthority(name string) []byte {
	raw := wireName(nil, nameserver)
	raw = wireName(raw, "hostmaster."+name)
	const serial, refresh, retry, expire = 1, 7200, 3600, 1209600
	for _, number := range []uint32{serial, refresh, retry, expire, uint32(timeToLive.Seconds())} {
		raw = binary.BigEndian.AppendUint32(raw, number)
	}
	return raw
}

// wireName appends a name in the form of RFC 1035 §3.1.
func wireName(raw []byte, name string) []byte {
	for _, label := range dns.Labels(name) {
		raw = append(raw, byte(len(label))) //nolint:gosec // at most 63
		raw = append(raw, label...)
	}
	return append(raw, 0)
}

// publicKey returns a key that looks like any other. It was not made from primes:
// there is no private key for it.
func (s *Scenario) publicKey(domain string, k key) string {
	dice := s.random(k.selector+"._domainkey."+domain, k.bits)
	modulus := make([]byte, k.bits/8)
	for i := range modulus {
		modulus[i] = byte(dice.IntN(256) & 0xff)
	}
	modulus[0] |= 0x80
	modulus[len(modulus)-1] |= 1
	const exponent = 65537
	der, _ := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: exponent}) // RSA can be written
	return base64.StdEncoding.EncodeToString(der)
}
