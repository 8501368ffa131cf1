package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/spf"
)

// spfTimeout limits the lookups for a managed SPF record.
const spfTimeout = 10 * time.Second

// newLabel is as long as the label that the name of a new record gets, and is no label.
const newLabel = "000000000000000000000000"

// serveSPF flattens an SPF record. It adds the domain to terms of v that leave it out, so that a name that is no
// longer in use can be resolved without it.
func (t *Team) serveSPF(ctx context.Context, domain dmarcd.Domain, zone string, _ int64, v *dmarcd.RecordVersion) (s serving, err error) {
	invalid := func(message string) error { return &dmarcd.InvalidError{Field: "record", Message: message} }
	record, _ := spf.Parse(v.Content) // valid, see checkRecord
	if v.Content = record.Absolute(domain.Name); strings.Contains(strings.ToLower(v.Content), "."+zone) {
		return s, invalid("The record leads to this installation. Give the one that it stands for: include:, ip4: and other terms.")
	}
	before, err := t.team.ServedSPF(ctx, domain.Name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		before, err = store.ServedSPF{RecordVersion: dmarcd.RecordVersion{Label: newLabel}}, nil
	}
	if err != nil {
		return s, err
	}
	name := before.Label + "." + zone
	flat, err := t.service.flatten(dns.ForUser(ctx), domain.Name, name, *v, before.Records)
	if err != nil {
		return s, invalid("The record cannot be served: " + err.Error() + ".")
	}
	last := flatRecords(before.Records, name)
	records := zoneRecords(flat, last, name)
	s.records = func(label string) []store.ZoneRecord {
		for i := range records {
			records[i].Data = strings.ReplaceAll(records[i].Data, name, label+"."+zone)
		}
		return records
	}
	s.texts, s.summary = strings.Split(strings.ReplaceAll(strings.Join(flat.Records, "\n"), newLabel, "NAME"), "\n"), flatSummary(flat)
	if growth := spf.GrowthOf(last.Records, flat.Records); growth.Large() && len(last.Records) > 0 {
		s.growth = growthText(growth)
		s.summary += " It grows: " + s.growth + "."
	}
	return s, nil
}

// flatSummary says what receivers get.
func flatSummary(flat spf.Flat) string {
	g := spf.GrowthOf(nil, flat.Records)
	text := fmt.Sprintf("Receivers get %s with %s and %s, and make %d of %d lookups.", phrase.Count(int64(len(flat.Records)), "record"),
		phrase.Count(int64(g.After.IPv4), "IPv4 address"), phrase.Count(int64(min(g.After.IPv6, 1<<62)), "IPv6 network")+" of /64", flat.Lookups, spf.MaxLookups)
	if len(g.Terms) > 0 {
		text += " Not flattened: " + strings.Join(g.Terms[:min(len(g.Terms), maxGrowthParts)], " ") + "."
	}
	return text
}

// flatten looks up the names of an SPF record. before is what its name answers now.
func (s *Service) flatten(ctx context.Context, domain, name string, v dmarcd.RecordVersion, before []store.ZoneRecord) (spf.Flat, error) {
	ctx, cancel := context.WithTimeout(ctx, spfTimeout)
	defer cancel()
	o := spf.FlatOptions{Domain: domain, Name: name, Before: flatRecords(before, name), Include: !v.Whole()}
	if o.Include && domain != name {
		// The other terms of the record of the domain count, once it includes the name.
		x := spf.Explain(ctx, s.options.DNS, domain, spf.Limits{})
		for _, step := range x.Root.Terms {
			if step.Term.Kind == spf.Include && step.Target == name {
				o.Lookups, o.Voids = x.Lookups-step.Cost, max(x.Voids.IPv4, x.Voids.IPv6)
				if step.Child != nil {
					o.Voids -= max(step.Child.Voids.IPv4, step.Child.Voids.IPv6)
				}
			}
		}
	}
	return spf.Flatten(ctx, s.options.DNS, v.Content, o)
}

// flatRecords returns the flat record that a name answers, without what is left of the one before it.
func flatRecords(records []store.ZoneRecord, name string) (flat spf.Flat) {
	for sub, more := "", true; more && len(flat.Records) < spf.MaxLookups; {
		i := slices.IndexFunc(records, func(r store.ZoneRecord) bool { return r.Sub == sub })
		if i < 0 {
			break
		}
		at := name
		if sub != "" {
			at = sub + "." + name
		}
		flat.Records, flat.Names = append(flat.Records, records[i].Data), append(flat.Names, at)
		_, next, _ := strings.Cut(records[i].Data, " redirect=")
		sub, more = strings.CutSuffix(next, "."+name)
	}
	return flat
}

// zoneRecords returns the records of a flat record, with the names below that of the one before: resolvers
// may still have its first record.
func zoneRecords(flat, before spf.Flat, name string) []store.ZoneRecord {
	var records []store.ZoneRecord
	add := func(at, text string) {
		records = append(records, store.ZoneRecord{Sub: strings.TrimSuffix(strings.TrimSuffix(at, name), "."), Type: dns.TXT, Data: text})
	}
	for i, text := range flat.Records {
		add(flat.Names[i], text)
	}
	for i, at := range before.Names {
		if !slices.Contains(flat.Names, at) {
			add(at, before.Records[i])
		}
	}
	return records
}

// addSPF adds what the name of a managed SPF record answers.
func (t *Team) addSPF(ctx context.Context, domain string, r *ManagedRecord) error {
	served, err := t.team.ServedSPF(ctx, domain)
	r.Served, r.Note = flatRecords(served.Records, r.Target).Records, served.Problem
	return err
}

// RefreshSPF resolves the managed SPF record of a domain again. If that fails, or its addresses grow much, its
// name keeps what it answers.
func (s *Service) RefreshSPF(ctx context.Context, due store.DueSPF) error {
	team := s.store.Team(due.Team)
	served, err := team.ServedSPF(ctx, due.Name)
	if err != nil {
		return err
	}
	zone, err := s.store.Zone(ctx)
	if err != nil {
		return err
	}
	name := served.Label + "." + zone
	flat, records, problem := s.refresh(dns.ForClient(ctx, int64(due.Team)), due.Name, name, served.RecordVersion, served.Records)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = team.SaveSPF(ctx, due.Name, served.RecordVersion, records, max(flat.TTL, spf.MinFlatTTL), problem)
	if errors.Is(err, dmarcd.ErrConflict) || errors.Is(err, dmarcd.ErrNotFound) {
		return nil // changed meanwhile
	}
	return err
}

// refresh flattens a record again. Without a problem it returns what its name answers from now on, nil for no
// change.
func (s *Service) refresh(ctx context.Context, domain, name string, v dmarcd.RecordVersion, before []store.ZoneRecord) (flat spf.Flat, records []store.ZoneRecord, problem string) {
	flat, err := s.flatten(ctx, domain, name, v, before)
	var failed *spf.FlattenError
	switch {
	case errors.As(err, &failed) && failed.Problem.Kind == spf.Inconclusive:
		return flat, nil, "A lookup failed: " + err.Error() + "."
	case err != nil:
		return flat, nil, "The record can no longer be resolved: " + err.Error() + "."
	}
	last := flatRecords(before, name)
	if growth := spf.GrowthOf(last.Records, flat.Records); growth.Large() {
		return flat, nil, "A change waits for a person: " + growthText(growth) + ". Publish the record again to approve it."
	}
	if slices.Equal(flat.Records, last.Records) {
		return flat, nil, ""
	}
	return flat, zoneRecords(flat, last, name), ""
}

// maxGrowthParts limits the networks and terms in a text.
const maxGrowthParts = 5

// growthText says what grows.
func growthText(g spf.Growth) string {
	var parts []string
	grows := func(before, after float64, what string) {
		if after > before {
			parts = append(parts, fmt.Sprintf("from %s to %s %s", phrase.Number(int64(before)), phrase.Number(int64(after)), what))
		}
	}
	grows(g.Before.IPv4, g.After.IPv4, "IPv4 addresses")
	grows(min(g.Before.IPv6, 1<<62), min(g.After.IPv6, 1<<62), "IPv6 networks of /64")
	for _, network := range g.Wide[:min(len(g.Wide), maxGrowthParts)] {
		parts = append(parts, network.String()+" is wide")
	}
	for _, term := range g.Terms[:min(len(g.Terms), maxGrowthParts)] {
		parts = append(parts, term+" is new")
	}
	return strings.Join(parts, ", ")
}

// retiredBatch is the number of retired names that are read at once.
const retiredBatch = 100

// RefreshRetiredSPF resolves the SPF records of names that are no longer in use, as RefreshSPF does. No user can
// approve their growth.
func (s *Service) RefreshRetiredSPF(ctx context.Context) (more bool, err error) {
	zone, err := s.store.Zone(ctx)
	if err != nil || zone == "" {
		return false, err
	}
	for after := ""; ; {
		names, err := s.store.RetiredNames(ctx, dmarcd.RecordSPF, after, retiredBatch)
		if err != nil || len(names) == 0 {
			return false, err
		}
		for _, n := range names {
			after = n.Label
			name := n.Label + "." + zone
			_, records, _ := s.refresh(ctx, name, name, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: n.Source}, n.Records)
			if records == nil {
				continue
			}
			if err := s.store.ServeRetired(ctx, n.Label, records); err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
				return false, err
			}
		}
	}
}
