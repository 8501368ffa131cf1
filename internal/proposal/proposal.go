// Package proposal tries records before they are shown as advice. SPF proposes an SPF record
// (RFC 7208), evaluated with the DNS answers of the last check for the mail of a period; the
// functions named Check parse proposed records of the other protocols.
//
// It queries nothing. Which mail is legitimate, and how the effect of a DMARC policy is simulated,
// is left to package insight.
package proposal

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/spf"
)

// Mail is the mail of a period from one address.
type Mail struct {
	Addr     netip.Addr
	Messages int64
	// Domain is the envelope domain that SPF was checked for; "" is the domain of the check.
	Domain string
	// Passes is true if aligned SPF passes.
	Passes bool
	// Service is the name of the known service that sends it; "" for own servers. Only
	// addresses of own servers are added to a record: those of services change.
	Service string
	// Host is the confirmed host name, or "".
	Host string
}

// Input is the input of SPF.
type Input struct {
	// Facts are from the last check; History are those of earlier checks, newest first.
	Facts   *facts.Facts
	History []*facts.Facts
	// Mail is the failing mail of legitimate senders, and all mail that passes. An address may
	// have both. Mail that the record cannot affect is ignored.
	Mail []Mail
}

// Action is the kind of a change.
type Action string

// The actions.
const (
	Restore Action = "restore"
	Add     Action = "add"
	Remove  Action = "remove"
	// Merge replaces several records by one.
	Merge Action = "merge"
)

// Change is one difference between the published record and the proposed one.
type Change struct {
	Action Action
	// Term is "" if the change is about the whole record.
	Term   string
	Reason string
}

// Fix is a proposed SPF record with its effect. No mail of the input that passes with the
// published record fails with the proposed one.
type Fix struct {
	// Record is the text of the TXT record, "" if none can be shown to help.
	Record  string
	Changes []Change
	// LookupsBefore and LookupsAfter are the lookups of the published and of this record.
	LookupsBefore, LookupsAfter int
	// Fixed is the number of messages that fail with the published record and pass with
	// this one.
	Fixed int64
	// Sentence describes the changes and their effect.
	Sentence string
	// Missing explains why there is no record, or why some mail still fails; "" if there is
	// nothing to explain.
	Missing string
}

// The limits of a proposed record.
const (
	// maxLength is the recommended length of a record (RFC 7208 §3.4).
	maxLength = 450
	// maxAdded limits the added networks, maxHistory the considered checks.
	maxAdded   = 10
	maxHistory = 20
)

// SPF proposes an SPF record for the domain of the check. ok is false if none can be shown to
// help. It evaluates records with the stored answers alone; a term whose answers are not stored
// never counts as evidence.
//
// The work is proportional to the number of addresses and of terms, about a tenth of a second for
// a thousand. The end of ctx ends it without a record.
func SPF(ctx context.Context, in Input) (fix Fix, ok bool) {
	t, missing := newTrial(ctx, in)
	if missing != "" {
		return Fix{Missing: missing}, false
	}
	fix = Fix{LookupsBefore: in.Facts.SPF.Lookups}
	before := t.explain(t.published)
	d := t.extended(t.repaired(), in.History)
	reason := t.unsound(d, before)
	for _, shorten := range []func(draft) draft{t.matching, t.used} {
		if reason != "" {
			d = shorten(d)
			reason = t.unsound(d, before)
		}
	}
	var fixed int64
	if reason == "" {
		fixed, reason = t.effect(d)
	}
	sound := before.Status == spf.StatusOK || len(t.published) == 0
	ok = reason == "" && len(d.changes) > 0 && (fixed > 0 || !sound)
	if reason == "" {
		reason = t.remaining(d)
	}
	if ctx.Err() != nil {
		ok, reason = false, "The mail of the domain takes too long to evaluate."
	}
	fix.Missing = reason
	if !ok {
		return fix, false
	}
	fix.Fixed = fixed
	fix.Record, fix.Changes = d.String(), d.changes
	fix.LookupsAfter = t.explain([]string{fix.Record}).Lookups
	fix.Sentence = sentence(fix, len(t.published))
	return fix, true
}

// newTrial reads the input. missing is why nothing can be tried, or "".
func newTrial(ctx context.Context, in Input) (t *trial, missing string) {
	const again = ": check its DNS again."
	if in.Facts == nil {
		return nil, "The DNS of the domain has not been checked yet."
	}
	f := in.Facts.SPF
	t = &trial{ctx: ctx, answers: newAnswers(in.Facts)}
	switch spf.Status(f.Status) {
	case spf.StatusNone:
		t.base = "v=spf1 ~all"
	case spf.StatusMultiple:
		if len(f.Records) < 2 { // an old check
			return nil, "The last check did not store the SPF records" + again
		}
		t.published, t.base = f.Records, spf.Merge(f.Records)
	case spf.StatusOK, spf.StatusPermError:
		t.published, t.base = []string{f.Record}, f.Record
	default:
		return nil, "The last check could not look up the SPF records" + again
	}
	if strings.Contains(t.base, "…") {
		return nil, "The SPF record is too long to be stored."
	}
	record, _ := spf.Parse(t.base)
	for _, term := range record.Terms {
		if term.Kind == spf.All && term.Qualifier == spf.Pass {
			return nil, "The SPF record contains " + term.Text + ", which lets every server pass."
		}
	}
	t.add(in.Mail)
	return t, ""
}

// source is the mail of one address that the record can affect.
type source struct {
	addr          netip.Addr
	fails, passes int64 // messages
	service, host string
	// today is the result with the published record.
	today outcome
}

// add collects the mail by address. A subdomain may refer to the record of the domain, so what
// passes there may depend on it; what fails there is not expected to be fixed by it.
func (t *trial) add(mail []Mail) {
	at := make(map[netip.Addr]int)
	for _, m := range mail {
		domain := dns.Name(m.Domain)
		own := domain == "" || domain == t.domain
		if m.Messages <= 0 || !m.Addr.IsValid() || !own && (!m.Passes || !dmarcd.Covers(t.domain, domain)) {
			continue
		}
		addr := m.Addr.Unmap().WithZone("")
		i, known := at[addr]
		if !known {
			i = len(t.sources)
			at[addr] = i
			t.sources = append(t.sources, source{addr: addr, today: t.check(t.published, addr)})
		}
		s := &t.sources[i]
		if m.Passes {
			s.passes += m.Messages
			continue
		}
		s.fails += m.Messages
		s.service, s.host = m.Service, m.Host
	}
}

// numerals are the numbers that are written as words.
var numerals = [...]string{2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}

func numeral(n int) string {
	if n > 1 && n < len(numerals) {
		return numerals[n]
	}
	return strconv.Itoa(n)
}

// shownTerms limits the terms that a sentence names one by one.
const shownTerms = 3

// sentence describes a proposed record and its effect.
func sentence(f Fix, published int) string {
	var clauses []string
	if published > 1 {
		clauses = append(clauses, fmt.Sprintf("merge the %s SPF records into one", numeral(published)))
	}
	for _, action := range []Action{Restore, Add} {
		var terms []string
		for _, c := range f.Changes {
			if c.Action == action {
				terms = append(terms, c.Term)
			}
		}
		switch {
		case len(terms) > shownTerms:
			clauses = append(clauses, fmt.Sprintf("%s %s terms for your servers", action, numeral(len(terms))))
		case len(terms) > 0:
			clauses = append(clauses, string(action)+" "+listed(terms))
		}
	}
	text := listed(append(clauses, removals(f.Changes)...))
	var effects []string
	if f.LookupsAfter != f.LookupsBefore && published == 1 {
		effects = append(effects, fmt.Sprintf("%d → %d lookups", f.LookupsBefore, f.LookupsAfter))
	}
	switch {
	case f.Fixed == 1:
		effects = append(effects, "1 failing message passes, none breaks")
	case f.Fixed > 0:
		effects = append(effects, failing(f.Fixed)+" pass, none breaks")
	default:
		effects = append(effects, "no message breaks")
	}
	return strings.ToUpper(text[:1]) + text[1:] + ": " + strings.Join(effects, "; ")
}

// removals returns a clause for each reason to remove terms.
func removals(changes []Change) []string {
	terms := make(map[string][]string)
	var reasons []string
	for _, c := range changes {
		if c.Action != Remove {
			continue
		}
		if terms[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		terms[c.Reason] = append(terms[c.Reason], c.Term)
	}
	var clauses []string
	for _, reason := range reasons {
		names := terms[reason]
		switch {
		case len(names) == 1:
			clauses = append(clauses, fmt.Sprintf("remove %s, which %s", names[0], reason))
		case reason == whyUnused:
			clauses = append(clauses, fmt.Sprintf("remove %s includes that never pass SPF for your domain", numeral(len(names))))
		case reason == whyDuplicate:
			clauses = append(clauses, fmt.Sprintf("remove %s duplicate terms", numeral(len(names))))
		case len(names) > shownTerms:
			clauses = append(clauses, fmt.Sprintf("remove %s terms, each of which %s", numeral(len(names)), reason))
		default:
			clauses = append(clauses, fmt.Sprintf("remove %s, each of which %s", listed(names), reason))
		}
	}
	return clauses
}

// listed joins texts as "a, b and c".
func listed(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
