package store

import (
	"cmp"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// mailReader puts records together whose addresses and details come as text, from
// several places.
type mailReader struct {
	dmarcd.SentMail
	addresses map[string]uint32
	details   map[string]uint32
	// texts are the details of the identities.
	texts []string
	// left is how many records there may still be.
	left int
}

func newMailReader(limit int) *mailReader {
	return &mailReader{addresses: make(map[string]uint32), details: make(map[string]uint32), left: limit}
}

// expect is told how many records come, and refuses those that are too many.
func (r *mailReader) expect(records int) error {
	if r.left -= records; r.left < 0 {
		return dmarcd.ErrLimit
	}
	return nil
}

// address returns the place of an address. The text is copied where it is new.
func (r *mailReader) address(text []byte) uint32 {
	if at, known := r.addresses[string(text)]; known {
		return at
	}
	at := uint32(len(r.Addresses)) //nolint:gosec // there are fewer than records
	r.Addresses = append(r.Addresses, string(text))
	r.addresses[r.Addresses[at]] = at
	return at
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
