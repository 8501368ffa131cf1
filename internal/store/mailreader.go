package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// mailReader collects records whose addresses and details come as text, from several
// places.
type mailReader struct {
	dmarcd.SentMail
	limits dmarcd.SentLimits
	// tally, if it is not nil, counts the messages of each key, and nothing is collected.
	tally *sentTally
	// listed, if it is not nil, are the keys that are not merged.
	listed *listedKeys
	// addresses are the places of IPv4 addresses by number, which is found in half the
	// time; otherAddresses those of all others by their text.
	addresses      map[uint32]uint32
	otherAddresses map[string]uint32
	details        map[string]uint32
	// texts are the details of the identities; textBytes is their length and that of the
	// addresses, maxText how long they may be, 0 for any length.
	texts              []string
	textBytes, maxText int
	// raw leaves the details unparsed.
	raw bool
	// groups are the places of merged addresses and identities by the names of their
	// groups.
	addressGroups, identitiesGroups map[string]uint32
	// left is how many records there may still be.
	left int
}

func newMailReader(limits dmarcd.SentLimits) *mailReader {
	return &mailReader{
		limits:    limits,
		addresses: make(map[uint32]uint32), otherAddresses: make(map[string]uint32), details: make(map[string]uint32),
		addressGroups: make(map[string]uint32), identitiesGroups: make(map[string]uint32),
		left: limits.Records,
	}
}

// errManyKeys is the reason to begin again with a tally: there are more keys than are
// listed.
var errManyKeys = errors.New("more addresses or identities than are listed")

// expect is told how many records come. Too many are dmarcd.ErrLimit.
func (r *mailReader) expect(records int) error {
	if r.left -= records; r.left < 0 {
		return dmarcd.ErrLimit
	}
	return nil
}

// maxShares bounds the shares of an answer: some 80 MiB with what is added up for each.
const maxShares = 300_000

// addShare adds a share with its records. Too many are dmarcd.ErrLimit.
func (r *mailReader) addShare(share dmarcd.SentShare) error {
	if len(r.Shares) >= maxShares {
		return dmarcd.ErrLimit
	}
	r.Shares = append(r.Shares, share)
	return nil
}

// add returns a record. Its address is in the form of sheets: an IPv4 address is a zero
// byte and its four bytes, anything else its text.
func (r *mailReader) add(n uint32, address, details []byte, outcome dmarcd.Outcome, count int64) (sent dmarcd.Sent, err error) {
	sent = dmarcd.Sent{N: n, Outcome: outcome, Count: count}
	if r.tally != nil {
		r.tally.add(address, details, count)
		return sent, nil
	}
	if sent.Address, err = r.address(address); err != nil {
		return sent, err
	}
	if r.maxText > 0 && r.textBytes > r.maxText {
		return sent, dmarcd.ErrLimit
	}
	sent.Identities, err = r.identities(details)
	return sent, err
}

// address returns the place of an address in the form of sheets. Its bytes are copied.
func (r *mailReader) address(form []byte) (uint32, error) {
	isIPv4 := len(form) == 5 && form[0] == 0 // no text begins so: PostgreSQL has no zero bytes
	var number uint32
	var at uint32
	var known bool
	if isIPv4 {
		number = binary.BigEndian.Uint32(form[1:])
		at, known = r.addresses[number]
	} else {
		at, known = r.otherAddresses[string(form)]
	}
	if known {
		return at, nil
	}
	text := string(form)
	if isIPv4 {
		text = netip.AddrFrom4([4]byte(form[1:])).String()
	}
	if r.listed != nil && !r.listed.hasAddress(form) {
		return r.mergeAddress(text), nil
	}
	if r.listed == nil && len(r.Addresses) >= r.limits.Keys {
		return 0, errManyKeys
	}
	at = r.addAddress(text, false)
	if isIPv4 {
		r.addresses[number] = at
	} else {
		r.otherAddresses[text] = at
	}
	return at, nil
}

// maxGroups bounds what is merged apart. There are fewer pairs of network and country.
const maxGroups = 100_000

func (r *mailReader) mergeAddress(text string) uint32 {
	group := ""
	if r.limits.AddressGroup != nil {
		group = r.limits.AddressGroup(text)
	}
	at, known := r.addressGroups[group]
	if !known && len(r.addressGroups) >= maxGroups {
		group = ""
		at, known = r.addressGroups[group]
	}
	if !known {
		at = r.addAddress(text, true)
		r.addressGroups[group] = at
	}
	return at
}

func (r *mailReader) addAddress(text string, merged bool) uint32 {
	r.Addresses = append(r.Addresses, text)
	r.textBytes += len(text)
	if r.listed != nil {
		r.MergedAddresses = append(r.MergedAddresses, merged)
	}
	return uint32(len(r.Addresses) - 1) //nolint:gosec // there are fewer than records
}

// sheetAddress returns an address in the form of sheets. The result is the text or the
// buffer.
func sheetAddress(text []byte, buffer *[5]byte) []byte {
	if addr, ok := parseIPv4(string(text)); ok {
		*buffer = [5]byte{0, addr[0], addr[1], addr[2], addr[3]}
		return buffer[:]
	}
	return text
}

// parseIPv4 returns the bytes of an IPv4 address, if it is one.
func parseIPv4(text string) (addr [4]byte, ok bool) {
	parsed, err := netip.ParseAddr(text)
	if err != nil || !parsed.Is4() {
		return addr, false
	}
	return parsed.As4(), true // each has one text
}

// identities returns the place of the identities in some details. The mail of one sender
// has the same details every day: they are parsed once.
func (r *mailReader) identities(details []byte) (uint32, error) {
	if at, known := r.details[string(details)]; known {
		return at, nil
	}
	text := string(details)
	found, err := r.parse(text)
	if err != nil {
		return 0, err
	}
	if r.listed != nil && !r.listed.hasIdentities(details) {
		return r.mergeIdentities(found), nil
	}
	if r.listed == nil && len(r.Identities) >= r.limits.Keys {
		return 0, errManyKeys
	}
	at := r.addIdentities(found, false)
	r.details[text] = at
	r.texts = append(r.texts, text)
	r.textBytes += len(text)
	return at, nil
}

func (r *mailReader) parse(details string) (dmarcd.SentIdentities, error) {
	var record aggregate.Record
	if r.raw {
		return dmarcd.SentIdentities{}, nil
	}
	err := parseDetails(details, &record)
	return dmarcd.SentIdentities{EnvelopeFrom: record.EnvelopeFrom, DKIM: record.DKIMResults, SPF: record.SPFResults}, err
}

func (r *mailReader) mergeIdentities(identities dmarcd.SentIdentities) uint32 {
	group := ""
	if r.limits.IdentitiesGroup != nil {
		group = r.limits.IdentitiesGroup(identities)
	}
	at, known := r.identitiesGroups[group]
	if !known {
		at = r.addIdentities(identities, true)
		r.identitiesGroups[group] = at
	}
	return at
}

func (r *mailReader) addIdentities(identities dmarcd.SentIdentities, merged bool) uint32 {
	r.Identities = append(r.Identities, identities)
	if r.listed != nil {
		r.MergedIdentities = append(r.MergedIdentities, merged)
	}
	return uint32(len(r.Identities) - 1) //nolint:gosec // there are fewer than records
}

// inOrder sorts the records of a share by their numbers.
func inOrder(records []dmarcd.Sent) {
	slices.SortFunc(records, func(a, b dmarcd.Sent) int { return cmp.Compare(a.N, b.N) })
}
