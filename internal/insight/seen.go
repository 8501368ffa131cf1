package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// JobRecords are the records of a team for a job.
type JobRecords interface {
	Records
	// JobTurn waits for the team's turn at the long work of jobs.
	JobTurn(ctx context.Context) (end func())
}

// classDays is the period that classes of senders follow from, as on the pages.
const classDays = 30

// FindSenders finds the senders of the mail of a team in some days, as GroupNetwork has
// them, and calls save with them, some at a time: those of each domain and, with domain 0,
// of all. A sender may be saved several times, with other days. At the end saveDays is called
// with the mail of each domain and day. The senders have the classes that they
// have in the 30 days up to the last one.
func (s *Service) FindSenders(
	ctx context.Context, team JobRecords, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error,
) error {
	m, err := s.read(ctx, team, "", days, jobMemory)
	if err != nil {
		return err
	}
	defer m.Close()
	m.turn, m.until = team.JobTurn, time.Now().Add(maxJobTime)
	if err := m.LoadDomains(ctx); err != nil {
		return err
	}
	if err := m.recognize(ctx); err != nil {
		return err
	}
	f := &senderFinder{grouping: m.grouping(GroupNetwork), days: make(map[senderOf]dmarcd.SeenDays), save: save}
	figures := &mailDays{grouping: m.grouping(GroupNetwork), days: make(map[mailDayOf]*mailDay), signedBy: make(map[signed][]signedKey)}
	if err := m.scan(ctx, m.days, nil, f, figures); err != nil {
		return err
	}
	if f.flush(); f.err != nil {
		return f.err
	}
	classes := m.newAssessor(m.about)
	recent := m.days
	if recent.To != nil {
		first := *recent.To - classDays + 1
		recent.From = &first
	}
	if err := m.scan(ctx, recent, nil, classes); err != nil {
		return err
	}
	var found []dmarcd.DomainDay
	m.inTurn(ctx, func() {
		found = figures.found(func(domain dmarcd.DomainID, at senderIndex) dmarcd.Class {
			if d := classes.domains[domain]; d != nil && d.profiles[slot(at)] != nil {
				return m.assessSender(d, at).Class
			}
			return ""
		})
	})
	return saveDays(found)
}

// senderOf is a sender of a domain.
type senderOf struct {
	domain dmarcd.DomainID
	sender senderIndex
}

// senderFinder gathers the days of senders.
type senderFinder struct {
	*grouping
	days map[senderOf]dmarcd.SeenDays
	save func([]dmarcd.Sender) error
	err  error
}

// maxFound is how many senders are gathered before they are saved, savedAtOnce how many
// one transaction saves.
const (
	maxFound    = 1 << 15
	savedAtOnce = 1000
)

func (f *senderFinder) begin(b *rollup.Block) {
	if len(f.days) > maxFound {
		f.flush()
	}
	f.grouping.begin(b)
}

func (f *senderFinder) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		sender := f.sender(share, &records[i])
		first := f.first(sender, share.Day, f.addresses[records[i].Address].mail)
		for _, domain := range []dmarcd.DomainID{0, share.Domain} {
			of := senderOf{domain, sender}
			days, known := f.days[of]
			if !known {
				days = dmarcd.SeenDays{First: first, Last: share.Day}
			}
			if seen := days.And(first).And(share.Day); !known || seen != days {
				f.days[of] = seen
			}
		}
	}
}

// first returns the first day of a sender as its mail of a day shows it: that of the address, where
// addresses are attributed to senders. One that is attributed to another sender since, because the
// SPF record lists it now, does not make that a new one.
func (f *senderFinder) first(of senderIndex, day dmarcd.Day, mail *addressMail) dmarcd.Day {
	s := f.recognition.senders.list[of]
	if mail != nil && (s.part == partClassified || f.recognition.networks.list[s.network].division == byAddress) {
		return min(day, mail.first)
	}
	return day
}

func (f *senderFinder) flush() {
	found := make([]dmarcd.Sender, 0, len(f.days))
	for of, days := range f.days {
		found = append(found, dmarcd.Sender{Domain: of.domain, Key: f.recognition.senders.keys[of.sender], SeenDays: days})
	}
	clear(f.days)
	// Two replicas that save the same senders lock their rows in one order.
	slices.SortFunc(found, func(a, b dmarcd.Sender) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Key, b.Key))
	})
	for part := range slices.Chunk(found, savedAtOnce) {
		if f.err == nil {
			f.err = f.save(part)
		}
	}
}

// addSeen adds the first and the last day over all time to sources that are senders.
func (m *Mail) addSeen(ctx context.Context, group Group, sources []*source) error {
	if group != GroupNetwork || len(sources) == 0 {
		return nil
	}
	keys := make([]string, len(sources))
	for i, s := range sources {
		keys[i] = s.Key
	}
	stored, err := m.team.Senders(ctx, m.domain, keys)
	if err != nil {
		return fmt.Errorf("read senders: %w", err)
	}
	for _, s := range sources {
		seen := dmarcd.SeenDays{First: s.First, Last: s.Last}
		if known, ok := stored[s.Key]; ok {
			seen = seen.And(known.First).And(known.Last)
		}
		s.Seen = &seen
	}
	return nil
}
