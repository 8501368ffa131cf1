package dmarcd

import (
	"strings"
	"time"
)

// RecordKind is a kind of managed record: one that a domain has by a CNAME record, and that dmarcd
// answers for.
type RecordKind string

// The kinds.
const (
	RecordDMARC  RecordKind = "dmarc"
	RecordTLSRPT RecordKind = "tls_rpt"
)

// RecordKinds returns all kinds, in the order of lists.
func RecordKinds() []RecordKind { return []RecordKind{RecordDMARC, RecordTLSRPT} }

// ParseRecordKind returns a kind, or an *InvalidError. The command line may have a dash in it.
func ParseRecordKind(text string) (RecordKind, error) {
	for _, kind := range RecordKinds() {
		if strings.ReplaceAll(text, "-", "_") == string(kind) {
			return kind, nil
		}
	}
	return "", &InvalidError{Field: "kind", Message: "The kind of a record is dmarc or tls_rpt."}
}

// Owner returns the name that has the record of a domain.
func (k RecordKind) Owner(domain string) string {
	if k == RecordTLSRPT {
		return "_smtp._tls." + domain
	}
	return "_dmarc." + domain
}

// RecordVersion is a version of a managed record. The last one is published.
type RecordVersion struct {
	Kind    RecordKind
	Version int64 // from 1
	// Label is random, and the same for all versions of a record: with the zone, it is the name that
	// answers with the content.
	Label   string
	Content string // of the TXT record
	// Author is who published it, Reason why, "" for none given.
	Author, Reason string
	CreatedAt      time.Time
}

// RecordState is what the DNS has at the name of a managed record.
type RecordState string

// The states.
const (
	RecordManaged   RecordState = "managed"   // a CNAME record leads to the name in the zone
	RecordNotYet    RecordState = "not_yet"   // there is no record
	RecordElsewhere RecordState = "elsewhere" // there is another record
	RecordUnknown   RecordState = "unknown"   // the lookup failed
)

// The limits of a version, in bytes. A longer record does not fit into an answer over UDP.
const (
	MaxRecordContent = 1000
	MaxRecordReason  = 500
)
