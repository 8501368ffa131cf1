package dmarcd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RecordKind is a kind of managed record: one that a domain has by CNAME records, or by a term of its
// SPF record, and that dmarcd answers for.
type RecordKind string

// The kinds.
const (
	RecordDMARC  RecordKind = "dmarc"
	RecordSPF    RecordKind = "spf"
	RecordMTASTS RecordKind = "mta_sts"
	RecordTLSRPT RecordKind = "tls_rpt"
	RecordBIMI   RecordKind = "bimi"
)

// RecordKinds returns all kinds, in the order of lists.
func RecordKinds() []RecordKind {
	return []RecordKind{RecordDMARC, RecordSPF, RecordMTASTS, RecordTLSRPT, RecordBIMI}
}

// ParseRecordKind returns a kind, or an *InvalidError. The command line may have a dash in it.
func ParseRecordKind(text string) (RecordKind, error) {
	for _, kind := range RecordKinds() {
		if strings.ReplaceAll(text, "-", "_") == string(kind) {
			return kind, nil
		}
	}
	return "", &InvalidError{Field: "kind", Message: "The kind of a record is dmarc, spf, mta_sts, tls_rpt or bimi."}
}

// recordPrefixes are the names of the records below their domains.
var recordPrefixes = map[RecordKind]string{RecordDMARC: "_dmarc.", RecordMTASTS: "_mta-sts.", RecordTLSRPT: "_smtp._tls.", RecordBIMI: "default._bimi."}

// Owner returns the name that has the record of a domain.
func (k RecordKind) Owner(domain string) string { return recordPrefixes[k] + domain }

// Aliases returns the names of a domain that need a CNAME record, all with the same target. SPF has
// none: the SPF record of the domain has redirect= or include: instead.
func (k RecordKind) Aliases(domain string) []string {
	switch k {
	case RecordSPF:
		return nil
	case RecordMTASTS:
		return []string{k.Owner(domain), "mta-sts." + domain}
	case RecordDMARC, RecordTLSRPT, RecordBIMI:
	}
	return []string{k.Owner(domain)}
}

// RecordVersion is a version of a managed record. The last one is published.
type RecordVersion struct {
	Kind    RecordKind
	Version int64 // from 1
	// Label is random, and the same for all versions of a record: with the zone, it is the name that
	// answers with the content.
	Label string
	// Content is the TXT record of DMARC, TLS reporting and BIMI. Of MTA-STS it is the policy
	// (RFC 8461 §3.2) with LF between its lines, of SPF the record as its author wrote it: with all or
	// redirect= it is for redirect= in the domain's own record, without it for include:.
	Content string
	// Attempt is the id of its publication at the target of the domain; 0 in the zone.
	Attempt int64
	// Author is who published it, Reason why, "" for none given, and Approver who approved it, "" where
	// the team does not require that.
	Author, Reason, Approver string
	// Difference is that from the version before: a line for each term, with "- " for one that was
	// removed and "+ " for one that was added.
	Difference string
	// Effect says what it would have done with the mail of the last days, "" where that is not known.
	Effect    string
	CreatedAt time.Time
}

// Difference returns the difference between two records or policies, as in RecordVersion.
func (k RecordKind) Difference(before, after string) string {
	split := func(text string) []string {
		switch k {
		case RecordSPF:
			return strings.Fields(text)
		case RecordMTASTS:
			return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
		case RecordDMARC, RecordTLSRPT, RecordBIMI:
		}
		var tags []string
		for tag := range strings.SplitSeq(text, ";") {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
		return tags
	}
	var lines []string
	added := split(after)
	for _, term := range split(before) {
		if i := slices.Index(added, term); i >= 0 {
			added = slices.Delete(added, i, i+1)
		} else {
			lines = append(lines, "- "+term)
		}
	}
	for _, term := range added {
		lines = append(lines, "+ "+term)
	}
	return strings.Join(lines, "\n")
}

// RecordProposal is a version that is published once another user approves it.
type RecordProposal struct {
	RecordVersion

	// User is who proposed it, or created the token that did; 0 for the command line.
	User UserID
}

// Hash names exactly this base and text.
func (p RecordProposal) Hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", p.Kind, p.Version, p.Content))
	return hex.EncodeToString(sum[:])
}

// Setup returns the records that a domain publishes once, for a name in the zone. Nothing else may be at
// the name of a CNAME record. An include: is a term beside others in the domain's own SPF record.
func (v RecordVersion) Setup(domain, target string) []DNSRecord {
	if target == "" {
		return nil // it is published at the DNS server of the domain
	}
	if v.Kind == RecordSPF {
		text := "v=spf1 " + v.Term(target)
		if !v.Whole() {
			text += " ~all"
		}
		return []DNSRecord{{Name: domain, Type: "TXT", Data: text}}
	}
	var records []DNSRecord
	for _, name := range v.Kind.Aliases(domain) {
		records = append(records, DNSRecord{Name: name, Type: "CNAME", Data: target})
	}
	return records
}

// Term returns the term with which the SPF record of a domain leads to a name in the zone.
func (v RecordVersion) Term(target string) string {
	if v.Whole() {
		return "redirect=" + target
	}
	return "include:" + target
}

// Whole reports whether an SPF record is the whole one of its domain, for redirect=, because it says
// what to do with all mail.
func (v RecordVersion) Whole() bool {
	return slices.ContainsFunc(strings.Fields(strings.ToLower(v.Content)), func(term string) bool {
		return strings.HasPrefix(term, "redirect=") || strings.TrimLeft(term, "+-~?") == "all"
	})
}

// Ending says what happens to the name of a record in the zone that is no longer managed, and what to do.
func (k RecordKind) Ending() string {
	switch k {
	case RecordSPF:
		return "The name stays current for 90 days, and answers v=spf1 ?all after that. Within that time, replace the term in the SPF record of the domain."
	case RecordMTASTS:
		return "The policy becomes mode: none at once, so that senders forget it. The names answer for 90 days, and never again after that. Remove both CNAME records then, or publish your own policy before."
	case RecordDMARC, RecordTLSRPT, RecordBIMI:
	}
	return "The name in the zone answers unchanged for 90 days, and never again after that. Within that time, replace the CNAME record with a TXT record of your own."
}

// RecordState is what the DNS has at the name of a managed record.
type RecordState string

// The states.
const (
	RecordManaged   RecordState = "managed"   // a CNAME record leads to the name in the zone
	RecordNotYet    RecordState = "not_yet"   // there is no record, or not all CNAME records
	RecordElsewhere RecordState = "elsewhere" // there is another record
	RecordUnknown   RecordState = "unknown"   // the lookup failed
	RecordProposed  RecordState = "proposed"  // it is not published: another user has to approve it
)

// The limits of a version, in bytes. A longer record does not fit into an answer over UDP.
const (
	MaxRecordContent = 1000
	MaxRecordReason  = 500
)
