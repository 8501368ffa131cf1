package store

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// mailReader puts records together whose addresses and details come as text, from
// several places.
type mailReader struct {
	dmarcd.SentMail
	// addresses are the places of those that are IPv4, as most are: a number is
	// found in half the time. otherAddresses are those of all others, by their text.
	addresses      map[uint32]uint32
	otherAddresses map[string]uint32
	details        map[string]uint32
	// texts are the details of the identities.
	texts []string
	// left is how many records there may still be.
	left int
}

func newMailReader(limit int) *mailReader {
	return &mailReader{
		addresses: make(map[uint32]uint32), otherAddresses: make(map[string]uint32), details: make(map[string]uint32), left: limit,
	}
}

// expect is told how many records come, and refuses those that are too many.
func (r *mailReader) expect(records int) error {
	if r.left -= records; r.left < 0 {
		return dmarcd.ErrLimit
	}
	return nil
}

// address returns the place of an address, or of what stands in its place. The text is
// copied where it is new.
func (r *mailReader) address(text []byte) uint32 {
	if at, known := r.otherAddresses[string(text)]; known {
		return at
	}
	if addr, ok := parseIPv4(string(text)); ok {
		return r.addressIPv4(addr)
	}
	at := r.addAddress(string(text))
	r.otherAddresses[r.Addresses[at]] = at
	return at
}

func (r *mailReader) addressIPv4(addr [4]byte) uint32 {
	number := binary.BigEndian.Uint32(addr[:])
	at, known := r.addresses[number]
	if !known {
		at = r.addAddress(netip.AddrFrom4(addr).String())
		r.addresses[number] = at
	}
	return at
}

func (r *mailReader) addAddress(text string) uint32 {
	r.Addresses = append(r.Addresses, text)
	return uint32(len(r.Addresses) - 1) //nolint:gosec // there are fewer than records
}

// parseIPv4 returns the bytes of an IPv4 address, if it is one.
func parseIPv4(text string) (addr [4]byte, ok bool) {
	parsed, err := netip.ParseAddr(text)
	if err != nil || !parsed.Is4() {
		return addr, false
	}
	return parsed.As4(), true // each has one text
}

// identities returns the place of the identities that some details tell. The mail of
// one sender has the same details every day: they are read once.
func (r *mailReader) identities(details []byte) (uint32, error) {
	if at, known := r.details[string(details)]; known {
		return at, nil
	}
	text := string(details)
	var record aggregate.Record
	if err := parseDetails(text, &record); err != nil {
		return 0, err
	}
	at := uint32(len(r.Identities)) //nolint:gosec // there are fewer than records
	r.details[text] = at
	r.texts = append(r.texts, text)
	r.Identities = append(r.Identities, dmarcd.SentIdentities{
		EnvelopeFrom: record.EnvelopeFrom, DKIM: record.DKIMResults, SPF: record.SPFResults,
	})
	return at, nil
}

// inOrder sorts the records of a share by their numbers.
func inOrder(records []dmarcd.Sent) []dmarcd.Sent {
	slices.SortFunc(records, func(a, b dmarcd.Sent) int { return cmp.Compare(a.N, b.N) })
	return records
}
