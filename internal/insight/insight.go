// Package insight says who sends mail as a domain, whether it passes, and whether the
// policy may be tightened. It reads the records of aggregate reports once, holds them
// in memory in a compact form, and groups them as it is asked.
//
// Where addresses belong to is known by package senders, and the records are the
// store's. What is counted by day and domain alone needs no records, and is not here.
package insight

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// MaxRecords is how many records one answer may be made from. They take 24 bytes each
// while they are looked at.
const MaxRecords = 3_000_000

// errTooMany has words for whoever asks for more.
var errTooMany = fmt.Errorf("%w: %w", dmarcd.ErrLimit, &dmarcd.InvalidError{
	Field: "from", Message: "There are too many records in these days: more than 3,000,000, or more than 300,000 that came in the last minutes. Choose a domain, or fewer days.",
})

// Records are the records of a team.
type Records interface {
	// Sent returns the records that count in the given days, of one domain or,
	// with "", of all; more than limit are dmarcd.ErrLimit.
	Sent(ctx context.Context, domain string, days dmarcd.Days, limit int) (*dmarcd.SentMail, error)
	// SentRecords returns the records at those places, in their order.
	SentRecords(ctx context.Context, places []dmarcd.SentPlace) ([]dmarcd.SentRecord, error)
}

// Names knows the names of addresses; see senders.Names.
type Names interface {
	// Known returns the names that are known now. It does not wait for the DNS.
	Known(ctx context.Context, addrs []netip.Addr) (map[netip.Addr]string, error)
}

// Service knows who stands behind addresses. It is safe for concurrent use.
type Service struct {
	atlas     *senders.Atlas
	catalogue *senders.Catalogue
	names     Names
}

// New returns a service that recognises senders by these.
func New(atlas *senders.Atlas, catalogue *senders.Catalogue, names Names) *Service {
	return &Service{atlas: atlas, catalogue: catalogue, names: names}
}

// Read reads the records of a domain of the team, or with "" of all its domains, in
// some days. Too many are a dmarcd.ErrLimit with words for the reader. There is no
// mail of a domain that the team does not have.
func (s *Service) Read(ctx context.Context, team Records, domain string, days dmarcd.Days) (*Mail, error) {
	sent, err := team.Sent(ctx, domain, days, MaxRecords)
	if errors.Is(err, dmarcd.ErrLimit) {
		return nil, errTooMany
	}
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	m := newMail(team, sent, days)
	if err := s.recognise(ctx, m); err != nil {
		return nil, err
	}
	return m, nil
}
