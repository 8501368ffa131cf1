// Package dnscheck looks at the DNS of a domain, makes a check of what it finds
// and has it kept. What the records mean is said by the protocol packages; how
// the DNS is asked, by the resolver that it is given.
package dnscheck

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
)

const (
	// keepTimeout bounds the writing of a check, which goes on when the
	// caller's time for the look itself is over.
	keepTimeout = 5 * time.Second
	// RetryInterval is when an inconclusive check is tried again.
	RetryInterval = time.Minute
	// spread is by how much a planned time is shifted at most, as a share of
	// the interval: domains that were added together drift apart.
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
	// Interval is the time between two conclusive checks of a domain.
	Interval time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Checker checks domains. It is safe for concurrent use.
type Checker struct {
	options Options
}

// New returns a checker.
func New(options Options) *Checker { return &Checker{options: options} }

// Keeper keeps the checks of one team.
type Keeper interface {
	// SaveCheck keeps a check of the domain with that name, plans the next
	// one, and returns the domain as it is then.
	SaveCheck(ctx context.Context, name string, check dmarcd.Check, next time.Time) (dmarcd.Domain, error)
}

// Check looks at a domain's DNS until the deadline of ctx and has the result
// kept, conclusive or not. The next check is planned after the interval, or
// after retry if this one was inconclusive.
func (c *Checker) Check(ctx context.Context, keeper Keeper, name string, retry time.Duration) (dmarcd.Domain, dmarcd.Check, error) {
	check := c.Look(ctx, name)
	wait := retry
	if check.Conclusive {
		wait = c.options.Interval
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	domain, err := keeper.SaveCheck(keeping, name, check, c.options.Now().Add(jitter(wait)))
	return domain, check, err
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
	check.Usable = found.Status == dmarc.StatusOK
	if found.Record == nil {
		return check
	}
	check.Record = printable(found.Record.Text)
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

// jitter shifts a duration by up to a tenth either way.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*spread*float64(d)) //nolint:gosec // spreads load, guards nothing
}
