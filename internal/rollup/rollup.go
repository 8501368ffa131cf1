// Package rollup defines the format of day rollups: blocks of records of aggregate reports that
// store what many records have in common once. A day has one or more blocks, each readable
// alone, so that writing and reading a day take the memory of one block. Package store decides
// which records a block has and stores it; package insight computes with them.
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
//	                                    ; the text of a report that is not an address
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
// encoding/binary; names that end in -at are indexes into their list, from 0; report, n,
// domain, outcome and count are numbers.
package rollup

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// version is the first octet of a block. A block with another version counts as damaged:
// rollups are derived, and the store rebuilds them.
const version = 3

// ErrDamaged means that a block does not follow the grammar.
var ErrDamaged = errors.New("a rollup is damaged; dmarcd doctor looks for more damage")

// Block is a decoded block.
type Block struct {
	// Addresses are the source addresses; see AddressText.
	Addresses Texts
	// Identities are the authenticated domains.
	Identities []Identity
	Shares     []Share

	offsets    []uint32 // of texts
	texts      []string
	signatures []Signature
	spf        []SPFCheck
	records    []Record
}

// Texts is a list of texts of a block. Most blocks have as many addresses as records: an offset
// takes a quarter of the memory of a string, and has no pointer.
type Texts struct {
	s       string
	offsets []uint32 // where their lengths stand
}

// Len returns the number of texts.
func (t *Texts) Len() int { return len(t.offsets) }

// At returns the text at an index.
func (t *Texts) At(i uint32) string {
	size, begin := number(t.s, int(t.offsets[i]))
	return t.s[begin : begin+int(size)] //nolint:gosec // it was read before
}

// Identity has the domains of a record other than its From domain.
type Identity struct {
	// Envelope is the domain of the envelope, "" if the report has none.
	Envelope   string
	Signatures []Signature
	SPF        []SPFCheck
	// Reasons are why the receiver did not apply the policy.
	Reasons Reasons
}

// Signature is a DKIM signature.
type Signature struct {
	Domain, Selector string
	Result           Result
}

// Passed reports whether the signature was verified.
func (s Signature) Passed() bool { return s.Result == Pass }

// SPFCheck is the SPF result of a domain.
type SPFCheck struct {
	Domain string
	Result Result
	// Helo is set if the domain is that of HELO instead of MAIL FROM.
	Helo bool
}

// Passed reports whether the domain authorizes the address.
func (c SPFCheck) Passed() bool { return c.Result == Pass }

// Share has records of a share of a report. A share with many records may be spread over
// several blocks.
type Share struct {
	Report dmarcd.ReportID
	// N is the number of the share in the report.
	N      int
	Domain dmarcd.DomainID
	Day    dmarcd.Day
	// Unverified is set if the report is not authenticated as its reporter's.
	Unverified     bool
	Reporter, From string
	// Records are in the order of their numbers.
	Records []Record
}

// Record is a record of a report with messages.
type Record struct {
	Count int64
	// Address and Identity are indexes into the lists of the block.
	Address, Identity uint32
	// N is the number of the record in its share.
	N       uint32
	Outcome dmarcd.Outcome
}

// Part is a block, and the shares to read from it.
type Part struct {
	// Block is valid until the function that receives the part returns.
	Block []byte
	// Domains are those whose shares are read; nil reads all.
	Domains map[dmarcd.DomainID]bool
}

// addressForm returns the form of an address in a block. A text that is not the canonical form
// of an address is returned unchanged.
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

// Address returns the address of a form, or the zero value if it is not an address. An
// IPv4-mapped IPv6 address is returned as IPv4.
func Address(form string) netip.Addr {
	if len(form) > 0 && form[0] == 0 {
		addr, _ := netip.AddrFromSlice([]byte(form[1:]))
		return addr.Unmap()
	}
	addr, _ := netip.ParseAddr(form)
	return addr.Unmap()
}

// IPv4 returns the number of the IPv4 address of a form. It reports false for other forms.
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

// Result is the result of DKIM or SPF.
type Result uint8

// The results, in the order of resultWords.
const (
	Unknown Result = iota
	None
	Pass
	Fail
	Softfail
	Neutral
	Policy
	Temperror
	Permerror
)

// resultWords are the words of the results.
var resultWords = []aggregate.Result{
	"", aggregate.ResultNone, aggregate.ResultPass, aggregate.ResultFail, aggregate.ResultSoftfail, aggregate.ResultNeutral,
	aggregate.ResultPolicy, aggregate.ResultTemperror, aggregate.ResultPermerror,
}

// ResultOf returns the result for a word of a report, Unknown for other words.
func ResultOf(word aggregate.Result) Result {
	return Result(max(slices.Index(resultWords, word.Known()), 0)) //nolint:gosec // there are few
}

// String returns the word of the result.
func (r Result) String() string { return string(resultWords[r]) }

// Reasons is a set of reasons why a receiver did not apply the policy.
type Reasons uint8

// The reasons. ARC is a local policy based on a chain of ARC seals.
const (
	Forwarded Reasons = 1 << iota
	TrustedForwarder
	MailingList
	ARC
	LocalPolicy
	SampledOut
	TestMode
	OtherReason
)

// Relayed reports whether the receiver considers the mail forwarded.
func (r Reasons) Relayed() bool { return r&(Forwarded|TrustedForwarder|MailingList|ARC) != 0 }
