package store

import (
	"encoding/binary"
	"errors"

	"github.com/dmarcd/dmarcd"
)

// sheetForm is the first byte of a sheet; another form would have another.
const sheetForm = 1

// A sheet is a row of numbers in their shortest form (uvarint), with texts as their
// length and bytes: the form; the addresses; the details; the reporters; the From
// domains, each a number of texts and those; the number of shares, and for each its
// report, its number, its domain, the places of its reporter and From domain, and its
// number of records; and for each of these its number, the places of its address and
// its details, its outcome and its count.

// newSheet writes the records that a reader has, all of one day.
func newSheet(mail *mailReader) []byte {
	var reporters, froms places
	b := []byte{sheetForm}
	b = appendList(b, mail.Addresses)
	b = appendList(b, mail.texts)
	for i := range mail.Shares {
		reporters.add(mail.Shares[i].Organization)
		froms.add(mail.Shares[i].HeaderFrom)
	}
	b = appendList(b, reporters.texts)
	b = appendList(b, froms.texts)
	b = binary.AppendUvarint(b, uint64(len(mail.Shares)))
	for i := range mail.Shares {
		share := &mail.Shares[i]
		for _, n := range []uint64{
			uint64(share.Report), uint64(share.N), uint64(share.Domain), //nolint:gosec // none is negative
			reporters.add(share.Organization), froms.add(share.HeaderFrom), uint64(len(share.Records)),
		} {
			b = binary.AppendUvarint(b, n)
		}
		for _, r := range share.Records {
			b = binary.AppendUvarint(b, uint64(r.N))
			b = binary.AppendUvarint(b, uint64(r.Address))
			b = binary.AppendUvarint(b, uint64(r.Identities))
			b = binary.AppendUvarint(b, uint64(r.Outcome))
			b = binary.AppendUvarint(b, uint64(r.Count)) //nolint:gosec // not negative
		}
	}
	return b
}

// places gives texts places in a list.
type places struct {
	texts []string
	known map[string]uint64
}

func (p *places) add(text string) uint64 {
	at, known := p.known[text]
	if !known {
		if p.known == nil {
			p.known = make(map[string]uint64)
		}
		at = uint64(len(p.texts))
		p.known[text] = at
		p.texts = append(p.texts, text)
	}
	return at
}

func appendList(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

var errSheet = errors.New("a sheet of records is damaged; dmarcd doctor looks for more damage")

// readSheet adds the records of a sheet of a day that are of the domain.
func (r *mailReader) readSheet(day dmarcd.Day, sheet []byte, domain dmarcd.DomainID) error {
	s := &sheetReader{b: sheet}
	if s.number() != sheetForm {
		return errSheet
	}
	addresses := make([]uint32, s.length())
	for i := range addresses {
		addresses[i] = r.address(s.text())
	}
	identities := make([]uint32, s.length())
	for i := range identities {
		at, err := r.identities(s.text())
		if err != nil {
			return errors.Join(errSheet, err)
		}
		identities[i] = at
	}
	reporters, froms := s.list(), s.list()
	for range s.length() {
		share := dmarcd.SentShare{
			Report: dmarcd.ReportID(s.number()), N: int(s.number()), Domain: dmarcd.DomainID(s.number()), Day: day, //nolint:gosec // as they were written
			Organization: at(s, reporters), HeaderFrom: at(s, froms),
		}
		share.Records = s.records(addresses, identities)
		if s.damaged {
			return errSheet
		}
		if domain != allDomains && share.Domain != domain {
			continue
		}
		if err := r.expect(len(share.Records)); err != nil {
			return err
		}
		r.Shares = append(r.Shares, share)
	}
	if s.damaged || s.next < len(s.b) {
		return errSheet
	}
	return nil
}

// sheetReader reads from a sheet. Once something is wrong it is damaged, and what it
// returns has no meaning.
type sheetReader struct {
	b       []byte
	next    int
	damaged bool
}

func (s *sheetReader) number() uint64 {
	if s.next < len(s.b) && s.b[s.next] < 0x80 { // as most are
		s.next++
		return uint64(s.b[s.next-1])
	}
	return s.longNumber()
}

func (s *sheetReader) longNumber() uint64 {
	n, size := binary.Uvarint(s.b[s.next:])
	if size <= 0 {
		s.fail()
		return 0
	}
	s.next += size
	return n
}

func (s *sheetReader) fail() { s.damaged, s.next = true, len(s.b) }

// length reads how many things follow, each of which takes a byte at least.
func (s *sheetReader) length() int {
	n := s.number()
	if n > uint64(len(s.b)-s.next) { //nolint:gosec // not negative
		s.fail()
		return 0
	}
	return int(n) //nolint:gosec // not more than there are bytes
}

// text reads a text. It is valid as long as the sheet is.
func (s *sheetReader) text() []byte {
	n := s.length()
	s.next += n
	return s.b[s.next-n : s.next]
}

func (s *sheetReader) list() []string {
	texts := make([]string, s.length())
	for i := range texts {
		texts[i] = string(s.text())
	}
	return texts
}

// records reads the records of a share. It is where the time goes.
func (s *sheetReader) records(addresses, identities []uint32) []dmarcd.Sent {
	records := make([]dmarcd.Sent, s.length())
	for i := range records {
		r := &records[i]
		r.N = uint32(s.number()) //nolint:gosec // as it was written
		r.Address = at(s, addresses)
		r.Identities = at(s, identities)
		r.Outcome = dmarcd.Outcome(s.number()) //nolint:gosec // as it was written
		r.Count = int64(s.number())            //nolint:gosec // as it was written
		if r.Outcome >= dmarcd.Outcomes {
			s.fail()
		}
	}
	return records
}

// at reads a place in a list and returns what stands there.
func at[T any](s *sheetReader, list []T) T {
	n := s.number()
	if n >= uint64(len(list)) {
		s.fail()
		var none T
		return none
	}
	return list[n]
}
