package demo

import (
	"cmp"
	_ "embed" // for the scenario
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

//go:embed scenario.toml
var scenarioText string

//go:embed scenario.zone
var zoneText string

// scenarioData is the content of scenario.toml and scenario.zone.
type scenarioData struct {
	Networks   []*network
	Receivers  []receiver
	Subjects   []string
	Rhythms    map[string][7]float64
	Domains    []domain
	People     map[string]struct{ Name, Address string }
	Steps      []step
	NonReports []nonReport

	records    []record
	changeDays []int // the days on which records changed, the oldest first
}

// network is an organization and its network with sending hosts.
type network struct {
	Key, Name string
	Number    uint32 // of the autonomous system
	Country   string
	V4, V6    netip.Prefix
	Hosts     int
	Domain    string
	Label     string
	Category  senders.Category
	Spoofs    bool
}

// receiver is a mail receiver that sends reports.
type receiver struct {
	Name, Domain, Method           string
	Fraction                       float64
	Trusts, Lenient, Failures, TLS bool
}

// Domain is one of the domains of the scenario.
type Domain struct {
	Name string
	// Team is the name of the team that owns it.
	Team    string
	Purpose dmarcd.Purpose
	Parked  bool
}

type domain struct {
	Domain
	Streams []stream
	Spoofed map[string]float64
}

// stream is one kind of mail that is sent as a domain.
type stream struct {
	Network                  string
	Daily                    float64
	Rhythm                   string // "" for waves
	Since, Until             int
	From, Envelope, Selector string
	Signed, Forwarded, List  bool

	network *network
}

// record is a DNS record that exists from one day until another.
type record struct {
	since, until int
	text         string
}

// there reports whether a day, counted back from today, is in a span. A limit of 0 is the start or
// the end of the scenario.
func there(since, until, ago int) bool {
	return (since == 0 || ago <= since) && (until == 0 || ago > until)
}

func (r record) there(ago int) bool { return there(r.since, r.until, ago) }

// data parses the scenario once.
var data = sync.OnceValue(func() *scenarioData {
	s := new(scenarioData)
	read, err := toml.Decode(scenarioText, s)
	if unknown := read.Undecoded(); err == nil && len(unknown) > 0 {
		err = fmt.Errorf("unknown keys %v", unknown)
	}
	if err = errors.Join(err, s.readZone()); err != nil {
		panic(fmt.Sprint("demo: ", err)) // the files are embedded
	}
	for i := range s.Domains {
		s.complete(&s.Domains[i])
	}
	return s
})

// readZone reads the records, and finds the days on which they changed.
func (s *scenarioData) readZone() error {
	changes := map[int]bool{daysOfScenario: true}
	for line := range strings.Lines(zoneText) {
		fields := strings.SplitN(line, " ", 3)
		if len(fields) < 3 || fields[0] == ";" {
			continue
		}
		since, err := strconv.Atoi(fields[0])
		until, err2 := strconv.Atoi(fields[1])
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		s.records = append(s.records, record{since, until, fields[2]})
		changes[since], changes[until] = true, true
	}
	delete(changes, 0)
	s.changeDays = slices.Sorted(maps.Keys(changes))
	slices.Reverse(s.changeDays)
	return nil
}

// complete sets missing fields of the streams of a domain, and adds the streams of attackers.
func (s *scenarioData) complete(d *domain) {
	for _, from := range slices.Sorted(maps.Keys(d.Spoofed)) {
		attackers := slices.DeleteFunc(slices.Clone(s.Networks), func(n *network) bool { return !n.Spoofs })
		for _, n := range attackers {
			d.Streams = append(d.Streams, stream{Network: n.Key, Daily: d.Spoofed[from] / float64(len(attackers)), From: from, Envelope: from})
		}
	}
	for i := range d.Streams {
		stream := &d.Streams[i]
		stream.From, stream.Envelope = cmp.Or(stream.From, d.Name), cmp.Or(stream.Envelope, d.Name)
		stream.network = s.Networks[slices.IndexFunc(s.Networks, func(n *network) bool { return n.Key == stream.Network })]
	}
}

// address returns the address of a sending host, counted from 0. If the network has
// both families, every third host uses IPv6.
func (n *network) address(host int) netip.Addr {
	first := n.V4.Addr()
	if n.V6.IsValid() && host%3 == 2 {
		first = n.V6.Addr()
	}
	octets := first.As16()
	last := octets[12:]
	binary.BigEndian.PutUint32(last, binary.BigEndian.Uint32(last)+uint32(host)+1) //nolint:gosec // it is small
	return netip.AddrFrom16(octets).Unmap()
}

// named returns the number of hosts with names.
func (n *network) named() int {
	if n.Domain == "" {
		return 0
	}
	return n.Hosts
}

// Locate returns the origin of an address of the scenario. All are reserved for documentation
// and tests: no mail comes from them.
func Locate(addr netip.Addr) (senders.Origin, bool) {
	for _, n := range data().Networks {
		if n.V4.Contains(addr) || n.V6.Contains(addr) {
			return senders.Origin{Network: senders.Network{Number: n.Number, Name: n.Name}, Country: n.Country}, true
		}
	}
	return senders.Origin{}, false
}

// Senders returns the well-known services of the scenario, for a senders.Catalogue.
func Senders() []senders.Sender {
	var known []senders.Sender
	for _, n := range data().Networks {
		if n.Category != "" {
			known = append(known, senders.Sender{
				Key: n.Key, Name: n.Name, Kind: senders.Service, Category: n.Category,
				Networks: []uint32{n.Number}, Hosts: []string{n.Domain}, Domains: []string{n.Domain},
				Setup: "Authenticate the domain in " + n.Name + " and publish the DKIM record and the return-path record that it shows.",
			})
		}
	}
	return known
}
