package resolver

import (
	"net/netip"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	// maxNameBytes is the length limit of a name on the wire (RFC 1035 §3.1),
	// which leaves 253 characters for its text without a trailing dot.
	maxNameBytes = 255
	// maxTTL is the largest TTL in seconds; RFC 2181 §8 says to take a larger
	// number as zero.
	maxTTL = 1<<31 - 1
)

// canExist reports whether a name fits the limits of a DNS message.
func canExist(name string) bool {
	_, ok := wireName(name)
	return ok
}

// wireName returns a name as it reads when it comes back in a message: with the
// octets escaped that the text form reserves (RFC 1035 §5.1). It reports false
// for a name that cannot be put into a message.
func wireName(name string) (string, bool) {
	if dns.IsHostname(name) {
		return dns.Name(name), true // nothing to escape
	}
	var buffer [maxNameBytes]byte
	end, err := mdns.PackDomainName(mdns.Fqdn(name), buffer[:], 0, nil, false)
	if err != nil || end > maxNameBytes {
		return "", false
	}
	text, _, err := mdns.UnpackDomainName(buffer[:end], 0)
	return dns.Name(text), err == nil
}

// newRecord converts a record from the message library. It fails if the data of
// a type that is kept raw cannot be put together again.
func newRecord(rr mdns.RR) (record dns.Record, err error) {
	header := rr.Header()
	record = dns.Record{Name: dns.Name(header.Name), Type: dns.Type(header.Rrtype), TTL: ttl(*header)}
	switch rr := rr.(type) {
	case *mdns.TXT:
		record.Text = make([]string, len(rr.Txt))
		for i, text := range rr.Txt {
			record.Text[i] = unescape(text)
		}
	case *mdns.A:
		record.Addr, _ = netip.AddrFromSlice(rr.A.To4())
	case *mdns.AAAA:
		record.Addr, _ = netip.AddrFromSlice(rr.AAAA.To16())
	case *mdns.CNAME:
		record.Host = dns.Name(rr.Target)
	case *mdns.DNAME:
		record.Host = dns.Name(rr.Target)
	case *mdns.NS:
		record.Host = dns.Name(rr.Ns)
	case *mdns.PTR:
		record.Host = dns.Name(rr.Ptr)
	case *mdns.MX:
		record.Host, record.Preference = dns.Name(rr.Mx), rr.Preference
	default:
		record.Raw, err = rawData(rr)
	}
	return record, err
}

// ttl returns the TTL of a record.
func ttl(header mdns.RR_Header) time.Duration {
	if header.Ttl > maxTTL {
		return 0
	}
	return time.Duration(header.Ttl) * time.Second
}

// rawData returns the data of a record as on the wire, its names uncompressed.
func rawData(rr mdns.RR) ([]byte, error) {
	const fixed = 10 // type, class, TTL and length, after the owner
	buffer := make([]byte, mdns.Len(rr))
	end, err := mdns.PackRR(rr, buffer, 0, nil, false)
	if err != nil {
		return nil, err
	}
	_, owner, err := mdns.UnpackDomainName(buffer, 0)
	if err != nil {
		return nil, err
	}
	return buffer[owner+fixed : end], nil
}

// unescape turns a character-string from the text form of RFC 1035 §5.1, in
// which the message library hands it over, into the octets of the wire: \" and
// \\ stand for the character, \DDD for an octet in decimal.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	octets := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			octets = append(octets, text[i])
		case i+3 < len(text) && isDigit(text[i+1]):
			octets = append(octets, (text[i+1]-'0')*100+(text[i+2]-'0')*10+(text[i+3]-'0'))
			i += 3
		default:
			octets = append(octets, text[i+1])
			i++
		}
	}
	return string(octets)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
