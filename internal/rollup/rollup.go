// Package rollup is the format of day rollups: blocks of the records of aggregate
// reports, in which everything that many records have in common is written once. A day
// is one block or several, each of which can be read alone, so that neither writing nor
// reading a day takes more memory than a block. Where blocks are stored, and which
// records they hold, is for package store to say; what they are added up to, for
// package insight.
//
//	block      = version texts addresses identities shares
//	version    = %x03
//	texts      = number *text           ; what text-at refers to
//	addresses  = number *address
//	identities = number *identity
//	shares     = number *share
//
//	text       = number *OCTET          ; the number of octets
//	address    = text                   ; %x00 and the 4 or 16 octets of an address, or
//	                                    ; what a report has in its place
//	identity   = text-at                ; the domain of the envelope
//	             number *signature
//	             number *spf
//	             reasons
//	signature  = text-at text-at result ; domain, selector
//	spf        = text-at result helo    ; domain
//	result     = number                 ; a Result
//	helo       = %x00 / %x01            ; whether HELO was checked, not MAIL FROM
//	reasons    = number                 ; the bits of Reasons
//	share      = report n domain day unverified text-at text-at ; reporter, From domain
//	             number size *record    ; the octets of the records
//	record     = step address-at identity-at outcome count
//	step       = number                 ; from the n of the record before, or from -1
//	day        = signed                 ; days since 1970-01-01
//	unverified = %x00 / %x01
//
// A number is an unsigned varint and a signed one a zigzag varint, as in package
// encoding/binary; names that end in -at are numbers that count from 0 in their list;
// report, n, domain, outcome and count are numbers.
package rollup

import (
	"errors"
	"net/netip"

	"github.com/dmarcd/dmarcd"
)

// version is the first octet of a block. One of another version is damaged to this
// package: rollups are derived, and the store makes them again.
const version = 3

// ErrDamaged is a block that does not follow the grammar.
var ErrDamaged = errors.New("a rollup is damaged; dmarcd doctor looks for more damage")

// Block is a block that was read.
type Block struct {
	// Addresses are those that messages came from; see AddressText.
	Addresses Texts
	// Identities are what was authenticated.
	Identities []Identity
	Shares     []Share

	offsets    []uint32 // of texts
	texts      []string
	signatures []Signature
	spf        []SPFCheck
	records    []Record
}

// Texts is a list of texts of a block. Most blocks have as many addresses as records: a
// place in the block takes a quarter of the memory of a string, and has no pointer.
type Texts struct {
	s       string
	offsets []uint32 // where their lengths stand
}

// Len returns how many there are.
func (t *Texts) Len() int { return len(t.offsets) }

// At returns one of them.
func (t *Texts) At(i uint32) string {
	size, begin := number(t.s, int(t.offsets[i]))
	return t.s[begin : begin+int(size)] //nolint:gosec // it was read before
}

// Identity is the domains that a record names beside its From domain.
type Identity struct {
	// Envelope is the domain of the envelope, "" if the report does not say.
	Envelope   string
	Signatures []Signature
	SPF        []SPFCheck
	// Reasons are why the receiver did not do what the policy asks for.
	Reasons Reasons
}

// Signature is a DKIM signature.
type Signature struct {
	Domain, Selector string
	Result           Result
}

// Passed reports whether the signature was verified.
func (s Signature) Passed() bool { return s.Result == Pass }

// SPFCheck is what SPF came to for a domain.
type SPFCheck struct {
	Domain string
	Result Result
	// Helo tells that it is the domain of HELO, not of MAIL FROM.
	Helo bool
}

// Passed reports whether the domain authorizes the address.
func (c SPFCheck) Passed() bool { return c.Result == Pass }

// Share is records of a share of a report. A share with many records may be in several
// blocks, with some of them in each.
type Share struct {
	Report dmarcd.ReportID
	// N is the number of the share in the report.
	N      int
	Domain dmarcd.DomainID
	Day    dmarcd.Day
	// Unverified tells that the report is not authenticated as its reporter's.
	Unverified     bool
	Reporter, From string
	// Records are in the order of their numbers.
	Records []Record
}

// Record is a record of a report with messages.
type Record struct {
	Count int64
	// Address and Identity are places in the lists of the block.
	Address, Identity uint32
	// N is the number of the record in its share.
	N       uint32
	Outcome dmarcd.Outcome
}

// Part is a block and which of its shares are meant.
type Part struct {
	// Block is valid until the function returns that the part was given to.
	Block []byte
	// Domains are those whose shares are meant, nil for all.
	Domains map[dmarcd.DomainID]bool
}

// addressForm returns an address as blocks have it. A text that is not the canonical form
// of an address stays as it is.
func addressForm(text string, buffer []byte) []byte {
	buffer = buffer[:0]
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || addr.Zone() != "":
	case addr.Is4():
		form := addr.As4()
		return append(append(buffer, 0), form[:]...)
	case addr.String() == text:
		form := addr.As16()
		return append(append(buffer, 0), form[:]...)
	}
	return append(buffer, text...)
}

// Address returns the address with a form, or the zero value where it is none. An IPv4
// address in an IPv6 address is the IPv4 address.
func Address(form string) netip.Addr {
	if len(form) > 0 && form[0] == 0 {
		addr, _ := netip.AddrFromSlice([]byte(form[1:]))
		return addr.Unmap()
	}
	addr, _ := netip.ParseAddr(form)
	return addr.Unmap()
}

// IPv4 returns the number of an IPv4 address with a form, if it is one.
func IPv4(form string) (number uint32, ok bool) {
	if len(form) != 5 || form[0] != 0 {
		return 0, false
	}
	return uint32(form[1])<<24 | uint32(form[2])<<16 | uint32(form[3])<<8 | uint32(form[4]), true
}

// AddressText returns the text of a form.
func AddressText(form string) string {
	if len(form) > 0 && form[0] == 0 {
		if addr, ok := netip.AddrFromSlice([]byte(form[1:])); ok {
			return addr.String()
		}
	}
	return form
}
