package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/store"
)

const (
	// topAdvice is the number of domains of TopAdvice.
	topAdvice = 10
	// maxSingleReads is the largest number of domains whose mail is read one by one. For more, the
	// mail of all domains is read once, unless their checks have more than situationBytes.
	maxSingleReads = 40
	situationBytes = 16 << 20
	// adviceAge is how long advice is reused: names of senders and their catalogue change
	// without a change of the domain. Advice is refreshed in the background at half of it.
	adviceAge = 10 * time.Minute
	// askedFor is how long the advice of a team is refreshed after a request for it.
	askedFor = 24 * time.Hour
	// maxRefreshed limits the domains of a team whose advice is refreshed, maxAdvice the domains of
	// all teams whose advice is cached.
	maxRefreshed = 1000
	maxAdvice    = 50_000
	// maxCached is the length of the longest advice that is cached, in bytes.
	maxCached = 8 << 10
	// refreshFactor limits refreshing to 5 % of the time.
	refreshFactor = 20
)

// TopAdvice is AllAdvice for the most urgent domains.
func (t *Team) TopAdvice(ctx context.Context) ([]dmarcd.Advice, error) {
	advice, _, err := t.AllAdvice(ctx, 0, topAdvice)
	return advice, err
}

// advise returns the advice for domains, from the cache where nothing has changed and it is
// not older than age; 0 computes all of it. It may return memory.ErrBusy.
func (t *Team) advise(ctx context.Context, domains []dmarcd.Domain, age time.Duration) ([]dmarcd.Advice, error) {
	all := make([]dmarcd.Advice, len(domains))
	var open []int
	known, now := t.service.advice, t.service.options.Now()
	bases, err := t.adviceBases(ctx, domains)
	if err != nil {
		return nil, err
	}
	for i, domain := range domains {
		var ok bool
		if all[i], ok = known.get(adviceKey{t.team.ID(), domain.ID}, bases[i], now.Add(-age)); !ok || age == 0 {
			open = append(open, i)
		}
	}
	var computed []int
	together := 1
	if len(open) > maxSingleReads {
		held, release, err := t.service.options.Memory.AcquireAll(ctx, t.team.ID())
		if err != nil {
			return nil, err
		}
		defer release()
		ctx, together = held, len(open)
	}
	for len(open) > 0 {
		some := make([]dmarcd.Domain, min(len(open), together))
		for n := range some {
			some[n] = domains[open[n]]
		}
		advice, err := t.computeAdvice(ctx, some)
		if err != nil {
			return nil, err
		}
		for n, i := range open[:len(advice)] {
			all[i] = advice[n]
			known.put(adviceKey{t.team.ID(), domains[i].ID}, rememberedAdvice{advice[n], bases[i], now})
			computed = append(computed, i)
		}
		open = open[len(advice):]
	}
	postures := make([]store.StoredPosture, len(computed))
	for n, i := range computed {
		postures[n] = store.StoredPosture{Domain: domains[i].ID, Posture: all[i].Posture(now), Basis: bases[i]}
	}
	t.savePostures(ctx, postures)
	return all, nil
}

// adviceBasis is a hash of the input of advice: equal bases give equal advice.
type adviceBasis [sha256.Size]byte

// basisOf hashes values. The format must distinguish different values.
func basisOf(format string, values ...any) adviceBasis {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, format, values...) // a hash has no errors
	return adviceBasis(sum.Sum(nil))
}

// adviceBases returns the basis of the advice for each domain: its state, the senders that the team
// added, and whether the team has a mailbox.
func (t *Team) adviceBases(ctx context.Context, domains []dmarcd.Domain) ([]adviceBasis, error) {
	own, err := t.team.TeamSenders(ctx)
	if err != nil {
		return nil, err
	}
	mailboxes, err := t.team.Mailboxes(ctx)
	if err != nil {
		return nil, err
	}
	senders := basisOf("%q %t", own, len(mailboxes) > 0)
	ids := make([]dmarcd.DomainID, len(domains))
	for i, domain := range domains {
		ids[i] = domain.ID
	}
	_, to := t.period(dmarcd.Days{})
	from := to - insight.LinkDays + 1
	states, err := t.team.AdviceStates(ctx, ids, dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return nil, err
	}
	bases := make([]adviceBasis, len(domains))
	for i, domain := range domains {
		bases[i] = basisOf("%q %q %t %t %d %v %x", domain.Record, domain.RecordDomain, domain.KnownAt.IsZero(), domain.Parked, domain.ForwardingAccepted, states[domain.ID], senders)
	}
	return bases, nil
}

// RefreshAdvice computes the outdated advice of one of the teams that requested advice recently. more
// reports whether other teams are due.
func (s *Service) RefreshAdvice(ctx context.Context) (more bool, err error) {
	begin := s.options.Now()
	id, ok, more := s.advice.due(begin)
	if !ok {
		return false, nil
	}
	t := s.Team(id, CommandLine())
	defer func() { s.advice.refreshed(id, begin, s.options.Now()) }()
	from, to := t.period(dmarcd.Days{})
	domains, err := t.team.UrgentDomains(ctx, dmarcd.Days{From: &from, To: &to}, 0, maxRefreshed)
	if err != nil {
		return more, err
	}
	if _, err = t.advise(ctx, domains, adviceAge/2); errors.Is(err, memory.ErrBusy) {
		err = nil // next time
	}
	return more, err
}

// adviceCache caches the advice of domains.
type adviceCache struct {
	known *cache.Cache[adviceKey, rememberedAdvice]

	mu    sync.Mutex
	teams map[dmarcd.TeamID]*askedTeam
}

type adviceKey struct {
	team   dmarcd.TeamID
	domain dmarcd.DomainID
}

type rememberedAdvice struct {
	advice dmarcd.Advice
	basis  adviceBasis
	at     time.Time
}

// askedTeam is when a team last requested advice, and when its advice is refreshed next.
type askedTeam struct{ asked, next time.Time }

// get returns advice with that basis that was not computed before oldest.
func (c *adviceCache) get(key adviceKey, basis adviceBasis, oldest time.Time) (dmarcd.Advice, bool) {
	remembered, ok := c.known.Get(key)
	return remembered.advice, ok && remembered.basis == basis && !remembered.at.Before(oldest)
}

func (c *adviceCache) put(key adviceKey, remembered rememberedAdvice) {
	size := len(remembered.advice.Conclusion)
	for _, step := range remembered.advice.Steps {
		if size += len(step.Title) + len(step.Reason); step.Record != nil {
			size += len(step.Record.Value)
		}
	}
	if size <= maxCached {
		c.known.Put(key, remembered, 1)
	}
}

// ask records that a team requested advice.
func (c *adviceCache) ask(team dmarcd.TeamID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.teams == nil {
		c.teams = map[dmarcd.TeamID]*askedTeam{}
	}
	if c.teams[team] == nil {
		c.teams[team] = &askedTeam{}
	}
	c.teams[team].asked = now
}

// due returns a team whose advice is due for a refresh. ok is false if there is none, more reports
// whether there are others.
func (c *adviceCache) due(now time.Time) (due dmarcd.TeamID, ok, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.teams, func(_ dmarcd.TeamID, team *askedTeam) bool { return now.Sub(team.asked) > askedFor })
	for id, team := range c.teams {
		if now.Before(team.next) {
			continue
		}
		if ok {
			return due, true, true
		}
		due, ok = id, true
	}
	return due, ok, false
}

// refreshed notes how long it took to refresh the advice of a team.
func (c *adviceCache) refreshed(team dmarcd.TeamID, begin, end time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.teams[team] != nil {
		c.teams[team].next = end.Add(max(time.Minute/2, refreshFactor*end.Sub(begin)))
	}
}

// ErrQuestionClosed means that the question does not exist or has been answered.
var ErrQuestionClosed = &dmarcd.InvalidError{Field: "key", Code: "question_closed", Message: "There is no open question about this sender. List the advice again."}

// Answer answers the question whether a sender sends on behalf of the owner of a domain, and returns
// the new class of the sender. It returns ErrQuestionClosed if there is no such question.
func (t *Team) Answer(ctx context.Context, name, sender string, yours bool) (dmarcd.Class, error) {
	if _, err := t.named(ctx, dmarcd.RightChange, name); err != nil {
		return "", err
	}
	simulation, err := t.Simulate(ctx, name, dmarcd.Days{}, PolicyChange{})
	if err != nil {
		return "", err
	}
	if !simulation.Asks(sender) {
		return "", ErrQuestionClosed
	}
	class := dmarcd.ClassSpoofing
	if yours {
		class = dmarcd.ClassYours
	}
	return class, t.SetSenderClass(ctx, name, sender, class)
}

// AcceptForwarding accepts that a stricter policy affects a number of forwarded messages of a domain in
// 30 days; 0 withdraws the consent.
func (t *Team) AcceptForwarding(ctx context.Context, name string, messages int64) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return err
	}
	if messages < 0 || messages > dmarcd.MaxCount {
		return &dmarcd.InvalidError{Field: "accepted", Message: "The number of accepted messages must be a whole number of at least 1, or null."}
	}
	return t.team.AcceptForwarding(ctx, domain.Name, messages, t.actor.to("domain.forwarding", domain.Name, strconv.FormatInt(messages, 10)))
}

// Advice returns the stage and next action of a domain, from its DNS and the mail of the last
// 30 days.
func (t *Team) Advice(ctx context.Context, name string) (dmarcd.Advice, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return dmarcd.Advice{}, err
	}
	all, err := t.advise(ctx, []dmarcd.Domain{domain}, 0)
	if err != nil {
		return dmarcd.Advice{}, err
	}
	return all[0], nil
}

// AllAdvice returns the advice for up to limit domains, the most urgent first: domains without a usable
// policy, then those with p=none, then the others, each sorted by failing messages. It skips the first
// after domains. more reports whether there are further ones.
func (t *Team) AllAdvice(ctx context.Context, after, limit int) (all []dmarcd.Advice, more bool, err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, false, err
	}
	from, to := t.period(dmarcd.Days{})
	domains, err := t.team.UrgentDomains(ctx, dmarcd.Days{From: &from, To: &to}, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	if more = len(domains) > limit; more {
		domains = domains[:limit]
	}
	if len(domains) > 0 {
		t.service.advice.ask(t.team.ID(), t.service.options.Now())
		all, err = t.advise(ctx, domains, adviceAge)
	}
	return all, more, err
}

// computeAdvice returns the advice for the first domains, at least one: from the mail of that
// domain, or of all domains at once. Their checks have at most about situationBytes.
func (t *Team) computeAdvice(ctx context.Context, domains []dmarcd.Domain) ([]dmarcd.Advice, error) {
	from, to := t.period(dmarcd.Days{})
	name := ""
	if len(domains) == 1 {
		name = domains[0].Name
	}
	// First, since it waits for memory.
	mail, err := t.service.options.Insight.Read(ctx, t.team, name, dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return nil, err
	}
	defer mail.Close()
	mailboxes, err := t.team.Mailboxes(ctx)
	if err != nil {
		return nil, err
	}
	var situations []insight.Situation
	for size, i := int64(0), 0; i < len(domains) && size < situationBytes; i++ {
		situation, err := t.situation(ctx, domains[i], dmarcd.Days{})
		if err != nil {
			return nil, err
		}
		situation.Mailbox = len(mailboxes) > 0 || domains[i].Sample
		situations = append(situations, situation)
		size += sizeOf(situation.Domain)
	}
	all, err := mail.Advise(ctx, situations...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// sizeOf returns about how many bytes of texts the facts of a domain have.
func sizeOf(d insight.Domain) int64 {
	var size counter
	for _, check := range d.Checks {
		_, _ = fmt.Fprint(&size, check.Check.Findings, check.Check.Facts) // has no errors
	}
	_, _ = fmt.Fprint(&size, d.Facts, d.Classes)
	return int64(size)
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// ProposedRecord returns the DMARC record to publish for a domain without a change of its
// policy. Findings, setup guide and advice propose the same.
func (t *Team) ProposedRecord(ctx context.Context, name string) (string, error) {
	domain, err := t.Domain(ctx, name)
	if err != nil {
		return "", err
	}
	situation, err := t.situation(ctx, domain, dmarcd.Days{})
	return situation.Base, err
}

// situation returns the published records of a domain, and the proposed record of the setup
// guide.
func (t *Team) situation(ctx context.Context, domain dmarcd.Domain, days dmarcd.Days) (insight.Situation, error) {
	about, check, err := t.about(ctx, domain, days)
	if err != nil {
		return insight.Situation{}, err
	}
	options := t.service.options
	published := insight.Published{Record: domain.Record, Own: domain.RecordDomain == domain.Name, Parked: domain.Parked, Unchecked: domain.KnownAt.IsZero(), Accepted: domain.ForwardingAccepted}
	repaired := dnscheck.Repaired(check, domain)
	published.Base = dnscheck.ProposedHere(check, domain)
	setup := dnscheck.Setup(domain, options.ReportDomain, options.BaseURL, facts.Published{Repaired: repaired}, t.service.store.ActiveMailbox(ctx))
	at := slices.IndexFunc(setup, func(r dmarcd.SetupRecord) bool { return r.Purpose == dmarcd.SetupDMARC })
	if at >= 0 {
		published.Base, published.Addressed, published.ReportsHere = setup[at].Value, true, setup[at].Seen
	}
	return insight.Situation{Domain: about, Published: published}, nil
}
