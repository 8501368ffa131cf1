package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// RecordReview is what publishing a version would change.
type RecordReview struct {
	dmarcd.RecordVersion // Version is the next one

	// Served is what the name of an SPF record would answer, "" otherwise.
	Served []string
	// Warnings say what is lost, and what a check would find.
	Warnings []string
}

// ReviewRecord returns what PublishRecord would change, with the same errors. It changes nothing.
func (t *Team) ReviewRecord(ctx context.Context, name string, base int64, v dmarcd.RecordVersion) (RecordReview, error) {
	p, err := t.prepare(ctx, name, base, v)
	if err != nil {
		return RecordReview{}, err
	}
	p.Effect, p.Difference = t.effect(ctx, p), p.Kind.Difference(p.replaced, p.Content)
	review := RecordReview{RecordVersion: p.RecordVersion, Served: p.texts}
	if p.Kind == dmarcd.RecordDMARC {
		published, _ := dmarc.Parse(p.replaced)
		record, _ := dmarc.Parse(p.Content)
		review.Warnings = RecordWarnings(published, record)
	}
	review.Warnings = append(review.Warnings, p.warnings...)
	return review, nil
}

// tryVersion returns what the builder warns about. What it refuses is a *dmarcd.InvalidError, unless the domain has
// the same record already.
func (t *Team) tryVersion(ctx context.Context, p prepared) (warnings []string, err error) {
	of := recordRules[p.Kind]
	if p.Kind == dmarcd.RecordSPF && p.elsewhere {
		of.part = PartSPF // it is published as it is written
	}
	if of.part == "" {
		return nil, nil
	}
	draft := Draft{Part: of.part, Record: p.Content}
	if of.draft != nil {
		draft = of.draft(p.Content)
	}
	tried, err := t.TryRecord(ctx, p.domain.Name, draft)
	if err != nil {
		return nil, err
	}
	for _, f := range tried.Findings {
		switch {
		case f.Level == dmarcd.LevelError && p.Kind.Difference(p.replaced, p.Content) != "":
			return nil, &dmarcd.InvalidError{Field: "record", Message: strings.TrimSpace(f.What + " " + f.Fix + " " + f.Record.String())}
		case f.Level == dmarcd.LevelError, f.Level == dmarcd.LevelWarning:
			warnings = append(warnings, f.What)
		}
	}
	return warnings, nil
}

// RecordWarnings says what a DMARC record takes away from the one that is published, and what has no
// effect.
func RecordWarnings(published, record dmarc.Record) []string {
	var list []string
	for _, uri := range published.RUA {
		if !slices.ContainsFunc(record.RUA, func(u dmarc.URI) bool { return u.Address == uri.Address }) {
			list = append(list, "Reports are no longer sent to "+strings.TrimPrefix(uri.String(), "mailto:")+".")
		}
	}
	for _, of := range []struct {
		subject dmarc.Subject
		words   string
	}{{dmarc.Itself, "the domain"}, {dmarc.Subdomain, "subdomains"}, {dmarc.MissingSubdomain, "non-existent subdomains"}} {
		before, _ := published.Policy(of.subject)
		after, _ := record.Policy(of.subject)
		if before, after = published.Applied(before), record.Applied(after); after < before {
			list = append(list, "The policy for "+of.words+" becomes weaker: "+before.String()+" → "+after.String()+".")
		}
	}
	if record.Testing && record.P == dmarc.None {
		list = append(list, "t=y has no effect with p=none.")
	}
	slices.Sort(list)
	return list
}

// effectTimeout limits the simulation of a version.
const effectTimeout = 5 * time.Second

// effect says what a DMARC record would have done with the mail of the last days, and what an SPF record serves.
// It is "" for others, and where the simulation fails: that must not keep a record from being published.
func (t *Team) effect(ctx context.Context, p prepared) string {
	record, ok := dmarc.Parse(p.Content)
	if p.Kind != dmarcd.RecordDMARC || !ok || t.service.options.Insight == nil {
		return p.summary
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	s, err := t.simulate(ctx, p.domain.Name, dmarcd.Days{}, func(p *insight.Policy) { p.Record = record }, false)
	switch {
	case err != nil:
		return ""
	case s.Legitimate+s.Forwarder+s.Unknown+s.Spoofing == 0:
		return fmt.Sprintf("No mail was reported in the last %d days.", adviceDays)
	}
	return fmt.Sprintf("Of the mail of the last %d days, it quarantines or rejects %s of %s legitimate, %s of %s forwarded, %s of %s unknown and %s of %s spoofed messages.", adviceDays,
		phrase.Number(s.LegitimateAffected), phrase.Number(s.Legitimate), phrase.Number(s.ForwarderAffected), phrase.Number(s.Forwarder),
		phrase.Number(s.UnknownAffected), phrase.Number(s.Unknown), phrase.Number(s.SpoofingStopped), phrase.Number(s.Spoofing))
}

// RequireApproval has another user approve what is published for managed records, or not.
func (t *Team) RequireApproval(ctx context.Context, required bool) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RequireApproval(ctx, required, t.actor.to("team.approval", "", requiredWord(required)))
}

// RecordProposals returns what is proposed for a domain, with the difference from what is published.
func (t *Team) RecordProposals(ctx context.Context, name string) ([]dmarcd.RecordProposal, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return nil, err
	}
	proposals, err := t.team.RecordProposals(ctx, domain.Name)
	if err != nil || len(proposals) == 0 {
		return nil, err
	}
	versions, err := t.team.RecordVersions(ctx, domain.Name)
	for i := range proposals {
		p := &proposals[i]
		p.Difference = p.Kind.Difference(latest(versions, p.Kind).Content, p.Content)
	}
	return proposals, err
}

// ApproveRecord publishes what another user proposed for a record. hash is that of the proposal which was
// read: another base or text is dmarcd.ErrConflict. Only a user may approve, and not the one who proposed
// it or created the token that did.
func (t *Team) ApproveRecord(ctx context.Context, name string, kind dmarcd.RecordKind, hash string) (ManagedRecord, error) {
	if t.actor.entry.User == 0 || t.actor.token {
		return ManagedRecord{}, dmarcd.ErrForbidden
	}
	if _, err := t.mayPublish(ctx, name); err != nil {
		return ManagedRecord{}, err
	}
	proposals, err := t.RecordProposals(ctx, name)
	if err != nil {
		return ManagedRecord{}, err
	}
	i := slices.IndexFunc(proposals, func(p dmarcd.RecordProposal) bool { return p.Kind == kind && p.Hash() == hash })
	switch {
	case i < 0:
		return ManagedRecord{}, fmt.Errorf("%w: this is not proposed any more", dmarcd.ErrConflict)
	case proposals[i].User == t.actor.entry.User:
		return ManagedRecord{}, &dmarcd.InvalidError{Message: "You proposed this. Another user has to approve it."}
	}
	v := proposals[i].RecordVersion
	v.Approver = t.actor.entry.Actor
	p, err := t.prepare(ctx, name, v.Version-1, v)
	if err != nil {
		return ManagedRecord{}, err
	}
	if p.growth != "" && !strings.Contains(v.Effect, p.growth) {
		return ManagedRecord{}, &dmarcd.InvalidError{Message: "The record has grown since it was proposed: " + p.growth + ". Propose it again."}
	}
	return t.publish(ctx, p, "record.approve")
}

// WithdrawProposal removes what is proposed for a record. Everyone who may propose may do so.
func (t *Team) WithdrawProposal(ctx context.Context, name string, kind dmarcd.RecordKind) error {
	domain, err := t.mayPublish(ctx, name)
	if err != nil {
		return err
	}
	return t.team.WithdrawProposal(ctx, domain.Name, kind, t.actor.to("record.withdraw", domain.Name, string(kind)))
}
