// Package zone is an authoritative DNS server for one zone, which it answers from memory
// (RFC 1034, 1035, 2308, 6604, 6891, 8482), and a primary for secondaries: AXFR, IXFR and NOTIFY
// with TSIG (RFC 5936, 1995, 1996, 8945). Begin in answer.go.
//
// The zone has no delegations and no wildcards, and is not signed: a secondary may sign it. The
// caller stores the records and numbers their changes.
package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
)

// The timers of the zone in seconds. Secondaries serve it for 28 days without their primary.
const (
	TTL         = 300
	refresh     = 900
	retry       = 300
	expire      = 28 * 24 * 60 * 60
	negativeTTL = 60
)

// CAA is a type that the package dns has no need for (RFC 8659).
const CAA dns.Type = 257

// Nameserver is a server that the parent zone delegates to. Name is fully qualified, with or
// without the final dot; one inside the zone needs addresses.
type Nameserver struct {
	Name      string
	Addresses []netip.Addr
}

// Record is one record of a name. Type is TXT, CNAME, A, AAAA or CAA. Data is the text of a TXT
// record, of any length that fits into an answer, and the presentation format of the others.
type Record struct {
	Type dns.Type
	Data string
}

// Change replaces all records of a name. Without records the name is removed.
type Change struct {
	Name    string // fully qualified, with or without the final dot
	Records []Record
}

// maxRecordBytes limits the records of a name, so that every answer fits into a message over TCP
// and a TXT record of the usual size into one over UDP.
const maxRecordBytes = 16 << 10

// maxHistory limits the records of changes that are remembered for incremental transfers.
const maxHistory = 20_000

// Zone has the records of a zone. It is safe for concurrent use.
type Zone struct {
	apex    string // canonical: lower case with a final dot
	primary string // the first name server

	mu     sync.RWMutex
	serial uint32
	names  map[string]*name
	// history has the latest changes, oldest first and without a gap, and remembered counts their
	// records.
	history    []version
	remembered int
}

// name is an owner of records, or an empty non-terminal above one.
type name struct {
	records []mdns.RR // never modified
	below   int       // number of names directly or indirectly below that have records
}

// version is what a change of the serial removed and added.
type version struct {
	from, to       uint32
	removed, added []mdns.RR
}

// New returns a zone that has only its name servers. Name servers outside of the zone have no
// addresses here.
func New(apex string, serial uint32, servers []Nameserver) (*Zone, error) {
	z := &Zone{apex: mdns.CanonicalName(apex), serial: serial, names: make(map[string]*name)}
	if _, ok := mdns.IsDomainName(z.apex); !ok || z.apex == "." {
		return nil, fmt.Errorf("zone %q: it is not a domain name", apex)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("zone %q: it has no name server", apex)
	}
	z.primary = mdns.CanonicalName(servers[0].Name)
	own := &name{}
	z.names[z.apex] = own
	for _, server := range servers {
		host := mdns.CanonicalName(server.Name)
		if _, ok := mdns.IsDomainName(host); !ok || host == "." {
			return nil, fmt.Errorf("name server %q: it is not a host name", server.Name)
		}
		own.records = append(own.records, &mdns.NS{Hdr: header(z.apex, mdns.TypeNS), Ns: host})
		if !mdns.IsSubDomain(z.apex, host) {
			continue
		}
		if len(server.Addresses) == 0 {
			return nil, fmt.Errorf("name server %q: it is inside the zone and has no address", server.Name)
		}
		var addresses []mdns.RR
		for _, address := range server.Addresses {
			addresses = append(addresses, addressRecord(host, address.Unmap()))
		}
		if host == z.apex {
			own.records = append(own.records, addresses...)
		} else {
			z.replace(host, addresses)
		}
	}
	return z, nil
}

func header(owner string, kind uint16) mdns.RR_Header {
	return mdns.RR_Header{Name: owner, Rrtype: kind, Class: mdns.ClassINET, Ttl: TTL}
}

func addressRecord(owner string, address netip.Addr) mdns.RR {
	if address.Is4() {
		return &mdns.A{Hdr: header(owner, mdns.TypeA), A: address.AsSlice()}
	}
	return &mdns.AAAA{Hdr: header(owner, mdns.TypeAAAA), AAAA: address.AsSlice()}
}

// Apex returns the name of the zone, in lower case without the final dot.
func (z *Zone) Apex() string { return strings.TrimSuffix(z.apex, ".") }

// Serial returns the serial of what is served.
func (z *Zone) Serial() uint32 {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.serial
}

// Load is Apply of the first records, at the serial that the zone has.
func (z *Zone) Load(changes []Change) error { return z.apply(0, changes) }

// Apply serves changes under a new serial, which must be larger than the last. All of them become
// visible at once. A change that is not valid is left out: its name keeps the records that it
// has, and the returned error names it.
func (z *Zone) Apply(serial uint32, changes []Change) error {
	if last := z.Serial(); serial <= last {
		return fmt.Errorf("zone %s: the serial %d is not larger than %d", z.Apex(), serial, last)
	}
	return z.apply(serial, changes)
}

// apply replaces records. A serial of 0 keeps the serial and the history as they are.
func (z *Zone) apply(serial uint32, changes []Change) error {
	type replacement struct {
		owner   string
		records []mdns.RR
	}
	var errs []error
	replacements := make([]replacement, 0, len(changes))
	for _, change := range changes {
		owner := mdns.CanonicalName(change.Name)
		records, err := z.parse(owner, change.Records)
		if err != nil {
			errs = append(errs, fmt.Errorf("zone record %q: %w", change.Name, err))
			continue
		}
		replacements = append(replacements, replacement{owner, records})
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	v := version{from: z.serial, to: serial}
	for _, r := range replacements {
		removed := z.replace(r.owner, r.records)
		if serial != 0 {
			v.removed, v.added = append(v.removed, removed...), append(v.added, r.records...)
		}
	}
	if serial != 0 {
		z.serial = serial
		z.remember(v)
	}
	return errors.Join(errs...)
}

// parse checks the records of a name and converts them.
func (z *Zone) parse(owner string, records []Record) ([]mdns.RR, error) {
	if !isName(owner) || !mdns.IsSubDomain(z.apex, owner) || owner == z.apex {
		return nil, fmt.Errorf("it is not a name below %s", z.Apex())
	}
	if z.isNameserver(owner) {
		return nil, errors.New("it is the name of a name server")
	}
	var parsed []mdns.RR
	size := 0
	for _, record := range records {
		rr, err := parseRecord(owner, record)
		if err != nil {
			return nil, err
		}
		if size += mdns.Len(rr); size > maxRecordBytes {
			return nil, fmt.Errorf("its records take more than %d bytes", maxRecordBytes)
		}
		parsed = append(parsed, rr)
	}
	for _, rr := range parsed {
		if rr.Header().Rrtype == mdns.TypeCNAME && len(parsed) > 1 {
			return nil, errors.New("a CNAME record is the only record of its name (RFC 1034 §3.6.2)")
		}
	}
	return parsed, nil
}

// isName reports whether a text is a domain name of letters, digits, hyphens and underscores: nothing
// in it needs an escape.
func isName(text string) bool {
	_, ok := mdns.IsDomainName(text)
	return ok && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	})
}

// isNameserver reports whether an owner has the addresses of a name server: they come from the
// configuration. The records of the apex never change.
func (z *Zone) isNameserver(owner string) bool {
	for _, rr := range z.apexRecords() {
		if ns, ok := rr.(*mdns.NS); ok && ns.Ns == owner {
			return true
		}
	}
	return false
}

func (z *Zone) apexRecords() []mdns.RR {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.names[z.apex].records
}

// maxStringBytes is the length of one string of a TXT record.
const maxStringBytes = 255

func parseRecord(owner string, record Record) (mdns.RR, error) {
	switch record.Type {
	case dns.TXT:
		return textRecord(owner, record.Data), nil
	case dns.A, dns.AAAA:
		address, err := netip.ParseAddr(record.Data)
		if err != nil || address.Is4() != (record.Type == dns.A) || address.Is4In6() || address.Zone() != "" {
			return nil, fmt.Errorf("%q is not an address of its type", record.Data)
		}
		return addressRecord(owner, address), nil
	case dns.CNAME:
		target := mdns.CanonicalName(record.Data)
		if !isName(target) || target == "." {
			return nil, fmt.Errorf("%q is not a name", record.Data)
		}
		return &mdns.CNAME{Hdr: header(owner, mdns.TypeCNAME), Target: target}, nil
	case CAA:
		parser := mdns.NewZoneParser(strings.NewReader(fmt.Sprintf("caa. %d IN CAA %s\n", TTL, record.Data)), ".", "")
		rr, ok := parser.Next()
		_, more := parser.Next()
		caa, isCAA := rr.(*mdns.CAA)
		if !ok || more || parser.Err() != nil || !isCAA {
			return nil, fmt.Errorf("%q is not the data of a CAA record", record.Data)
		}
		caa.Hdr.Name = owner
		return caa, nil
	}
	return nil, fmt.Errorf("records of type %d are not served", record.Type)
}

// textRecord divides a text into strings. The library reads a backslash in them as an escape.
func textRecord(owner, text string) mdns.RR {
	rr := &mdns.TXT{Hdr: header(owner, mdns.TypeTXT)}
	for {
		part := text[:min(len(text), maxStringBytes)]
		rr.Txt = append(rr.Txt, strings.ReplaceAll(part, `\`, `\\`))
		if text = text[len(part):]; text == "" {
			return rr
		}
	}
}

// replace sets the records of an owner below the apex and returns those that it had. The caller
// holds z.mu.
func (z *Zone) replace(owner string, records []mdns.RR) (removed []mdns.RR) {
	n := z.names[owner]
	if n != nil {
		removed = n.records
	}
	if len(removed) == 0 && len(records) == 0 {
		return nil
	}
	if n == nil {
		n = &name{}
		z.names[owner] = n
	}
	n.records = records
	switch {
	case len(removed) == 0:
		z.count(owner, 1)
	case len(records) == 0:
		z.count(owner, -1)
	}
	if len(n.records) == 0 && n.below == 0 {
		delete(z.names, owner)
	}
	return removed
}

// count adds to the number of names below each ancestor of an owner; those that have none and no
// records do not exist (RFC 8020).
func (z *Zone) count(owner string, by int) {
	for owner != z.apex {
		owner = parent(owner)
		n := z.names[owner]
		if n == nil {
			n = &name{}
			z.names[owner] = n
		}
		if n.below += by; n.below == 0 && len(n.records) == 0 {
			delete(z.names, owner)
		}
	}
}

// parent returns the name without its first label.
func parent(owner string) string {
	next, end := mdns.NextLabel(owner, 0)
	if end {
		return "."
	}
	return owner[next:]
}

// remember adds a version to the history. The caller holds z.mu.
func (z *Zone) remember(v version) {
	z.history = append(z.history, v)
	z.remembered += v.size()
	for z.remembered > maxHistory {
		z.remembered -= z.history[0].size()
		z.history[0] = version{} // releases its records
		z.history = z.history[1:]
	}
}

// size is the number of records in an incremental transfer, with the two SOA records.
func (v version) size() int { return len(v.removed) + len(v.added) + 2 }

// soa returns the SOA record of a serial.
func (z *Zone) soa(serial uint32) *mdns.SOA {
	return &mdns.SOA{
		Hdr: header(z.apex, mdns.TypeSOA), Ns: z.primary, Mbox: "hostmaster." + z.apex,
		Serial: serial, Refresh: refresh, Retry: retry, Expire: expire, Minttl: negativeTTL,
	}
}

// all returns every record but the SOA record, and the serial.
func (z *Zone) all() (serial uint32, records []mdns.RR) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	records = make([]mdns.RR, 0, len(z.names))
	for _, n := range z.names {
		records = append(records, n.records...)
	}
	return z.serial, records
}

// since returns the versions after a serial, oldest first. Without them, known is false.
func (z *Zone) since(serial uint32) (current uint32, versions []version, known bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if serial >= z.serial {
		return z.serial, nil, true
	}
	for i, v := range z.history {
		if v.from == serial {
			return z.serial, append([]version(nil), z.history[i:]...), true
		}
	}
	return z.serial, nil, false
}
