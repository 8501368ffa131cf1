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

	// Warnings say what is lost, and what a check would find.
	Warnings []string
}

// draftParts are the kinds whose record is tried before it is published.
var draftParts = map[dmarcd.RecordKind]Part{dmarcd.RecordDMARC: PartDMARC, dmarcd.RecordTLSRPT: PartTLSRPT, dmarcd.RecordBIMI: PartBIMI}

// ReviewRecord returns what PublishRecord would change, with the same errors. It changes nothing.
func (t *Team) ReviewRecord(ctx context.Context, name string, base int64, v dmarcd.RecordVersion) (RecordReview, error) {
	p, err := t.prepare(ctx, name, base, v)
	if err != nil {
		return RecordReview{}, err
	}
	versions, err := t.team.RecordVersions(ctx, p.domain.Name)
	if err != nil {
		return RecordReview{}, err
	}
	before := latest(versions, p.Kind)
	if before.Version != base {
		return RecordReview{}, dmarcd.ErrConflict
	}
	if base == 0 && p.Kind == dmarcd.RecordDMARC && p.domain.RecordDomain == p.domain.Name {
		before.Content = p.domain.Record
	}
	p.Version, p.Effect, p.Difference = base+1, t.effect(ctx, p.domain, p.RecordVersion), p.Kind.Difference(before.Content, p.Content)
	review := RecordReview{RecordVersion: p.RecordVersion}
	if p.Kind == dmarcd.RecordDMARC {
		published, _ := dmarc.Parse(before.Content)
		record, _ := dmarc.Parse(p.Content)
		review.Warnings = RecordWarnings(published, record)
	}
	if part := draftParts[p.Kind]; part != "" {
		tried, err := t.TryRecord(ctx, p.domain.Name, Draft{Part: part, Record: p.Content})
		if err != nil {
			return RecordReview{}, err
		}
		for _, f := range tried.Findings {
			if f.Level == dmarcd.LevelError || f.Level == dmarcd.LevelWarning {
				review.Warnings = append(review.Warnings, f.What)
			}
		}
	}
	return review, nil
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

// effect says what a DMARC record would have done with the mail of the last days. It is "" for other
// records, and where the simulation fails: that must not keep a record from being published.
func (t *Team) effect(ctx context.Context, domain dmarcd.Domain, v dmarcd.RecordVersion) string {
	record, ok := dmarc.Parse(v.Content)
	if v.Kind != dmarcd.RecordDMARC || !ok || t.service.options.Insight == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	s, err := t.simulate(ctx, domain.Name, dmarcd.Days{}, func(p *insight.Policy) { p.Record = record }, false)
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
	return t.publish(ctx, v.Version-1, p, "record.approve")
}

// WithdrawProposal removes what is proposed for a record. Everyone who may propose may do so.
func (t *Team) WithdrawProposal(ctx context.Context, name string, kind dmarcd.RecordKind) error {
	domain, err := t.mayPublish(ctx, name)
	if err != nil {
		return err
	}
	return t.team.WithdrawProposal(ctx, domain.Name, kind, t.actor.to("record.withdraw", domain.Name, string(kind)))
}
