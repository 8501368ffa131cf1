package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/spf"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// ManagedRecord is a managed record of a domain in its published version.
type ManagedRecord struct {
	dmarcd.RecordVersion

	// Owner is the name in the domain, and Target the name in the zone that its CNAME record leads to, ""
	// for a record that is published at the server of the domain.
	Owner, Target string
	State         dmarcd.RecordState
	// Served is what the name of an SPF record answers: the first text, and those that it continues with.
	Served []string
	// Note says why that is not what it would be now, or what keeps an MTA-STS policy from being served.
	// Proposal is the policy to publish next. Both may be "".
	Note, Proposal string
}

// stateTimeout limits the lookups of the states of a domain's records.
const stateTimeout = 2 * time.Second

// ManagedRecords returns the managed records of a domain, with what the DNS has at their names now.
func (t *Team) ManagedRecords(ctx context.Context, name string) ([]ManagedRecord, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return nil, err
	}
	versions, err := t.RecordVersions(ctx, domain.Name)
	if err != nil {
		return nil, err
	}
	zone, err := t.service.store.Zone(ctx)
	if err != nil {
		return nil, err
	}
	lookup, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	var records []ManagedRecord
	for i, v := range versions {
		if i > 0 && versions[i-1].Kind == v.Kind {
			continue // an older version
		}
		r := managedRecord(v, domain.Name, zone)
		r.State = t.recordState(lookup, domain.Name, r)
		if err := t.addServed(ctx, domain.Name, &r); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// addServed adds what the name of a record answers, if that is not its content.
func (t *Team) addServed(ctx context.Context, domain string, r *ManagedRecord) error {
	if add := recordRules[r.Kind].add; add != nil && r.Target != "" {
		return add(t, ctx, domain, r)
	}
	return nil
}

func managedRecord(v dmarcd.RecordVersion, domain, zone string) ManagedRecord {
	r := ManagedRecord{RecordVersion: v, Owner: v.Kind.Owner(domain)}
	if v.Label != "" {
		r.Target = v.Label + "." + zone
	}
	return r
}

// recordState looks up what is published for a record: its domain has all of its CNAME records, or the
// term in its SPF record. The first difference decides.
func (t *Team) recordState(ctx context.Context, domain string, r ManagedRecord) dmarcd.RecordState {
	switch {
	case r.Target == "":
		return t.elsewhereState(ctx, r)
	case r.Kind == dmarcd.RecordSPF:
		return t.termState(ctx, r)
	}
	for _, name := range r.Kind.Aliases(domain) {
		if state := t.aliasState(ctx, name, r.Target); state != dmarcd.RecordManaged {
			return state
		}
	}
	return dmarcd.RecordManaged
}

// termState looks up whether the SPF record of a domain has the term for a managed one.
func (t *Team) termState(ctx context.Context, r ManagedRecord) dmarcd.RecordState {
	answer := t.service.options.DNS.Resolve(ctx, dns.Question{Name: r.Owner, Type: dns.TXT})
	if answer.Outcome == dns.Inconclusive {
		return dmarcd.RecordUnknown
	}
	state := dmarcd.RecordNotYet
	for _, text := range answer.Texts() {
		terms := strings.Fields(strings.ToLower(text))
		if len(terms) == 0 || terms[0] != "v=spf1" {
			continue
		}
		if state != dmarcd.RecordNotYet || !slices.ContainsFunc(terms, func(term string) bool {
			return strings.TrimSuffix(strings.TrimPrefix(term, "+"), ".") == r.Term(r.Target)
		}) {
			return dmarcd.RecordElsewhere
		}
		state = dmarcd.RecordManaged
	}
	return state
}

// aliasState looks up what is at a name that needs a CNAME record. A name has a CNAME record or others,
// never both.
func (t *Team) aliasState(ctx context.Context, name, target string) dmarcd.RecordState {
	alias := t.service.options.DNS.Resolve(ctx, dns.Question{Name: name, Type: dns.CNAME})
	switch alias.Outcome {
	case dns.Inconclusive:
		return dmarcd.RecordUnknown
	case dns.Data:
		if len(alias.Records) == 1 && strings.EqualFold(strings.TrimSuffix(alias.Records[0].Host, "."), target) {
			return dmarcd.RecordManaged
		}
		return dmarcd.RecordElsewhere
	}
	text := t.service.options.DNS.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})
	switch text.Outcome {
	case dns.Inconclusive:
		return dmarcd.RecordUnknown
	case dns.Data:
		return dmarcd.RecordElsewhere
	}
	return dmarcd.RecordNotYet
}

// RecordVersions returns the versions of the managed records of a domain, by kind, the latest first.
func (t *Team) RecordVersions(ctx context.Context, name string) ([]dmarcd.RecordVersion, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return nil, err
	}
	versions, err := t.team.RecordVersions(ctx, domain.Name)
	for i := range versions {
		before := ""
		if i+1 < len(versions) && versions[i+1].Kind == versions[i].Kind {
			before = versions[i+1].Content
		}
		versions[i].Difference = versions[i].Kind.Difference(before, versions[i].Content)
	}
	return versions, err
}

// latest returns the last version of a kind, the zero value for none.
func latest(versions []dmarcd.RecordVersion, kind dmarcd.RecordKind) dmarcd.RecordVersion {
	if i := slices.IndexFunc(versions, func(v dmarcd.RecordVersion) bool { return v.Kind == kind }); i >= 0 {
		return versions[i]
	}
	return dmarcd.RecordVersion{}
}

// mayPublish returns a domain whose records the actor may publish.
func (t *Team) mayPublish(ctx context.Context, name string) (dmarcd.Domain, error) {
	if !t.actor.publisher {
		return dmarcd.Domain{}, dmarcd.ErrForbidden
	}
	return t.named(ctx, dmarcd.RightSee, name)
}

// PublishRecord publishes a version of a managed record of a domain. v has its kind, content and
// reason; base is the version that it replaces, 0 to begin with a record: without content it begins with
// the one that is published now. Another base is dmarcd.ErrConflict, a record that receivers would not
// use as it is a *dmarcd.InvalidError. Where the team requires approval, it is proposed instead.
func (t *Team) PublishRecord(ctx context.Context, name string, base int64, v dmarcd.RecordVersion) (ManagedRecord, error) {
	p, err := t.prepare(ctx, name, base, v)
	if err != nil {
		return ManagedRecord{}, err
	}
	required, err := t.team.ApprovalRequired(ctx)
	if err != nil {
		return ManagedRecord{}, err
	}
	p.Author, p.Effect = t.actor.entry.Actor, t.effect(ctx, p)
	switch {
	case !required && t.actor.token && p.growth != "" && p.Kind.Difference(p.before.Content, p.Content) == "":
		// A program that publishes the same text again and again must not decide what waits for a person.
		return ManagedRecord{}, &dmarcd.InvalidError{Field: "record", Message: "The record grows without a change of its text: " + p.growth + ". A user has to publish it."}
	case !required:
		return t.publish(ctx, p, "record.publish")
	}
	proposal := dmarcd.RecordProposal{RecordVersion: p.RecordVersion, User: t.actor.entry.User}
	proposal, err = t.team.ProposeRecord(ctx, p.domain.Name, base, proposal, t.actor.grant.Token, t.actor.to("record.propose", p.domain.Name, string(v.Kind)))
	if err != nil {
		return ManagedRecord{}, err
	}
	proposal.Difference = v.Kind.Difference(p.before.Content, proposal.Content)
	return ManagedRecord{RecordVersion: proposal.RecordVersion, Owner: v.Kind.Owner(p.domain.Name), State: dmarcd.RecordProposed}, nil
}

// prepared is a version that may be published.
type prepared struct {
	dmarcd.RecordVersion
	serving

	domain dmarcd.Domain
	zone   string
	// before is the version that it replaces, replaced the record that receivers get now, as far as that is known.
	before   dmarcd.RecordVersion
	replaced string
	// elsewhere is true for the DNS server of the domain.
	elsewhere bool
	// warnings say what a check would find.
	warnings []string
}

// serving is what the name of a version answers.
type serving struct {
	// records returns it, with a label; see store.Team.PublishRecord.
	records func(label string) []store.ZoneRecord
	// texts and summary show it to a person. growth says how the addresses grow, if a person should decide about that.
	texts           []string
	summary, growth string
}

// prepare checks a version before it is published or proposed.
func (t *Team) prepare(ctx context.Context, name string, base int64, v dmarcd.RecordVersion) (p prepared, err error) {
	p.RecordVersion = v
	if p.domain, err = t.mayPublish(ctx, name); err != nil {
		return p, err
	}
	versions, err := t.team.RecordVersions(ctx, p.domain.Name)
	if err != nil {
		return p, err
	}
	if p.before = latest(versions, v.Kind); p.before.Version != base {
		return p, dmarcd.ErrConflict
	}
	if p.elsewhere, err = t.elsewhere(ctx, p.domain.Name, v.Kind, p.before); err != nil {
		return p, err
	}
	p.zone, err = t.service.store.Zone(ctx)
	switch {
	case err != nil:
		return p, err
	case p.zone == "" && !p.elsewhere:
		return p, &dmarcd.InvalidError{Message: "This installation serves no zone. An operator has to set DMARCD_ZONE first."}
	case p.domain.Sample:
		return p, &dmarcd.InvalidError{Message: "A sample domain has no records of its own."}
	}
	p.Version, p.replaced = base+1, p.before.Content
	if base == 0 && p.Kind == dmarcd.RecordDMARC && p.domain.RecordDomain == p.domain.Name {
		p.replaced = p.domain.Record
	}
	if p.Content = strings.TrimSpace(p.Content); p.Content == "" && base == 0 {
		if p.Content, err = t.publishedRecord(ctx, p.domain.Name, p.Kind); err != nil {
			return p, err
		}
		p.replaced = p.Content
	}
	if err := checkRecord(p.RecordVersion); err != nil {
		return p, err
	}
	if serve := recordRules[p.Kind].serve; serve != nil && !p.elsewhere {
		p.serving, err = serve(t, ctx, p.domain, p.zone, base, &p.RecordVersion)
	}
	if err != nil {
		return p, err
	}
	p.warnings, err = t.tryVersion(ctx, p)
	return p, err
}

// publish publishes a version that was checked.
func (t *Team) publish(ctx context.Context, p prepared, action string) (ManagedRecord, error) {
	entry, difference := t.actor.to(action, p.domain.Name, string(p.Kind)), p.Kind.Difference(p.before.Content, p.Content)
	if p.elsewhere {
		record, err := t.publishElsewhere(ctx, p, entry)
		record.Difference = difference
		return record, err
	}
	published, err := t.team.PublishRecord(ctx, p.domain.Name, p.before.Version, p.RecordVersion, p.records, entry)
	if err != nil {
		return ManagedRecord{}, err
	}
	published.Difference = difference
	record := managedRecord(published, p.domain.Name, p.zone)
	lookup, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	record.State = t.recordState(lookup, p.domain.Name, record)
	return record, t.addServed(ctx, p.domain.Name, &record)
}

// UndoRecord publishes the version before base again, as a new version. Without one it is
// dmarcd.ErrConflict.
func (t *Team) UndoRecord(ctx context.Context, name string, kind dmarcd.RecordKind, base int64) (ManagedRecord, error) {
	domain, err := t.mayPublish(ctx, name)
	if err != nil {
		return ManagedRecord{}, err
	}
	versions, err := t.team.RecordVersions(ctx, domain.Name)
	if err != nil {
		return ManagedRecord{}, err
	}
	for _, v := range versions {
		if v.Kind == kind && v.Version == base-1 {
			return t.PublishRecord(ctx, name, base, dmarcd.RecordVersion{Kind: kind, Content: v.Content, Reason: fmt.Sprintf("undo of version %d", base)})
		}
	}
	return ManagedRecord{}, fmt.Errorf("%w: there is no version before %d", dmarcd.ErrConflict, base)
}

// publishedRecord looks up the record that a domain has now.
func (t *Team) publishedRecord(ctx context.Context, domain string, kind dmarcd.RecordKind) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	if first := recordRules[kind].first; first != nil {
		return first(t, ctx, domain)
	}
	owner := kind.Owner(domain)
	answer := t.service.options.DNS.Resolve(ctx, dns.Question{Name: owner, Type: dns.TXT})
	if answer.Outcome == dns.Inconclusive {
		return "", &dmarcd.InvalidError{Field: "record", Message: "The lookup of " + owner + " failed: " + answer.Reason + ". Give the record, or try again."}
	}
	var found []string
	for _, text := range answer.Texts() {
		if checkRecord(dmarcd.RecordVersion{Kind: kind, Content: text}) == nil {
			found = append(found, text)
		}
	}
	if len(found) != 1 {
		return "", &dmarcd.InvalidError{Field: "record", Message: owner + " does not have one valid record to begin with. Give the record."}
	}
	return found[0], nil
}

// rules are what a kind of record has of its own. Without a function its step is left out.
type rules struct {
	// part is what tries the record before it is published, draft what is tried instead of its content.
	part  Part
	draft func(content string) Draft
	// check returns why receivers would not use a record as it is, "" for none.
	check func(text string) string
	// first returns the record that a domain begins with, instead of the one at its name.
	first func(t *Team, ctx context.Context, domain string) (string, error)
	// serve returns what the name of a version answers, and writes the version in its usual form. One that cannot be
	// served is a *dmarcd.InvalidError. Others have a TXT record with the content.
	serve func(t *Team, ctx context.Context, domain dmarcd.Domain, zone string, base int64, v *dmarcd.RecordVersion) (serving, error)
	// add adds what the name of a published record answers, and what is to do about it.
	add func(t *Team, ctx context.Context, domain string, r *ManagedRecord) error
}

var recordRules = map[dmarcd.RecordKind]rules{
	dmarcd.RecordDMARC:  {part: PartDMARC, check: checkDMARC},
	dmarcd.RecordTLSRPT: {part: PartTLSRPT, check: checkTLSRPT},
	dmarcd.RecordBIMI:   {part: PartBIMI, check: checkBIMI},
	dmarcd.RecordSPF:    {check: checkSPF, serve: (*Team).serveSPF, add: (*Team).addSPF},
	dmarcd.RecordMTASTS: {part: PartMTASTS, draft: policyDraft, first: (*Team).firstPolicy, serve: (*Team).servePolicy, add: (*Team).addPolicy},
}

// checkRecord returns a *dmarcd.InvalidError for a version that must not be published.
func checkRecord(v dmarcd.RecordVersion) error {
	invalid := func(message string) error { return &dmarcd.InvalidError{Field: "record", Message: message} }
	switch {
	case len(v.Content) > dmarcd.MaxRecordContent:
		return invalid("The record is too long. A record has at most 1,000 bytes.")
	case strings.ContainsFunc(v.Content, func(r rune) bool {
		return (r < ' ' || r > '~') && (v.Kind != dmarcd.RecordMTASTS || r != '\r' && r != '\n')
	}):
		return invalid("A record has printable ASCII characters only.")
	case len(v.Reason) > dmarcd.MaxRecordReason || !utf8.ValidString(v.Reason) || strings.ContainsFunc(v.Reason, unicode.IsControl):
		return &dmarcd.InvalidError{Field: "reason", Message: "A reason has one line of at most 500 bytes."}
	}
	if check := recordRules[v.Kind].check; check != nil {
		if problem := check(v.Content); problem != "" {
			return invalid(problem)
		}
	}
	return nil
}

const unusable = "Receivers would not use this record as it is: "

func checkTLSRPT(text string) string {
	record, ok := tlsrpt.ParseRecord(text)
	switch {
	case !ok:
		return "A TLS report record begins with v=TLSRPTv1; and a list of destinations: v=TLSRPTv1; rua=mailto:tls@example.com"
	case !record.Valid:
		return "Reporters would ignore this record: " + problemText(string(record.Problems[0].Kind), record.Problems[0].Text)
	}
	return ""
}

func checkBIMI(text string) string {
	record, ok := bimi.Parse(text)
	switch {
	case !ok:
		return "A BIMI record begins with v=BIMI1; and the address of an image: v=BIMI1; l=https://example.com/logo.svg"
	case len(record.Problems) > 0:
		return unusable + problemText(string(record.Problems[0].Kind), record.Problems[0].Text)
	}
	return ""
}

func checkSPF(text string) string {
	if _, err := spf.Parse(text); err != nil {
		return unusable + err.Error() + "."
	}
	return ""
}

func checkDMARC(text string) string {
	record, ok := dmarc.Parse(text)
	if !ok {
		return "A DMARC record begins with v=DMARC1; and a policy: v=DMARC1; p=none; rua=mailto:dmarc@example.com"
	}
	for _, problem := range record.Problems {
		switch problem.Kind {
		case dmarc.MissingTag, dmarc.InvalidValue, dmarc.DuplicateTag, dmarc.MalformedElement, dmarc.TooManyTags, dmarc.BadURI, dmarc.UnsupportedScheme:
			return unusable + problemText(string(problem.Kind), strings.TrimSpace(problem.Tag+" "+problem.Text))
		case dmarc.UnknownTag, dmarc.HistoricTag, dmarc.TagCase, dmarc.EmptyElement, dmarc.SizeSuffix, dmarc.DuplicateURI, dmarc.TooManyURIs, dmarc.UnusedFailureOptions, dmarc.FailureReportsOnPSD:
		}
	}
	if record.State != dmarc.OK {
		return strings.TrimSuffix(unusable, ": ") + "."
	}
	return ""
}

// problemText describes a problem of a record.
func problemText(kind, text string) string {
	kind = strings.ReplaceAll(kind, "-", " ")
	if text == "" {
		return kind + "."
	}
	return kind + " (" + text + ")."
}

// StopRecord stops a managed record of a domain. Its name answers for 90 more days, in which another
// record has to replace the CNAME record. That needs no approval: no other record is served, except that
// an MTA-STS policy ends, which keeps no mail from being delivered.
func (t *Team) StopRecord(ctx context.Context, name string, kind dmarcd.RecordKind) error {
	domain, err := t.mayPublish(ctx, name)
	if err != nil {
		return err
	}
	return t.team.StopRecord(ctx, domain.Name, kind, t.actor.to("record.stop", domain.Name, string(kind)))
}
