// Package dnscheck looks at the DNS of a domain, makes a check of what it finds
// and has it kept. What the records mean is said by the protocol packages; how
// the DNS is asked, by the resolver that it is given.
package dnscheck

import (
	"context"
	"crypto/x509"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

const (
	// keepTimeout bounds the writing of a check, which goes on when the
	// caller's time for the look itself is over.
	keepTimeout = 5 * time.Second
	// retryInterval is when an inconclusive check is first tried again.
	retryInterval = time.Minute
	// spread is by how much a retry is shifted at most, as a share of its time.
	spread = 0.1
)

// Options are the settings of a Checker.
type Options struct {
	// Resolver is asked; it should not answer from a cache, since what a
	// domain's owner changed a moment ago is what a check is for.
	Resolver dns.Resolver
	// ReportDomain is the domain of this server's reporting addresses, "" if
	// it has none.
	ReportDomain string
	// Budget is how many questions one examination may ask; default
	// DefaultBudget.
	Budget int
	// Dialer connects to the hosts that records name. Names are resolved through
	// Resolver, within the budget of the check.
	Dialer outbound.Dialer
	// WebRoots holds the authorities that are trusted for HTTPS; nil is those of
	// the system.
	WebRoots *x509.CertPool
	// MarkRoots holds the authorities that are trusted for the certificates of
	// BIMI. Without any, whether one of them stands behind a certificate is not
	// judged.
	MarkRoots *x509.CertPool
	// DialMX, where set, is used to compare the certificates of mail servers
	// with their TLSA records. By default no mail server is connected to.
	DialMX dane.Dial
	// Interval is the time between two conclusive looks at the DMARC record of
	// a domain, FullInterval that between two looks at everything.
	Interval, FullInterval time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Checker checks domains. It is safe for concurrent use.
type Checker struct {
	options Options
}

// New returns a checker.
func New(options Options) *Checker {
	if options.Budget == 0 {
		options.Budget = DefaultBudget
	}
	return &Checker{options: options}
}

// Keeper keeps the checks of one team.
type Keeper interface {
	// ID returns the team's id.
	ID() dmarcd.TeamID
	// SaveCheck keeps a check of the domain with that name, plans the next
	// one, and returns the domain as it is then.
	SaveCheck(ctx context.Context, name string, check dmarcd.Check, plan dmarcd.Plan) (dmarcd.Domain, error)
}

// Occasion is why a domain is looked at.
type Occasion uint8

const (
	// Scheduled means that it was due.
	Scheduled Occasion = iota
	// Requested means that somebody asked for it.
	Requested
	// Created means that the domain was added; where the DNS gives no answer,
	// the next look follows at once, in the background.
	Created
)

// Check looks at a domain's DNS until the deadline of ctx and has the result
// kept, conclusive or not. The next check is planned after the interval, or
// earlier if this one was inconclusive.
func (c *Checker) Check(ctx context.Context, keeper Keeper, name string, occasion Occasion) (dmarcd.Domain, dmarcd.Check, error) {
	check := c.Look(dns.ForClient(ctx, int64(keeper.ID())), name)
	check.Asked = occasion != Scheduled
	var domain dmarcd.Domain
	err := c.keep(ctx, name, occasion, func(ctx context.Context, plan dmarcd.Plan) (err error) {
		domain, err = keeper.SaveCheck(ctx, name, check, plan)
		return err
	})
	return domain, check, err
}

// Keep has save keep the result of a scheduled Examine, with the plan for the
// next, even where the time of ctx is over.
func (c *Checker) Keep(ctx context.Context, name string, save func(ctx context.Context, plan dmarcd.Plan) error) error {
	return c.keep(ctx, name, Scheduled, save)
}

func (c *Checker) keep(ctx context.Context, name string, occasion Occasion, save func(ctx context.Context, plan dmarcd.Plan) error) error {
	now := c.options.Now()
	plan := dmarcd.Plan{
		Next:     turn(name, now, c.options.Interval),
		NextFull: turn(name, now, c.options.FullInterval),
		Retry:    jitter(retryInterval),
		MaxRetry: c.options.Interval,
	}
	if occasion == Created {
		plan.Retry = 0
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err() // told to stop: that nobody answered says nothing
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	return save(keeping, plan)
}

// Look looks at a domain's DNS until the deadline of ctx.
func (c *Checker) Look(ctx context.Context, name string) dmarcd.Check {
	check := dmarcd.Check{At: c.options.Now(), NeedsMailbox: c.options.ReportDomain != ""}
	found := dmarc.Discover(ctx, c.options.Resolver, name)
	if found.Status == dmarc.StatusInconclusive {
		check.Reason = found.Reason
		return check
	}
	check.Conclusive = true
	for _, step := range found.Steps {
		if step.Domain == found.RecordDomain || found.Record == nil {
			check.TTL = step.Answer.TTL
			break
		}
	}
	check.Usable = found.Status == dmarc.StatusOK
	if found.Record == nil {
		return check
	}
	check.Record, check.RecordDomain = printable(found.Record.Text), found.RecordDomain
	check.Policy = found.Record.P.String()
	check.Mailboxes = c.mailboxes(found.Record.RUA)
	return check
}

// mailboxes returns the local parts of the addresses at the report domain.
func (c *Checker) mailboxes(rua []dmarc.URI) []string {
	var mailboxes []string
	for _, uri := range rua {
		at := strings.LastIndexByte(uri.Address, '@')
		if at > 0 && uri.Host == c.options.ReportDomain {
			// A reporting address has no upper case; mail systems on the way
			// and people who type may add some.
			mailboxes = append(mailboxes, strings.ToLower(uri.Address[:at]))
		}
	}
	return mailboxes
}

// printable replaces what neither JSON nor PostgreSQL can hold: a TXT record may
// contain any octet.
func printable(record string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(record, "\uFFFD"), "\x00", "\uFFFD")
}

// turn returns when a domain's turn comes next: about an interval from now, at a
// moment of it that its name decides. Domains that were added together are so
// spread over the whole interval from their second check on, whatever happens
// in between.
func turn(name string, now time.Time, interval time.Duration) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	share := float64(hash.Sum64()>>11) / (1 << 53)
	// Whole intervals since 1970, and the domain's moment of the next but half:
	// between half an interval and one and a half from now.
	earliest := now.Add(interval / 2)
	began := earliest.Truncate(interval)
	at := began.Add(time.Duration(share * float64(interval)))
	if at.Before(earliest) {
		at = at.Add(interval)
	}
	return at
}

// jitter shifts a duration by up to a tenth either way.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*spread*float64(d)) //nolint:gosec // spreads load, guards nothing
}
