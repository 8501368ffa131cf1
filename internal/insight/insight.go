// Package insight answers who sends mail as a domain, whether each sender is legitimate, why mail
// fails, what another policy would do, and what to do next. docs/senders.md has the rules.
//
// # Input
//
// Records provides the records of aggregate reports (package store), package senders the network,
// country and known sender of an address, package facts the DNS of a domain. Counts by day and domain
// need no records: they are in package store.
//
// # Where to begin
//
// Service.Read (insight.go) returns a Mail: some days of one domain or of all domains of a team. Every
// question is a method of Mail. Each is answered by scans over the records (mail.go), in which
// gatherers add up what they need:
//
//	recognize      recognition.go  scan 1: which addresses and keys are linked to the domains
//	  linker       addressmail.go    collects the mail of each address over 90 days
//	  finish       links.go          decides on the links
//	count          recognition.go  scan 2: the mail of the period by sender
//	  grouping     grouping.go       finds the sender, or another key, of each record
//	  senderOf     networks.go       divides the mail of a network into senders
//	assess         assess.go       the class of a sender, its evidence, cause and fix
//	  class        classify.go       the rules of classes: change them here
//	  explain      explain.go        the sentences about causes and fixes
//	List, …        list.go, breakdown.go, flows.go, records.go
//	Simulate       simulate.go     a policy tried out on past mail
//	Advise         advice.go       the way to p=reject
//	FindSenders    job.go          what the job stores for each day
//
// # Limits
//
// Outsiders choose addresses, selectors and domains, so nothing grows with them: tables have at most
// MaxListed keys and an exact sum of the others (table.go), and all other maps a limit next to their
// type. Memory is reserved from a budget before the first scan; reading for one Mail ends after 10
// seconds with memory.ErrBusy. Answers from many records are cached for a minute (answers.go).
package insight

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

const (
	// MaxListed limits the rows of a group; one more row is the sum of the others.
	MaxListed = 32_768
	// maxTime limits all reading for one Mail, and with it how long others wait for its memory.
	maxTime = 10 * time.Second
	// maxJobTime is maxTime for a job, which waits for slots most of the time.
	maxJobTime = time.Minute
	// jobMemory is charged for the memory of jobs, so that requests of the team do not wait for it.
	jobMemory dmarcd.TeamID = 0
)

// Estimated memory of an answer, in bytes: a base, an amount for each record up to 2*MaxListed, and
// moreBytes if there may be more keys than are listed.
const (
	baseBytes   = 1 << 20
	recordBytes = 800
	moreBytes   = 16 << 20
)

// Records are the records of a team.
type Records interface {
	// ID is the team.
	ID() dmarcd.TeamID
	// ReadTurn waits for a slot of the team for the long work of requests. If ctx ends first, it
	// returns without one.
	ReadTurn(ctx context.Context) (end func())
	// HasSample reports whether the team has sample data.
	HasSample(ctx context.Context) (bool, error)
	// SentState returns the state of the records that Scan would read.
	SentState(ctx context.Context, domain string, days dmarcd.Days) (dmarcd.SentState, error)
	// Scan calls visit with the records that count in the given days, of one domain or,
	// with "", of all, in no order. An error of visit ends it. Scan reads what is not in a
	// rollup in turns, and has none during a visit.
	Scan(ctx context.Context, domain string, days dmarcd.Days, turn func() (end func()), visit func(rollup.Part) error) error
	// Senders returns the first and the last day of senders over all time, by their keys. Senders
	// that are not stored are missing.
	Senders(ctx context.Context, domain string, keys []string) (map[string]dmarcd.SeenDays, error)
	// SentRecords returns records, in their order.
	SentRecords(ctx context.Context, records []dmarcd.SentPosition) ([]dmarcd.SentRecord, error)
	// TeamSenders returns the senders that the team added or corrected.
	TeamSenders(ctx context.Context) ([]dmarcd.TeamSender, error)
	// SenderDomains returns all domains. It calls facts with the facts of each latest check for
	// which known returns false.
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
	// classes are the classes that the team assigned for all domains, by the keys of senders.
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

// Read returns the mail of a domain of the team in some days, or of all its domains if the name is "".
// It returns memory.ErrBusy if other answers leave no memory for this one. A domain that the team
// does not have has no mail. The caller must close the Mail.
func (s *Service) Read(ctx context.Context, team Records, domain string, days dmarcd.Days) (*Mail, error) {
	return s.read(ctx, team, domain, days, team.ID())
}

// read is Read that charges the memory to payer.
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

// answerBytes estimates the memory of an answer from a number of records.
func answerBytes(records int64) int64 {
	bytes := baseBytes + min(records, 2*MaxListed)*recordBytes
	if records > MaxListed {
		bytes += moreBytes
	}
	return bytes
}

// Group is what mail is grouped by. A record belongs to one row of each group.
type Group string

// The groups.
const (
	// GroupSender is a sender; see docs/senders.md.
	GroupSender   Group = "sender"
	GroupCountry  Group = "country"
	GroupAddress  Group = "address"
	GroupReporter Group = "reporter"
	// GroupSelector is a DKIM key. Of several signatures, one that passes and is aligned
	// counts first.
	GroupSelector Group = "selector"
	GroupFrom     Group = "header_from"
	GroupEnvelope Group = "envelope_from"
)

// Groups returns all groups, the most useful first.
func Groups() []Group {
	return []Group{GroupSender, GroupCountry, GroupAddress, GroupSelector, GroupEnvelope, GroupFrom, GroupReporter}
}

// Query selects rows.
type Query struct {
	Group Group
	// Key selects one row of the group, "" for all.
	Key string
	// Search is a part of a row's name, key or detail, in any case.
	Search string
	// Failing leaves out rows all of whose mail is compliant.
	Failing bool
	// Sort is name, messages, passing, spf, dkim, first or last, with "-" before it
	// for descending. Anything else is "-messages".
	Sort string
	// After is List.Next of the previous page, "" for the first; Limit is the size of a page.
	After string
	Limit int
	// Trends asks for the trend of each row.
	Trends bool
	// Assess asks for the assessment of each row. Rows that are not senders or addresses
	// have the class unknown.
	Assess bool
	// Parts limits the rows of each other group in a Breakdown, 0 for 20.
	Parts int
}

// errAfter is the error for a cursor that is not from a page before.
var errAfter = &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next of the page before."}

// formatCursor encodes a position in a list as an opaque cursor.
func formatCursor[T any](position T) string {
	text, _ := json.Marshal(position) //nolint:errchkjson // numbers and strings
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor[T any](cursor string) (T, error) {
	var position T
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &position) != nil {
		return position, errAfter
	}
	return position, nil
}

// matches reports whether a row is what the query searches for.
func (q Query) matches(r Row) bool {
	if q.Failing && r.Counts.NonCompliant == 0 {
		return false
	}
	if q.Search == "" {
		return true
	}
	search := strings.ToLower(q.Search)
	for _, text := range []string{r.Name, r.Key, r.Detail} {
		if strings.Contains(strings.ToLower(text), search) {
			return true
		}
	}
	return false
}
