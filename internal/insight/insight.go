// Package insight lists who sends mail as a domain, classifies the senders, explains failures,
// and simulates policies. It sums the records of aggregate reports block by block, in bounded
// memory.
//
// Package senders identifies addresses; the store provides the records. Counts by day and domain
// need no records and are not here.
package insight

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

const (
	// MaxListed is how many sources of a group are listed one by one. Where there are
	// more, the others stand together in one row.
	MaxListed = 32_768
	// maxTime is how long all reading for one Mail may take. Others wait for its
	// memory as long as that.
	maxTime = 10 * time.Second
	// maxJobTime is maxTime for a job, which rests most of the time. So that the team does not wait
	// for its memory, that is charged to jobMemory.
	maxJobTime = time.Minute
	// jobMemory stands for a team.
	jobMemory dmarcd.TeamID = 0
)

// What an answer takes in memory, in bytes: each record up to a block of them, with what
// is added up for its keys, and more where there are more keys than are listed.
const (
	baseBytes   = 1 << 20
	recordBytes = 800
	moreBytes   = 16 << 20
)

// Records are the records of a team.
type Records interface {
	// ID is the team.
	ID() dmarcd.TeamID
	// ReadTurn waits for the team's turn at the long work of requests. When ctx ends first, it
	// returns without a turn.
	ReadTurn(ctx context.Context) (end func())
	// HasSample reports whether the team has sample data.
	HasSample(ctx context.Context) (bool, error)
	// SentState returns the state of the records that Scan would read.
	SentState(ctx context.Context, domain string, days dmarcd.Days) (dmarcd.SentState, error)
	// Scan calls visit with the records that count in the given days, of one domain or,
	// with "", of all, in no order. An error of visit ends it. Scan reads what is not in a
	// rollup in turns, and has none during a visit.
	Scan(ctx context.Context, domain string, days dmarcd.Days, turn func() (end func()), visit func(rollup.Part) error) error
	// Senders returns the first and the last day over all time of senders, as far as
	// they are stored.
	Senders(ctx context.Context, domain string, keys []string) (map[string]dmarcd.SeenDays, error)
	// SentRecords returns records, in their order.
	SentRecords(ctx context.Context, records []dmarcd.SentPosition) ([]dmarcd.SentRecord, error)
	// TeamSenders returns the senders that the team added or corrected.
	TeamSenders(ctx context.Context) ([]dmarcd.TeamSender, error)
	// SenderDomains returns all domains, and calls facts with what their latest checks found,
	// unless that is known.
	SenderDomains(ctx context.Context, known func(dmarcd.CheckID) bool, facts func(dmarcd.CheckID, *facts.Facts)) ([]dmarcd.SenderDomain, error)
}

// Names knows the names of addresses; see senders.Names.
type Names interface {
	// Known returns the names that are known now, and looks up others on behalf of the team.
	// It does not wait for the DNS.
	Known(ctx context.Context, team dmarcd.TeamID, addrs []netip.Addr) (map[netip.Addr]string, error)
}

// Service identifies senders and reads their mail. It is safe for concurrent use.
type Service struct {
	atlas     *senders.Atlas
	catalogue *senders.Catalogue
	names     Names
	memory    *memory.Budget
	sample    *Service // for teams with sample data; nil is the service itself
	answers   *answers
	briefs    *cache.Cache[briefKey, *brief]
	// classes are those that the team gave its senders for all domains; nil for none.
	classes map[string]dmarcd.Class
}

// New returns a service that recognizes senders by these, and takes the memory for its
// answers from a budget.
func New(atlas *senders.Atlas, catalogue *senders.Catalogue, names Names, budget *memory.Budget) *Service {
	return &Service{atlas: atlas, catalogue: catalogue, names: names, memory: budget, answers: new(answers), briefs: cache.New[briefKey, *brief](maxBriefs)}
}

// SetSample has another service recognize the senders of teams with sample data. It must be
// called before the first Read.
func (s *Service) SetSample(sample *Service) { s.sample = sample }

// Knows reports whether the catalogue has a sender with a key.
func (s *Service) Knows(key string) bool {
	_, ok := s.catalogue.Sender(key)
	return ok
}

// forTeam returns a service that also recognizes the senders of a team.
func (s *Service) forTeam(own []dmarcd.TeamSender) *Service {
	if len(own) == 0 {
		return s
	}
	with := *s
	with.classes = make(map[string]dmarcd.Class, len(own))
	known := make([]senders.Sender, len(own))
	for i, sender := range own {
		with.classes[sender.Key] = sender.Class
		known[i] = senders.Sender{
			Key: sender.Key, Name: sender.Name, Kind: senders.Service, Category: senders.Added,
			Hosts: sender.Hosts, Domains: sender.Domains, Addresses: sender.Networks,
		}
		if sender.Class == dmarcd.ClassForwarder {
			known[i].Kind = senders.Forwarder
		}
		if number, ok := dmarcd.SystemNumber(sender.Key); ok {
			known[i].Networks = []uint32{number}
		}
	}
	with.catalogue = s.catalogue.With(known)
	return &with
}

// Read returns the mail of a domain of the team, or with "" of all its domains, in some
// days. It is memory.ErrBusy if other answers leave no memory for this one. There is no
// mail of a domain that the team does not have. The caller must close what it returns.
func (s *Service) Read(ctx context.Context, team Records, domain string, days dmarcd.Days) (*Mail, error) {
	return s.read(ctx, team, domain, days, team.ID())
}

// read is Read with the memory charged to a payer.
func (s *Service) read(ctx context.Context, team Records, domain string, days dmarcd.Days, payer dmarcd.TeamID) (*Mail, error) {
	sample := false
	if s.sample != nil {
		var err error
		if sample, err = team.HasSample(ctx); err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		if sample {
			s = s.sample
		}
	}
	own, err := team.TeamSenders(ctx)
	if err != nil {
		return nil, fmt.Errorf("read senders: %w", err)
	}
	s = s.forTeam(own)
	window := linkWindow(days)
	state, err := team.SentState(ctx, domain, window)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	release, err := s.memory.Acquire(ctx, payer, answerBytes(state.Records))
	if err != nil {
		return nil, err
	}
	return &Mail{
		service: s, team: team, domain: domain, days: days, window: window, records: state.Records,
		basis: newBasis(team.ID(), domain, days, state, sample, own),
		until: time.Now().Add(maxTime), release: release, turn: team.ReadTurn,
	}, nil
}

// answerBytes estimates what an answer from so many records takes.
func answerBytes(records int64) int64 {
	bytes := baseBytes + min(records, 2*MaxListed)*recordBytes
	if records > MaxListed {
		bytes += moreBytes
	}
	return bytes
}
