package service_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// history is the mail of a domain, with the record that it publishes.
type history struct {
	domain string
	record string
	mail   []aggregate.Record
}

// randomHistory makes mail of known and unknown senders, aligned in every way or not.
func randomHistory(r *rand.Rand, n int) history {
	h := history{domain: fmt.Sprintf("d%d.example", n)}
	word := func(words ...string) string { return words[r.IntN(len(words))] }
	policy := func() string { return word("none", "quarantine", "reject") }
	h.record = "v=DMARC1; p=" + policy()
	for _, tag := range []string{"; sp=" + policy(), "; np=" + policy(), "; t=y", "; adkim=s", "; aspf=s", "; pct=" + word("0", "25", "100")} {
		if r.IntN(3) == 0 {
			h.record += tag
		}
	}
	domains := []string{h.domain, "mail." + h.domain, "news." + h.domain, "letters.example", "list.example", "other.example"}
	for i := range 1 + r.IntN(8) {
		source := fmt.Sprintf("192.0.2.%d", i)
		record := aggregate.Record{
			Source: source, Count: r.Int64N(500), HeaderFrom: word(h.domain, h.domain, "news."+h.domain, "gone."+h.domain),
			Disposition: aggregate.Policy(policy()), DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
		}
		for n := range r.IntN(3) {
			signers := domains
			if n > 0 {
				signers = domains[3:] // at most one signature of the domain
			}
			record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{
				Domain: word(signers...), Selector: "s", Result: aggregate.Result(word("pass", "pass", "fail", "permerror")),
			})
		}
		if r.IntN(4) > 0 {
			record.EnvelopeFrom = word(domains...)
			record.SPFResults = append(record.SPFResults, aggregate.SPFResult{
				Domain: record.EnvelopeFrom, Scope: "mfrom", Result: aggregate.Result(word("pass", "softfail", "permerror")),
			})
		}
		if r.IntN(4) == 0 {
			record.SPFResults = append(record.SPFResults, aggregate.SPFResult{Domain: word(domains...), Scope: "helo", Result: aggregate.ResultPass})
		}
		// The receiver evaluated some of it, or knows what the report does not name.
		if r.IntN(8) == 0 || slices.ContainsFunc(record.DKIMResults, func(d aggregate.DKIMResult) bool {
			return d.Result == aggregate.ResultPass && d.Domain == record.HeaderFrom
		}) {
			record.DKIM = aggregate.ResultPass
		}
		if r.IntN(8) == 0 {
			record.SPF = aggregate.ResultPass
		}
		h.mail = append(h.mail, record)
	}
	return h
}

// naive is a simulation record by record, as the RFCs and docs/senders.md have it.
type naive struct {
	observed, rfc9989, rfc7489 insight.Handled
	messages, affected         map[string]int64
	// of and affectedOf are the messages by class; those of the class service are yours.
	of, affectedOf map[dmarcd.Class]int64
}

// simulate tries out a policy, the words of whose tags are given; "" is not stated.
func (h history) simulate(tags map[string]string) naive {
	n := naive{messages: map[string]int64{}, affected: map[string]int64{}}
	sendersOf := h.senders()
	alive := map[string]bool{}
	for _, r := range h.mail {
		if r.Count > 0 && (r.DKIM == aggregate.ResultPass || r.SPF == aggregate.ResultPass) {
			alive[r.HeaderFrom] = true
		}
	}
	var wouldReject, wouldQuarantine int64 // by RFC 7489, before pct
	for i, r := range h.mail {
		if r.Count == 0 {
			continue
		}
		sender := sendersOf[i]
		n.messages[sender] += r.Count
		count(&n.observed, string(r.Disposition), r.Count)
		policy9989, policy7489 := "none", "none"
		if !h.passes(r, tags) {
			policy9989, policy7489 = tags["p"], tags["p"]
			if r.HeaderFrom != h.domain {
				if tags["sp"] != "" {
					policy9989, policy7489 = tags["sp"], tags["sp"]
				}
				if tags["np"] != "" && !alive[r.HeaderFrom] {
					policy9989 = tags["np"]
				}
			}
			if tags["t"] == "y" {
				policy9989 = map[string]string{"reject": "quarantine", "quarantine": "none", "none": "none"}[policy9989]
			}
		}
		count(&n.rfc9989, policy9989, r.Count)
		if policy9989 != "none" {
			n.affected[sender] += r.Count
		}
		switch policy7489 {
		case "reject":
			wouldReject += r.Count
		case "quarantine":
			wouldQuarantine += r.Count
		default:
			n.rfc7489.Delivered += r.Count
		}
	}
	percent := int64(100)
	if tags["pct"] != "" {
		_, _ = fmt.Sscan(tags["pct"], &percent)
	}
	rejected, quarantined := wouldReject*percent/100, wouldQuarantine*percent/100
	n.rfc7489.Rejected = rejected
	n.rfc7489.Quarantined = wouldReject - rejected + quarantined
	n.rfc7489.Delivered += wouldQuarantine - quarantined
	return n
}

func count(to *insight.Handled, policy string, messages int64) {
	switch policy {
	case "reject":
		to.Rejected += messages
	case "quarantine":
		to.Quarantined += messages
	default:
		to.Delivered += messages
	}
}

// passedDomains returns the domains that a record authenticates as, with or without HELO.
func passedDomains(r aggregate.Record, helo bool) (passed []string) {
	for _, d := range r.DKIMResults {
		if d.Result == aggregate.ResultPass {
			passed = append(passed, d.Domain)
		}
	}
	for _, s := range r.SPFResults {
		if s.Result == aggregate.ResultPass && (helo || s.Scope == "mfrom" || r.EnvelopeFrom == "") {
			passed = append(passed, s.Domain)
		}
	}
	return passed
}

// baseOf recognizes senders of the catalogue by the domains that they authenticate as. All other mail
// is from unknown networks.
func baseOf(r aggregate.Record) string {
	passed := passedDomains(r, true)
	switch {
	case slices.Contains(passed, "list.example"):
		return "list"
	case slices.Contains(passed, "letters.example"):
		return "letters"
	}
	return "-"
}

// inside reports whether a name is in the domain.
func (h history) inside(name string) bool {
	return name == h.domain || strings.HasSuffix(name, "."+h.domain)
}

// passesSPF reports whether a record passes SPF, aligned in relaxed mode.
func (h history) passesSPF(r aggregate.Record) bool {
	return r.SPF == aggregate.ResultPass || slices.ContainsFunc(r.SPFResults, func(s aggregate.SPFResult) bool {
		return s.Result == aggregate.ResultPass && (s.Scope == "mfrom" || r.EnvelopeFrom == "") && h.inside(s.Domain)
	})
}

// keyOf returns the key of the signature of the domain that a record carries, "" for none or one that
// is not named, and whether it passes.
func (h history) keyOf(r aggregate.Record) (key string, passes bool) {
	passes = r.DKIM == aggregate.ResultPass
	for _, d := range r.DKIMResults {
		if h.inside(d.Domain) {
			key, passes = d.Domain, passes || d.Result == aggregate.ResultPass
		}
	}
	return key, passes
}

// elsewhere reports whether the key of a record is used elsewhere. Each address has one record, none is
// linked by listing or name, and all are in the same network, which has all messages of every key.
func (h history) elsewhere(at int) bool {
	key, _ := h.keyOf(h.mail[at])
	var all, linked int64
	for i, r := range h.mail {
		if other, passes := h.keyOf(r); other != key || !passes {
			continue
		}
		all += r.Count
		if i != at && h.passesSPF(r) {
			linked += r.Count
		}
	}
	return linked > 0 && 2*linked >= all
}

// senders returns the keys of the senders of the records.
func (h history) senders() []string {
	list := make([]string, len(h.mail))
	for i, r := range h.mail {
		base := baseOf(r)
		key, passes := h.keyOf(r)
		switch {
		case r.Count == 0 || base == "list":
		case base == "letters":
			passedThere := slices.ContainsFunc(h.mail, func(o aggregate.Record) bool {
				other, passes := h.keyOf(o)
				return o.Count > 0 && passes && key != "" && other == key && baseOf(o) == base
			})
			if !passes && !h.passesSPF(r) && !passedThere {
				base += ":rest"
			}
		case h.passesSPF(r), passes && !h.elsewhere(i):
			base += ":yours"
		case passes, key != "" && h.elsewhere(i):
			base += ":forwarding"
		case slices.Contains(passedDomains(r, false), "other.example"):
			base += ":as:other.example"
		default:
			base += ":others"
		}
		list[i] = base
	}
	return list
}

// classOf returns the class of a sender with some messages, "" if the law leaves it open.
func (h history) classOf(sender string, messages int64) dmarcd.Class {
	switch sender {
	case "-:yours", "letters":
		return dmarcd.ClassYours
	case "-:forwarding", "list":
		return dmarcd.ClassForwarder
	case "-:as:other.example":
		return dmarcd.ClassUnknown
	case "-:others":
		if messages < 10 {
			return dmarcd.ClassUnknown
		}
		return dmarcd.ClassSpoofing
	}
	for i, of := range h.senders() {
		if passed := passedDomains(h.mail[i], false); of == sender && (len(passed) == 0 || slices.ContainsFunc(passed, func(name string) bool { return name != "letters.example" })) {
			return "" // it does not authenticate as the service alone
		}
	}
	return dmarcd.ClassUnknown
}

// passes evaluates a record with other modes of alignment.
func (h history) passes(r aggregate.Record, tags map[string]string) bool {
	var dkim, spf []string
	for _, d := range r.DKIMResults {
		if d.Result == aggregate.ResultPass {
			dkim = append(dkim, d.Domain)
		}
	}
	named := false
	for _, s := range r.SPFResults {
		if s.Result == aggregate.ResultPass {
			named = true
			if s.Scope == "mfrom" || r.EnvelopeFrom == "" {
				spf = append(spf, s.Domain)
			}
		}
	}
	aligned := func(domains []string, mode string) bool {
		return slices.ContainsFunc(domains, func(d string) bool {
			return d == r.HeaderFrom || mode != "s" && (d == h.domain || strings.HasSuffix(d, "."+h.domain))
		})
	}
	byDKIM, bySPF := aligned(dkim, tags["adkim"]), aligned(spf, tags["aspf"])
	if r.DKIM == aggregate.ResultPass && (tags["adkim"] != "s" || len(dkim) == 0) {
		byDKIM = true
	}
	if r.SPF == aggregate.ResultPass && (tags["aspf"] != "s" || !named) {
		bySPF = true
	}
	return byDKIM || bySPF
}

// TestSimulationAgreesWithNaive compares both over random histories and policies.
func TestSimulationAgreesWithNaive(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		histories := 200
		switch {
		case os.Getenv("DMARCD_SOAK") != "":
			histories = 2000
		case testing.Short():
			histories = 30
		}
		r := rand.New(rand.NewPCG(1, 2))
		day := dmarcd.DayOf(time.Now()) - 10 // so that no sender is new
		s := db.Open(t, store.Options{})
		w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue([]senders.Sender{
			{Key: "letters", Name: "Letters", Kind: senders.Service, Category: senders.Marketing, Domains: []string{"letters.example"}},
			{Key: "list", Name: "List", Kind: senders.List, Category: senders.MailingList, Domains: []string{"list.example"}},
		}), nameless{}, nil)})
		acme := storetest.Team(t, s, "acme")
		team := w.Team(acme.ID, service.CommandLine())
		all := make([]history, histories)
		for i := range all {
			all[i] = randomHistory(r, i)
		}
		storeHistories(t, s.Team(acme.ID), all, day)
		for _, h := range all {
			for range 3 {
				compareSimulation(t, team, h, r)
			}
		}
	})
}

// storeHistories adds the domains with their records and their mail.
func storeHistories(t *testing.T, team *store.Team, all []history, day dmarcd.Day) {
	t.Helper()
	for part := range slices.Chunk(all, 50) {
		names := make([]string, len(part))
		deliveries := make([]*dmarcd.Delivery, len(part))
		for i, h := range part {
			names[i] = h.domain
			deliveries[i] = storetest.Delivery(storetest.Aggregate(h.domain, h.domain, day, h.mail...))
		}
		musttest.Get(team.AddDomains(t.Context(), names, time.Now().Add(time.Hour)))(t)
		musttest.Get(team.Receive(t.Context(), deliveries))(t)
		for _, h := range part {
			check := facts.Check{At: time.Now(), Conclusive: true, Record: h.record, RecordDomain: h.domain, Usable: true, Asked: true}
			musttest.Get(team.SaveCheck(t.Context(), h.domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
		}
	}
}

func compareSimulation(t *testing.T, team *service.Team, h history, r *rand.Rand) {
	t.Helper()
	tags := map[string]string{}
	for tag := range strings.SplitSeq(h.record, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(tag), "=")
		tags[name] = value
	}
	var change service.PolicyChange
	for name, to := range map[string]**dmarc.Policy{"p": &change.P, "sp": &change.SP, "np": &change.NP} {
		if r.IntN(2) == 0 {
			policy := dmarc.None + dmarc.Policy(r.IntN(3))
			*to, tags[name] = &policy, policy.String()
		}
	}
	for name, to := range map[string]**dmarc.Mode{"adkim": &change.ADKIM, "aspf": &change.ASPF} {
		if r.IntN(2) == 0 {
			mode := dmarc.Mode(r.IntN(2))
			*to, tags[name] = &mode, mode.String()
		}
	}
	got := musttest.Get(team.Simulate(t.Context(), h.domain, dmarcd.Days{}, change))(t)
	want := h.simulate(tags)
	want.of, want.affectedOf = map[dmarcd.Class]int64{}, map[dmarcd.Class]int64{}
	found := naive{
		observed: got.Observed, rfc9989: got.RFC9989, rfc7489: got.RFC7489, messages: map[string]int64{}, affected: map[string]int64{},
		of: map[dmarcd.Class]int64{
			dmarcd.ClassYours: got.Legitimate, dmarcd.ClassForwarder: got.Forwarder, dmarcd.ClassUnknown: got.Unknown, dmarcd.ClassSpoofing: got.Spoofing,
		},
		affectedOf: map[dmarcd.Class]int64{
			dmarcd.ClassYours: got.LegitimateAffected, dmarcd.ClassForwarder: got.ForwarderAffected, dmarcd.ClassUnknown: got.UnknownAffected, dmarcd.ClassSpoofing: got.SpoofingStopped,
		},
	}
	for _, s := range got.Senders {
		found.messages[s.Key] = s.Messages
		found.affected[s.Key] = s.Affected
		class := h.classOf(s.Key, want.messages[s.Key])
		if class == "" && (s.Class == dmarcd.ClassUnknown || s.Class == dmarcd.ClassSpoofing) {
			class = s.Class
		}
		want.of[class] += want.messages[s.Key]
		want.affectedOf[class] += want.affected[s.Key]
	}
	for _, messages := range []map[dmarcd.Class]int64{want.of, want.affectedOf, found.of, found.affectedOf} {
		maps.DeleteFunc(messages, func(_ dmarcd.Class, n int64) bool { return n == 0 })
	}
	maps.DeleteFunc(found.affected, func(_ string, n int64) bool { return n == 0 })
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(naive{})); diff != "" {
		t.Fatalf("%s with %v: -want +got\n%s\n%+v", h.domain, tags, diff, h)
	}
}
