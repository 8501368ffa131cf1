package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recordfile"
)

// AddDomain adds a domain and checks its DNS before it returns. If the check fails the domain
// is still added, and the schedule retries. An existing domain is dmarcd.ErrConflict, one over
// the quota a *dmarcd.QuotaError.
func (t *Team) AddDomain(ctx context.Context, name string) (dmarcd.Domain, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Domain{}, err
	}
	name, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, err
	}
	domain, err := t.team.AddDomain(ctx, name, t.service.options.Now().Add(createGrace), t.actor.to("domain.add", name, ""))
	if err != nil {
		return dmarcd.Domain{}, err
	}
	checked, _, err := t.checkNow(ctx, name, dnscheck.Created, createTimeout)
	switch {
	case err == nil:
		domain = checked
	case !errors.Is(err, dmarcd.ErrNotFound): // deleted meanwhile, by another request
		t.service.options.Log.WarnContext(ctx, "first check of a domain not stored", "error", err)
	}
	return domain, nil
}

// AddDomains adds domains, with names as from dmarcd.ParseName, and leaves checks to the
// schedule. It returns the number of new ones; over the quota (a *dmarcd.QuotaError) it adds
// none.
func (t *Team) AddDomains(ctx context.Context, names []string) (added int, err error) {
	if err := t.may(dmarcd.RightChange); err != nil || len(names) == 0 {
		return 0, err
	}
	return t.team.AddDomains(ctx, names, t.service.options.Now(), t.actor.to("domain.add", "", ""))
}

// DeleteDomain deletes a domain with its data.
func (t *Team) DeleteDomain(ctx context.Context, name string) error {
	domain, err := t.named(ctx, t.deleting(), name)
	if err != nil {
		return err
	}
	return t.team.DeleteDomain(ctx, domain.Name, t.actor.to("domain.delete", domain.Name, ""))
}

// SetPurpose sets what a domain is used for; "" clears it.
func (t *Team) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return err
	}
	return t.team.SetPurpose(ctx, domain.Name, purpose, t.actor.to("domain.purpose", domain.Name, cmp.Or(string(purpose), "none")))
}

// SetParked marks a domain as not used for mail, or removes the mark.
func (t *Team) SetParked(ctx context.Context, name string, parked bool) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return err
	}
	word := "no"
	if parked {
		word = "yes"
	}
	return t.team.SetParked(ctx, domain.Name, parked, t.actor.to("domain.parked", domain.Name, word))
}

// Verify checks the DMARC record of a domain now, and returns the updated domain. A sample
// domain stays as it is.
func (t *Team) Verify(ctx context.Context, name string) (dmarcd.Domain, facts.Check, error) {
	// Find the domain first: a team must not trigger queries for names of others.
	end := t.team.ReadTurn(ctx)
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	end()
	if err != nil {
		return dmarcd.Domain{}, facts.Check{}, err
	}
	if domain.Sample {
		return domain, facts.Check{Conclusive: true}, nil
	}
	return t.checkNow(ctx, domain.Name, dnscheck.Requested, verifyTimeout)
}

// watchEvery is the minimum interval of checks while users watch a domain.
const watchEvery = 10 * time.Second

// Examine runs a full check now, unless the domain is a sample. It continues if the client
// disconnects: a cancelled check would be saved as inconclusive.
func (t *Team) Examine(ctx context.Context, name string) error {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil || domain.Sample {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), examineTime)
	defer cancel()
	release, err := t.service.examining.Acquire(ctx, t.team.ID(), 1)
	if err != nil {
		return err
	}
	defer release()
	return t.service.checks.Full(ctx, t.team, domain.Name, dnscheck.Requested)
}

// Watch runs a full check for users who wait for records to appear: one for all of them, and
// at most every few seconds.
func (t *Team) Watch(ctx context.Context, name string) error {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil || t.service.options.Now().Sub(domain.CheckedAt) < watchEvery {
		return err
	}
	leave, ok := t.service.watching.Try(watched{t.team.ID(), domain.Name})
	if !ok {
		return nil // another user's check is under way
	}
	defer leave()
	return t.Examine(ctx, domain.Name)
}

// watched is a domain of a team.
type watched struct {
	team dmarcd.TeamID
	name string
}

// named returns the domain with a name as entered, if the actor has a right in the team. An
// invalid name is dmarcd.ErrNotFound.
func (t *Team) named(ctx context.Context, right dmarcd.Right, name string) (dmarcd.Domain, error) {
	if err := t.may(right); err != nil {
		return dmarcd.Domain{}, err
	}
	parsed, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, dmarcd.ErrNotFound
	}
	return t.team.Domain(ctx, parsed)
}

// Tagged returns the same use cases, narrowed to the domains with a tag, "" for all: the
// lists of domains, events and reports, the counts by day, the mail, and the advice for
// all domains. What names a domain is not narrowed.
func (t *Team) Tagged(tag string) *Team {
	return &Team{service: t.service, team: t.team.Tagged(tag), actor: t.actor, tag: tag}
}

// SetTags replaces the tags of a domain, and returns them in their
// canonical form.
func (t *Team) SetTags(ctx context.Context, name string, tags []string) ([]string, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return nil, err
	}
	tags, err := dmarcd.ParseTags(tags)
	if err != nil {
		return nil, err
	}
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return nil, err
	}
	return tags, t.team.SetTags(ctx, domain.Name, tags, t.actor.to("domain.tags", domain.Name, strings.Join(tags, " ")))
}

// DomainTags returns the tags of a domain, in order.
func (t *Team) DomainTags(ctx context.Context, name string) ([]string, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return nil, err
	}
	return t.team.DomainTags(ctx, domain.Name)
}

// Tags returns the tags of the team's domains, in order, with how many domains have each.
func (t *Team) Tags(ctx context.Context) ([]dmarcd.TagCount, error) {
	return see(t, func() ([]dmarcd.TagCount, error) { return t.team.Tags(ctx) })
}

// Setup returns the records to publish for a domain, and whether the latest check found them.
// It makes no DNS queries.
func (t *Team) Setup(ctx context.Context, name string) (dmarcd.Setup, error) {
	domain, err := t.Domain(ctx, name)
	if err != nil {
		return dmarcd.Setup{}, err
	}
	options := t.service.options
	address := domain.ReportAddress(options.ReportDomain)
	latest, err := t.team.LatestCheck(ctx, domain.Name)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.Setup{}, err
	}
	published := latest.Check.Published(address)
	published.Repaired = dnscheck.Repaired(latest.Check, domain)
	records := dnscheck.Setup(domain, options.ReportDomain, options.BaseURL, published, t.service.store.ActiveMailbox(ctx))
	if challenge, needed := dnscheck.Challenge(domain, address); needed {
		records = append(records, challenge)
	}
	return dmarcd.Setup{Domain: domain, Address: address, Records: records}, nil
}

// Zone returns the DNS zone of a name: that of the domain of the team at or above it, as its latest
// check found, or else the organizational domain.
func (t *Team) Zone(ctx context.Context, name string) (string, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return "", err
	}
	if !recordfile.IsName(name) {
		return "", dmarcd.ErrNotFound
	}
	organization, found := recordfile.Zone(name, ""), ""
	for above, more := name, true; more && len(above) >= len(organization); _, above, more = strings.Cut(above, ".") {
		latest, err := t.team.LatestCheck(ctx, above)
		if err == nil {
			if latest.Check.Facts != nil {
				found = latest.Check.Facts.DNSSEC.Zone
			}
			break
		}
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return "", err
		}
	}
	return recordfile.Zone(name, found), nil
}

// parseNames returns the names of domains as stored, each once; what is not a name is left out.
func parseNames(names []string) []string {
	parsed := make([]string, 0, len(names))
	known := make(map[string]bool, len(names))
	for _, name := range names {
		if name, err := dmarcd.ParseName(name); err == nil && !known[name] {
			known[name] = true
			parsed = append(parsed, name)
		}
	}
	return parsed
}

// mayChangeAll returns dmarcd.ErrForbidden, or a *dmarcd.InvalidError for too many names.
func (t *Team) mayChangeAll(right dmarcd.Right, names []string) error {
	if err := t.may(right); err != nil {
		return err
	}
	if len(names) > dmarcd.MaxBulk {
		return &dmarcd.InvalidError{Field: "domain", Message: fmt.Sprintf("At most %d domains can be changed at once.", dmarcd.MaxBulk)}
	}
	return nil
}

// TagDomains adds tags to domains and removes others, all or none. It returns the number of domains
// that it changed; names that the team does not have are ignored.
func (t *Team) TagDomains(ctx context.Context, names, add, remove []string) (changed int, err error) {
	if err := t.mayChangeAll(dmarcd.RightChange, names); err != nil {
		return 0, err
	}
	if add, err = dmarcd.ParseTags(add); err != nil {
		return 0, err
	}
	if remove, err = dmarcd.ParseTags(remove); err != nil {
		return 0, err
	}
	if len(add)+len(remove) == 0 {
		return 0, &dmarcd.InvalidError{Field: "tags", Message: "Enter a tag."}
	}
	names = parseNames(names)
	detail := strings.TrimSpace(prefixed("+", add) + " " + prefixed("-", remove))
	return t.team.TagDomains(ctx, names, add, remove, t.actor.to("domain.tags", someDomains(names), detail))
}

// prefixed joins words with a prefix before each.
func prefixed(prefix string, words []string) string {
	var b strings.Builder
	for _, word := range words {
		b.WriteString(" " + prefix + word)
	}
	return strings.TrimSpace(b.String())
}

// someDomains is the target of an audit entry about domains.
func someDomains(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d domains", len(names))
}

// CheckSoon has the schedule check domains next, and returns their number.
func (t *Team) CheckSoon(ctx context.Context, names []string) (due int, err error) {
	if err := t.mayChangeAll(dmarcd.RightChange, names); err != nil {
		return 0, err
	}
	return t.team.CheckSoon(ctx, parseNames(names))
}

// DeleteDomains deletes domains with their data, and returns those that the team had. After an error
// some may be deleted.
func (t *Team) DeleteDomains(ctx context.Context, names []string) (deleted []string, err error) {
	if err := t.mayChangeAll(t.deleting(), names); err != nil {
		return nil, err
	}
	return t.team.DeleteDomains(ctx, parseNames(names), func(deleted []string) dmarcd.AuditEntry {
		return t.actor.to("domain.delete", someDomains(deleted), strings.Join(deleted, " "))
	})
}

// deleting is the right that deleting a domain needs.
func (t *Team) deleting() dmarcd.Right {
	if t.actor.token {
		return dmarcd.RightChange // as the interface defines
	}
	return dmarcd.RightManage
}

// A NameResult is what became of a name.
type NameResult struct {
	// Domain is the name as stored or, where it is invalid, as given.
	Domain string
	Result Result
	Err    error // why it is invalid
}

// Result is what became of a name.
type Result string

// The results.
const (
	ResultAdded    Result = "added"
	ResultExists   Result = "exists" // the team has it already
	ResultDeleted  Result = "deleted"
	ResultNotFound Result = "not_found"
	ResultInvalid  Result = "invalid" // it is not a domain name
)

// AddNames is AddDomains for names as entered, with a result for each. Over the quota (a
// *dmarcd.QuotaError) it adds none.
func (t *Team) AddNames(ctx context.Context, names []string) ([]NameResult, error) {
	if err := t.mayChangeAll(dmarcd.RightChange, names); err != nil {
		return nil, err
	}
	return eachName(names, ResultAdded, ResultExists, func(parsed []string) ([]string, error) {
		return t.team.AddNewDomains(ctx, parsed, t.service.options.Now(), t.actor.to("domain.add", "", ""))
	})
}

// DeleteNames is DeleteDomains for names as entered, with a result for each.
func (t *Team) DeleteNames(ctx context.Context, names []string) ([]NameResult, error) {
	if err := t.mayChangeAll(t.deleting(), names); err != nil {
		return nil, err
	}
	return eachName(names, ResultDeleted, ResultNotFound, func(parsed []string) ([]string, error) { return t.DeleteDomains(ctx, parsed) })
}

// eachName changes the domains of names, and returns a result for each: done for the first mention of
// a name that change returns, and undone for others.
func eachName(names []string, done, undone Result, change func(parsed []string) (changed []string, err error)) ([]NameResult, error) {
	changed, err := change(parseNames(names))
	if err != nil {
		return nil, err
	}
	open := make(map[string]bool, len(changed))
	for _, name := range changed {
		open[name] = true
	}
	results := make([]NameResult, len(names))
	for i, given := range names {
		name, err := dmarcd.ParseName(given)
		results[i] = NameResult{Domain: name, Result: undone}
		switch {
		case err != nil:
			results[i] = NameResult{Domain: given, Result: ResultInvalid, Err: err}
		case open[name]:
			results[i].Result, open[name] = done, false
		}
	}
	return results, nil
}
