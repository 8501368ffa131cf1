package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// JobRecords is Records for a job.
type JobRecords interface {
	Records
	// JobTurn waits for a slot of the team for the long work of jobs.
	JobTurn(ctx context.Context) (end func())
}

// classDays is the period that classes are derived from, the same as on the pages.
const classDays = 30

// FindSenders finds the senders of a team's mail in some days. It calls save with batches of senders:
// of each domain, and of all domains with domain 0. A sender may be saved several times, with different
// days. Finally it calls saveDays with the mail of each domain and day. Senders in it have their class
// of the 30 days up to the last day.
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
	f := &senderFinder{grouping: m.grouping(GroupSender), days: make(map[senderOf]dmarcd.SeenDays), save: save}
	figures := &mailDays{grouping: m.grouping(GroupSender), days: make(map[mailDayOf]*mailDay), signedBy: make(map[signed][]dkimKey)}
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

// maxFound limits the senders in memory before they are saved, savedAtOnce those of a transaction.
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

// first returns the first day of a sender according to its mail of a day. If senders are divided by
// address, it is the first day of the address: an address that moves to another sender, because the
// SPF record lists it now, does not make that sender look new.
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

// addSeen adds the first and the last day over all time to rows that are senders.
func (m *Mail) addSeen(ctx context.Context, group Group, entries []*entry) error {
	if group != GroupSender || len(entries) == 0 {
		return nil
	}
	keys := make([]string, len(entries))
	for i, s := range entries {
		keys[i] = s.Key
	}
	stored, err := m.team.Senders(ctx, m.domain, keys)
	if err != nil {
		return fmt.Errorf("read senders: %w", err)
	}
	for _, s := range entries {
		seen := dmarcd.SeenDays{First: s.First, Last: s.Last}
		if known, ok := stored[s.Key]; ok {
			seen = seen.And(known.First).And(known.Last)
		}
		s.Seen = &seen
	}
	return nil
}

// maxMailParts limits the senders, the selectors and the receivers of a day, those with the most
// messages; maxAllMailParts limits all of them in a scan.
const (
	maxMailParts    = 50
	maxAllMailParts = 1 << 17
)

// mailDays gathers the mail of each domain and day for the detection of alerts.
type mailDays struct {
	*grouping
	days  map[mailDayOf]*mailDay
	parts int
	// signedBy caches the keys of the signatures in a block.
	signedBy map[signed][]dkimKey
}

type mailDayOf struct {
	domain dmarcd.DomainID
	day    dmarcd.Day
}

// mailDay is the mail of a domain on a day.
type mailDay struct {
	dmarcd.MailPart
	unverified                    int64
	senders, selectors, receivers map[string]*dmarcd.MailPart
}

// dkimKey is a DKIM key of the domain, and whether the signature verifies.
type dkimKey struct {
	name   string
	passed bool
}

func (m *mailDays) begin(b *rollup.Block) {
	m.grouping.begin(b)
	clear(m.signedBy)
}

func (m *mailDays) add(share *rollup.Share, records []rollup.Record) {
	of := mailDayOf{share.Domain, share.Day}
	day := m.days[of]
	if day == nil {
		day = &mailDay{senders: make(map[string]*dmarcd.MailPart), selectors: make(map[string]*dmarcd.MailPart), receivers: make(map[string]*dmarcd.MailPart)}
		m.days[of] = day
	}
	receiver := m.part(day.receivers, share.Reporter)
	for i := range records {
		r := &records[i]
		passes := r.Outcome.Compliant()
		addPart(&day.MailPart, r.Count, passes)
		if share.Unverified {
			addMessages(&day.unverified, r.Count)
		}
		addPart(receiver, r.Count, passes)
		addPart(m.part(day.senders, m.recognition.senders.keys[m.sender(share, r)]), r.Count, passes)
		for _, key := range m.dkimKeys(share, r) {
			addPart(m.part(day.selectors, key.name), r.Count, key.passed)
		}
	}
}

// maxDKIMKeyName limits the name of a DKIM key to the limit of DNS (RFC 1035 §2.3.4), which reports
// ignore.
const maxDKIMKeyName = 253

// dkimKeys returns the DKIM keys of the domain that a message is signed with.
func (m *mailDays) dkimKeys(share *rollup.Share, r *rollup.Record) []dkimKey {
	signatures := m.block.Identities[r.Identity].Signatures
	if len(signatures) == 0 {
		return nil
	}
	of := signed{share.From, r.Identity}
	keys, known := m.signedBy[of]
	if !known {
		for _, s := range signatures {
			name := s.Selector + "._domainkey." + s.Domain
			if s.Selector == "" || len(name) > maxDKIMKeyName {
				continue
			}
			if dmarcd.Covers(s.Domain, share.From) || dmarcd.Covers(share.From, s.Domain) {
				keys = append(keys, dkimKey{name, s.Passed()})
			}
		}
		m.signedBy[of] = keys
	}
	return keys
}

// part returns the part with a key, nil if there are too many.
func (m *mailDays) part(parts map[string]*dmarcd.MailPart, key string) *dmarcd.MailPart {
	part := parts[key]
	if part == nil && m.parts < maxAllMailParts {
		m.parts++
		part = new(dmarcd.MailPart)
		parts[strings.Clone(key)] = part
	}
	return part
}

func addPart(part *dmarcd.MailPart, messages int64, passes bool) {
	if part == nil {
		return
	}
	addMessages(&part.Messages, messages)
	if passes {
		addMessages(&part.Passes, messages)
	}
}

// found returns the gathered days. class returns the class of a sender of a domain.
func (m *mailDays) found(class func(dmarcd.DomainID, senderIndex) dmarcd.Class) []dmarcd.DomainDay {
	classes := make(map[senderOf]dmarcd.Class)
	all := make([]dmarcd.DomainDay, 0, len(m.days))
	for of, day := range m.days {
		senders := largestParts(day.senders)
		for i := range senders {
			at := senderOf{of.domain, m.recognition.senders.byKey[senders[i].Key]}
			if _, known := classes[at]; !known {
				classes[at] = class(at.domain, at.sender)
			}
			senders[i].Name, senders[i].Class = m.recognition.senderName(m.recognition.senders.list[at.sender]), classes[at]
		}
		all = append(all, dmarcd.DomainDay{Domain: of.domain, MailDay: dmarcd.MailDay{
			Day: of.day, Messages: day.Messages, Passes: day.Passes, Unverified: day.unverified,
			Senders: senders, Selectors: largestParts(day.selectors), Receivers: largestParts(day.receivers),
		}})
	}
	slices.SortFunc(all, func(a, b dmarcd.DomainDay) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Day, b.Day))
	})
	return all
}

// largestParts returns the parts with the most messages.
func largestParts(parts map[string]*dmarcd.MailPart) []dmarcd.MailPart {
	var all []dmarcd.MailPart
	for key, part := range parts {
		part.Key, part.Name = key, key
		all = append(all, *part)
	}
	return top(all, maxMailParts, func(a, b dmarcd.MailPart) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Key, b.Key))
	})
}
