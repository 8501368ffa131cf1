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
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/senders"
)

const (
	// MaxRecords is how many records one answer may be made from.
	MaxRecords = 3_000_000
	// MaxListed is how many sources of a group are listed one by one. Where there are
	// more, the others stand together in one row.
	MaxListed = 32_768
	// maxTime is how long the reading of the records may take. Others wait for its
	// memory as long as that.
	maxTime = 10 * time.Second
)

// What an answer takes in memory, in bytes: each record, and each address and each
// identity with what is added up for it.
const (
	recordBytes = 24
	keyBytes    = 800
	baseBytes   = 1 << 20
)

// errTooMany says what to do about too many records.
var errTooMany = fmt.Errorf("%w: %w", dmarcd.ErrLimit, &dmarcd.InvalidError{
	Field: "from", Message: "There are too many records in these days: more than 3,000,000. Choose a domain, or fewer days.",
})

// Records are the records of a team.
type Records interface {
	// ID is the team.
	ID() dmarcd.TeamID
	// SentSize returns how many records Sent would read, or more.
	SentSize(ctx context.Context, domain string, days dmarcd.Days) (int64, error)
	// Sent returns the records that count in the given days, of one domain or,
	// with "", of all; more than the limits allow are dmarcd.ErrLimit.
	Sent(ctx context.Context, domain string, days dmarcd.Days, limits dmarcd.SentLimits) (*dmarcd.SentMail, error)
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
	memory    *memory.Budget
}

// New returns a service that recognises senders by these, and takes the memory for its
// answers from a budget.
func New(atlas *senders.Atlas, catalogue *senders.Catalogue, names Names, budget *memory.Budget) *Service {
	return &Service{atlas: atlas, catalogue: catalogue, names: names, memory: budget}
}

// Read reads the records of a domain of the team, or with "" of all its domains, in
// some days. Too many are a dmarcd.ErrLimit with words for the reader; it is
// memory.ErrBusy if other answers leave no memory for this one, or if the reading
// takes longer than maxTime. There is no mail of a domain that the team does not have.
// The caller must close what it returns.
func (s *Service) Read(ctx context.Context, team Records, domain string, days dmarcd.Days) (*Mail, error) {
	records, err := team.SentSize(ctx, domain, days)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	release, err := s.memory.Acquire(ctx, team.ID(), answerBytes(records))
	if err != nil {
		return nil, err
	}
	m, err := s.read(ctx, team, domain, days)
	if err != nil {
		release()
		return nil, err
	}
	m.release = release
	return m, nil
}

// answerBytes estimates what an answer from so many records takes.
func answerBytes(records int64) int64 {
	records = min(records, MaxRecords)
	return baseBytes + records*recordBytes + min(records, 2*MaxListed)*keyBytes
}

func (s *Service) read(ctx context.Context, team Records, domain string, days dmarcd.Days) (*Mail, error) {
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	sent, err := team.Sent(limited, domain, days, dmarcd.SentLimits{
		Records: MaxRecords, Keys: MaxListed, AddressGroup: s.addressGroup, IdentitiesGroup: s.identitiesGroup,
	})
	switch {
	case errors.Is(err, dmarcd.ErrLimit):
		return nil, errTooMany
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%w: read records: no more than %v", memory.ErrBusy, maxTime)
	case err != nil:
		return nil, fmt.Errorf("read records: %w", err)
	}
	m := newMail(team, sent, days)
	if err := s.recognise(ctx, m); err != nil {
		return nil, err
	}
	return m, nil
}

// addressGroup names the addresses that are merged: those of one network and country are
// one source of every other group.
func (s *Service) addressGroup(address string) string {
	addr, _ := netip.ParseAddr(address) // what is none belongs nowhere
	origin := s.atlas.Locate(addr.Unmap())
	return systemKey(origin.Network.Number) + " " + origin.Country
}

// identitiesGroup names the identities that are merged: those of one known sender.
func (s *Service) identitiesGroup(identities dmarcd.SentIdentities) string {
	sender, _ := s.catalogue.Identify(senders.Clues{Domains: passed(&identities)})
	return sender.Name
}
