package wire

import "github.com/dmarcd/dmarcd"

// ManagedRecord is a managed record in its published version.
type ManagedRecord struct {
	RecordVersion

	Name   string `json:"name"`   // of the record in the domain
	Target string `json:"target"` // of its CNAME record
	State  string `json:"state"`  // managed, not_yet, elsewhere or unknown
}

// NewManagedRecord returns the shape of a managed record.
func NewManagedRecord(v dmarcd.RecordVersion, name, target string, state dmarcd.RecordState) ManagedRecord {
	return ManagedRecord{RecordVersion: NewRecordVersion(v), Name: name, Target: target, State: string(state)}
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
}

// NewRecordVersion returns the shape of a version.
func NewRecordVersion(v dmarcd.RecordVersion) RecordVersion {
	return RecordVersion{
		Kind: string(v.Kind), Version: v.Version, Record: v.Content,
		PublishedAt: Time(v.CreatedAt), Author: v.Author, Reason: optionalText(v.Reason),
	}
}
