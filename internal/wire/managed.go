package wire

import (
	"strings"

	"github.com/dmarcd/dmarcd"
)

// ManagedRecord is a managed record in its published version.
type ManagedRecord struct {
	RecordVersion

	Name   string  `json:"name"`   // of the record in the domain
	Target *string `json:"target"` // of its CNAME record; null at the server of the domain
	State  string  `json:"state"`  // managed, not_yet, elsewhere, unknown, or of the command line proposed

	Served []string `json:"served"` // what the name of an SPF record answers
	// Note says why that is not what it would be now, or what keeps an MTA-STS policy from being served;
	// Proposal is the policy to publish next. null for none.
	Note     *string `json:"note"`
	Proposal *string `json:"proposal"`
}

// NewManagedRecord returns the shape of a managed record.
func NewManagedRecord(v dmarcd.RecordVersion, name, target string, state dmarcd.RecordState, served []string, note, proposal string) ManagedRecord {
	if served == nil {
		served = []string{}
	}
	return ManagedRecord{RecordVersion: NewRecordVersion(v), Name: name, Target: optionalText(target), State: string(state), Served: served, Note: optionalText(note), Proposal: optionalText(proposal)}
}

// DomainRecord is a version of a managed record with its domain.
type DomainRecord struct {
	Domain string `json:"domain"`
	RecordVersion
}

// NewDomainRecord returns the shape of a version with its domain.
func NewDomainRecord(domain string, v dmarcd.RecordVersion) DomainRecord {
	return DomainRecord{Domain: domain, RecordVersion: NewRecordVersion(v)}
}

// RecordVersion is a version of a managed record.
type RecordVersion struct {
	Kind        string  `json:"kind"` // dmarc, spf, mta_sts, tls_rpt or bimi
	Version     int64   `json:"version"`
	Record      string  `json:"record"`
	PublishedAt string  `json:"published_at"`
	Author      string  `json:"author"`
	Reason      *string `json:"reason"` // null for none given
	Approver    *string `json:"approver"`
	// Difference is that from the version before: terms that were removed (- ) or added (+ ).
	Difference []string `json:"difference"`
	Effect     *string  `json:"effect"` // null where it is not known
}

// RecordProposal is a version that waits for approval.
type RecordProposal struct {
	Kind       string  `json:"kind"`
	Base       int64   `json:"base"`
	Record     string  `json:"record"`
	ProposedAt string  `json:"proposed_at"`
	Author     string  `json:"author"`
	Reason     *string `json:"reason"`
	// Difference is that from the version that is published.
	Difference []string `json:"difference"`
	Effect     *string  `json:"effect"`
}

// NewRecordProposal returns the shape of a version that waits for approval.
func NewRecordProposal(v dmarcd.RecordVersion) RecordProposal {
	return RecordProposal{
		Kind: string(v.Kind), Base: v.Version - 1, Record: v.Content, ProposedAt: Time(v.CreatedAt), Author: v.Author,
		Reason: optionalText(v.Reason), Difference: terms(v), Effect: optionalText(v.Effect),
	}
}

func terms(v dmarcd.RecordVersion) []string {
	return strings.FieldsFunc(v.Difference, func(r rune) bool { return r == '\n' })
}

// NewRecordVersion returns the shape of a version.
func NewRecordVersion(v dmarcd.RecordVersion) RecordVersion {
	return RecordVersion{
		Kind: string(v.Kind), Version: v.Version, Record: v.Content,
		PublishedAt: Time(v.CreatedAt), Author: v.Author, Reason: optionalText(v.Reason),
		Approver: optionalText(v.Approver), Difference: terms(v), Effect: optionalText(v.Effect),
	}
}
