package store

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/dmarcd/dmarcd"
)

// sheetForm is the first byte of a sheet; another form would have another.
const sheetForm = 1

// A sheet is a row of numbers in their shortest form (uvarint), with texts as their
// length and bytes: the form; the addresses, of which those of IPv4 are a text of five
// bytes, the first of them 0; the details; the reporters; the From domains, each a
// number of texts and those; the number of shares, and for each its
// report, its number, its domain, the places of its reporter and From domain, its number
// of records, and how many bytes these take; and for each of these its number, the places
// of its address and its details, its outcome and its count.

// newSheet writes the records that a reader has, all of one day.
func newSheet(mail *mailReader) []byte {
	var reporters, froms places
	b := []byte{sheetForm}
	b = appendAddresses(b, mail.Addresses)
	b = appendList(b, mail.texts)
	for i := range mail.Shares {
		reporters.add(mail.Shares[i].Organization)
		froms.add(mail.Shares[i].HeaderFrom)
	}
	b = appendList(b, reporters.texts)
	b = appendList(b, froms.texts)
	b = binary.AppendUvarint(b, uint64(len(mail.Shares)))
	var records []byte
	for i := range mail.Shares {
		share := &mail.Shares[i]
		for _, n := range []uint64{
			uint64(share.Report), uint64(share.N), uint64(share.Domain), //nolint:gosec // none is negative
			reporters.add(share.Organization), froms.add(share.HeaderFrom), uint64(len(share.Records)),
		} {
			b = binary.AppendUvarint(b, n)
		}
		records = appendRecords(records[:0], share.Records)
		b = binary.AppendUvarint(b, uint64(len(records)))
		b = append(b, records...)
	}
	return b
}

func appendRecords(b []byte, records []dmarcd.Sent) []byte {
	for _, r := range records {
		b = binary.AppendUvarint(b, uint64(r.N))
		b = binary.AppendUvarint(b, uint64(r.Address))
		b = binary.AppendUvarint(b, uint64(r.Identities))
		b = binary.AppendUvarint(b, uint64(r.Outcome))
		b = binary.AppendUvarint(b, uint64(r.Count)) //nolint:gosec // not negative
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

func appendAddresses(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		if addr, ok := parseIPv4(text); ok {
			b = append(b, 5, 0, addr[0], addr[1], addr[2], addr[3])
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
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
	addresses, details := s.list(), s.list()
	reporters, froms := s.texts(), s.texts()
	for range s.length() {
		share := dmarcd.SentShare{
			Report: dmarcd.ReportID(s.number()), N: int(s.number()), Domain: dmarcd.DomainID(s.number()), Day: day, //nolint:gosec // as they were written
			Organization: at(s, reporters), HeaderFrom: at(s, froms),
		}
		records, size := s.number(), s.length()
		if s.damaged || records > uint64(size) { //nolint:gosec // not negative
			return errSheet
		}
		if domain != allDomains && share.Domain != domain {
			s.next += size
			continue
		}
		if err := r.expect(int(records)); err != nil { //nolint:gosec // not more than there are bytes
			return err
		}
		var err error
		if r.tally != nil {
			err = r.countRecords(s, addresses, details, int(records)) //nolint:gosec // not more than there are bytes
		} else {
			share.Records = make([]dmarcd.Sent, records)
			err = r.readRecords(s, addresses, details, share.Records)
		}
		if err == nil {
			err = r.addShare(share)
		}
		if err != nil {
			return err
		}
	}
	if s.damaged || s.next < len(s.b) {
		return errSheet
	}
	return nil
}

// sheetRecord is a record on a sheet, with the places of its address and details there.
type sheetRecord struct{ n, address, details, outcome, count uint64 }

func (s *sheetReader) record(addresses, details sheetList) (r sheetRecord, ok bool) {
	r = sheetRecord{s.number(), s.number(), s.number(), s.number(), s.number()}
	return r, r.address < uint64(len(addresses.places)) && r.details < uint64(len(details.places)) && r.outcome < uint64(dmarcd.Outcomes)
}

// readRecords reads records. It is where the time goes.
func (r *mailReader) readRecords(s *sheetReader, addresses, details sheetList, records []dmarcd.Sent) error {
	for i := range records {
		read, ok := s.record(addresses, details)
		if !ok {
			return errSheet
		}
		if addresses.places[read.address] == unread {
			place, err := r.address(s.textAt(addresses.offsets[read.address]))
			if err != nil {
				return err
			}
			addresses.places[read.address] = place
		}
		if details.places[read.details] == unread {
			place, err := r.identities(s.textAt(details.offsets[read.details]))
			if errors.Is(err, errManyKeys) {
				return err
			}
			if err != nil {
				return errors.Join(errSheet, err)
			}
			details.places[read.details] = place
		}
		records[i] = dmarcd.Sent{
			N: uint32(read.n), Address: addresses.places[read.address], Identities: details.places[read.details], //nolint:gosec // as it was written
			Outcome: dmarcd.Outcome(read.outcome), Count: int64(read.count), //nolint:gosec // as it was written
		}
	}
	if s.damaged {
		return errSheet
	}
	return nil
}

// countRecords has the tally count the keys of records.
func (r *mailReader) countRecords(s *sheetReader, addresses, details sheetList, records int) error {
	for range records {
		read, ok := s.record(addresses, details)
		if !ok {
			return errSheet
		}
		r.tally.add(s.textAt(addresses.offsets[read.address]), s.textAt(details.offsets[read.details]), int64(read.count)) //nolint:gosec // as it was written
	}
	if s.damaged {
		return errSheet
	}
	return nil
}

// sheetList is a list of texts on a sheet: where each begins, and its place among those
// of all sheets that are read. One that no record has is not read.
type sheetList struct{ offsets, places []uint32 }

// unread is the place of a text that was not read yet.
const unread = math.MaxUint32

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

// textAt reads the text that begins at an offset.
func (s *sheetReader) textAt(offset uint32) []byte {
	there := sheetReader{b: s.b, next: int(offset)}
	return there.text()
}

func (s *sheetReader) texts() []string {
	texts := make([]string, s.length())
	for i := range texts {
		texts[i] = string(s.text())
	}
	return texts
}

func (s *sheetReader) list() sheetList {
	n := s.length()
	l := sheetList{offsets: make([]uint32, n), places: make([]uint32, n)}
	for i := range n {
		l.offsets[i], l.places[i] = uint32(s.next), unread //nolint:gosec // no sheet is as long
		s.text()
	}
	return l
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
