package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// save saves a check of a domain.
func (w *world) save(domain string, check facts.Check) {
	w.Helper()
	check.At, check.Conclusive = time.Now(), true
	musttest.Get(w.store.Team(w.team.ID).SaveCheck(ctx, domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(w)
}

// TestWatchedDomains has users wait for records: one check runs at a time, and not again for
// some seconds.
func TestWatchedDomains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	synctest.Test(t, func(t *testing.T) { w.watches(t) })
}

// resolverFunc answers questions.
type resolverFunc func(ctx context.Context, q dns.Question) dns.Answer

func (f resolverFunc) Resolve(ctx context.Context, q dns.Question) dns.Answer { return f(ctx, q) }

// watches is TestWatchedDomains in a bubble, in which a check that does not end is found.
func (w *world) watches(t *testing.T) {
	t.Helper()
	var running, checks atomic.Int64
	now := time.Now()
	begun, finish := make(chan struct{}), make(chan struct{})
	clock := func() time.Time { return now }
	// Each full check asks for the TLS-RPT record once.
	resolver := resolverFunc(func(ctx context.Context, q dns.Question) dns.Answer {
		if q.Name == "_smtp._tls."+ours {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 8*time.Second {
				t.Errorf("got a check until %v, want one within 8 seconds", deadline)
			}
			checks.Add(1)
			if running.Add(1) != 1 {
				t.Error("got two checks at once")
			}
			begun <- struct{}{}
			<-finish
			running.Add(-1)
		}
		return dns.Answer{Question: q, Outcome: dns.NoData}
	})
	team := w.with(w.asOwner(), func(o *service.Options) {
		o.Now = clock
		o.Checker = dnscheck.New(dnscheck.Options{Resolver: resolver, Interval: time.Hour, Now: clock})
	})
	watch := func() {
		if err := team.Watch(ctx, "Example.com"); err != nil {
			t.Error(err)
		}
	}
	for i := range int64(2) {
		now = now.Add(time.Minute)
		var first sync.WaitGroup
		first.Go(watch)
		<-begun
		watch() // another user, while it runs
		finish <- struct{}{}
		first.Wait()
		if got := checks.Load(); got != i+1 {
			t.Errorf("got %d checks, want %d", got, i+1)
		}
	}
	domain := musttest.Get(team.Domain(ctx, ours))(t)
	now = domain.CheckedAt.Add(10*time.Second - 1)
	watch()
	if got := checks.Load(); got != 2 {
		t.Errorf("just checked: got %d checks, want 2", got)
	}
	now = domain.CheckedAt.Add(10 * time.Second)
	go func() { <-begun; finish <- struct{}{} }()
	watch()
	if got := checks.Load(); got != 3 {
		t.Errorf("after ten seconds: got %d checks, want 3", got)
	}
}

// TestSampleData adds sample data, which is not checked, and takes it back.
func TestSampleData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	change := func(load func(context.Context, *store.Team) error) *service.Team {
		return w.with(w.asOwner(), func(o *service.Options) {
			o.Sample.Load = load
		})
	}
	start := func(name string, team *service.Team, want service.Start) {
		t.Helper()
		if got, err := team.Start(ctx); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
	broken := errors.New("no space left")
	works := change(func(context.Context, *store.Team) error { return nil })
	start("with a domain", works, service.Start{Domains: 1, Open: ours, Reported: true})
	w.deleteDomains()
	if err := change(nil).AddSample(ctx); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("no sample data: got %v, want %v", err, dmarcd.ErrNotFound)
	}
	start("no sample data", change(nil), service.Start{})
	if err := change(func(context.Context, *store.Team) error { return broken }).AddSample(ctx); !errors.Is(err, broken) {
		t.Errorf("a failure: got %v, want %v", err, broken)
	}
	start("after a failure", works, service.Start{Samples: true})
	w.must(works.AddSample(ctx))
	start("with sample data", works, service.Start{Domains: 1, Open: "one.example"})
	domain, check, err := works.Verify(ctx, "one.example")
	if err != nil || !domain.Sample || !check.Conclusive || !domain.CheckedAt.IsZero() {
		t.Errorf("got %+v and %+v, %v; want the domain as it is", domain, check, err)
	}
	w.must(works.Examine(ctx, "one.example"))
	if domain, check, err := works.Verify(ctx, "one.example"); err != nil || domain.Name != "one.example" || check.Record != "" || !domain.CheckedAt.IsZero() {
		t.Errorf("got %+v, %+v, %v", domain, check, err)
	}
}

// TestNewDomainsAreChecked adds domains one by one and together.
func TestNewDomainsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, w.asOwner())
	added, err := team.AddDomain(ctx, "Example.ORG.")
	if err != nil || added.Name != "example.org" || added.CheckedAt.IsZero() {
		t.Errorf("got %+v, %v; want a domain that was checked", added, err)
	}
	if _, err := team.AddDomain(ctx, "no name"); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrInvalid)
	}
	for _, test := range []struct {
		names []string
		want  int
	}{{nil, 0}, {[]string{"example.org"}, 0}, {[]string{"example.org", "example.net", "example.edu"}, 2}} {
		if got, err := team.AddDomains(ctx, test.names); err != nil || got != test.want {
			t.Errorf("%v: got %d, %v; want %d", test.names, got, err, test.want)
		}
	}
	verified, check, err := team.Verify(ctx, "example.net")
	if err != nil || verified.CheckedAt.IsZero() || !check.Asked {
		t.Errorf("got %+v, %+v, %v; want a check on request", verified, check, err)
	}
}

// TestTeamSenderRules adds senders: by what they are recognized, and under which key.
func TestTeamSenderRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.with(w.asOwner(), func(o *service.Options) {
		o.Insight = insight.New(&senders.Atlas{}, senders.NewCatalogue([]senders.Sender{{Key: "letters", Name: "Letters"}}), nameless{}, nil)
	})
	for _, test := range []struct {
		name     string
		sender   dmarcd.TeamSender
		networks []string
		key      string // "" is an error at field
		field    string
	}{
		{name: "a network", sender: dmarcd.TeamSender{Name: "Our CRM"}, networks: []string{"192.0.2.0/24"}, key: "our-crm"},
		{name: "the same name", sender: dmarcd.TeamSender{Name: "Our CRM"}, networks: []string{"198.51.100.0/24"}, key: "our-crm-2"},
		{name: "the same name again", sender: dmarcd.TeamSender{Name: "Our CRM"}, networks: []string{"203.0.113.0/24"}, key: "our-crm-3"},
		{name: "its key", sender: dmarcd.TeamSender{Key: "our-crm", Name: "CRM"}, networks: []string{"192.0.2.0/24"}, key: "our-crm"},
		{name: "nothing", sender: dmarcd.TeamSender{Name: "Other"}, field: "networks"},
		{name: "a known sender", sender: dmarcd.TeamSender{Key: "letters", Name: "News"}, key: "letters"},
		{name: "a system", sender: dmarcd.TeamSender{Key: "as64496", Name: "Data centre"}, key: "AS64496"},
		{name: "a host", sender: dmarcd.TeamSender{Name: "Host", Hosts: []string{"mail.sender.example"}}, key: "host"},
		{name: "a public suffix as a host", sender: dmarcd.TeamSender{Name: "Host", Hosts: []string{"co.uk"}}, field: "hosts"},
		{name: "a domain", sender: dmarcd.TeamSender{Name: "Domain", Domains: []string{"sender.example"}}, key: "domain"},
		{name: "a public suffix as a domain", sender: dmarcd.TeamSender{Name: "Domain", Domains: []string{"co.uk"}}, field: "domains"},
		{name: "our domain", sender: dmarcd.TeamSender{Name: "Domain", Domains: []string{"sender.example", ours}}, field: "domains"},
		{name: "a wrong key", sender: dmarcd.TeamSender{Key: "No Key", Name: "x"}, networks: []string{"192.0.2.1"}, field: "key"},
	} {
		got, err := team.SetTeamSender(ctx, test.sender, test.networks)
		if test.field != "" {
			if invalid := (*dmarcd.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("%s: got %v, want an error at %s", test.name, err, test.field)
			}
		} else if err != nil || got.Key != test.key {
			t.Errorf("%s: got %+v, %v; want the key %s", test.name, got, err, test.key)
		}
	}
	all, err := team.TeamSenders(ctx)
	if err != nil || len(all) != 7 {
		t.Errorf("got %+v, %v; want 7 senders", all, err)
	}
}

// TestSenderClasses sets the class of a sender, and clears it.
func TestSenderClasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.with(w.asOwner(), func(o *service.Options) {
		o.Insight = insight.New(&senders.Atlas{}, senders.NewCatalogue([]senders.Sender{{Key: "sendgrid", Name: "SendGrid", Kind: senders.Service, Category: senders.Transactional}}), nameless{}, nil)
	})
	for class, detail := range map[dmarcd.Class]string{dmarcd.ClassYours: "AS64496, yours", "": "AS64496, automatic"} {
		w.must(team.SetSenderClass(ctx, ours, "AS64496", class))
		if got := w.entries()[0].Detail; got != detail {
			t.Errorf("got %q in the audit log, want %q", got, detail)
		}
	}
	if err := team.SetSenderClass(ctx, "elsewhere.example", "AS64496", dmarcd.ClassYours); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
	}
	w.must(team.SetSenderClass(ctx, ours, "as64496", dmarcd.ClassYours))
	if got := w.entries()[0].Detail; got != "AS64496, yours" {
		t.Errorf("got %q in the audit log, want the key in its canonical form", got)
	}
	musttest.Get(team.SetTeamSender(ctx, dmarcd.TeamSender{Key: "our-crm", Name: "Our CRM", Domains: []string{"crm.example"}}, nil))(t)
	for _, key := range []string{"-", "-:yours", "sendgrid", "sendgrid:rest", "our-crm", "AS64496:as:news.example", "192.0.2.7", "192.0.2.0/24", "2001:db8:0:1::/64"} {
		w.must(team.SetSenderClass(ctx, ours, key, dmarcd.ClassYours))
	}
	before := len(w.entries())
	for _, key := range []string{
		"", "bad key", "*", "Send", "a\x00b", "a\xffb", strings.Repeat("a", 65), "mailchimp", "mailchimp:rest", "192.0.2.0/7", "2001:db8::/31", "192.0.2", "sendgrid:theirs", "AS64496:as:",
	} {
		if err := team.SetSenderClass(ctx, ours, key, dmarcd.ClassYours); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("%.10q: got %v, want %v", key, err, dmarcd.ErrInvalid)
		}
	}
	if got := w.entries(); len(got) != before {
		t.Errorf("got the entry %+v for a key that is not valid, want none", got[0])
	}
	for purpose, detail := range map[dmarcd.Purpose]string{dmarcd.PurposeBusiness: string(dmarcd.PurposeBusiness), "": "none"} {
		w.must(team.SetPurpose(ctx, ours, purpose))
		if got := w.entries()[0].Detail; got != detail {
			t.Errorf("got %q in the audit log, want %q", got, detail)
		}
	}
}

// TestSeries counts the mail of a period and of the one before, without that of a parked
// domain.
func TestSeries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.must(w.store.Team(w.team.ID).DeleteReport(ctx, w.report))
	const parked = "parked.example"
	musttest.Get(w.store.Team(w.team.ID).AddDomain(ctx, parked, time.Now().Add(time.Hour)))(t)
	w.save(parked, facts.Check{
		Record: "v=DMARC1; p=reject", RecordDomain: parked, Usable: true, Policy: "reject", Grade: "A",
		Facts: &facts.Facts{Domain: parked},
	})
	w.must(w.store.Team(w.team.ID).SetParked(ctx, parked, true))
	domain := musttest.Get(w.store.Team(w.team.ID).Domain(ctx, parked))(t)
	if !domain.Parked {
		t.Fatalf("got %+v, want a parked domain", domain)
	}
	to := dmarcd.DayOf(time.Now()) - 1
	from := to - 2
	for day, n := range map[dmarcd.Day]int64{from - 4: 1, from - 3: 10, from - 1: 100, from: 1000, to: 10_000} {
		storetest.Count(t, w.store.Team(w.team.ID), ours, dmarcd.DayCount{Day: day, Summary: dmarcd.Summary{Compliant: n, NonCompliant: 2 * n}})
		storetest.Count(t, w.store.Team(w.team.ID), parked, dmarcd.DayCount{Day: day, Summary: dmarcd.Summary{NonCompliant: 5 * n}})
	}
	got := musttest.Get(w.service.Team(w.team.ID, w.asOwner()).Series(ctx, from, to))(t)
	var days []string
	for _, d := range got.Days {
		days = append(days, fmt.Sprintf("%d: %d of %d", d.Day-from, d.Compliant, d.Total()))
	}
	if diff := cmp.Diff([]string{"0: 1000 of 3000", "1: 0 of 0", "2: 10000 of 30000"}, days); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	if got.Counts.Compliant != 11_000 || got.Counts.Total() != 33_000 || got.Before.Compliant != 110 || got.Before.Total() != 330 || got.Parked != 55_000 {
		t.Errorf("got %+v, %+v before, %d parked", got.Counts, got.Before, got.Parked)
	}
	content := musttest.Get(digestService(w, time.Now()).DigestContent(ctx, w.team.ID, dmarcd.Event{Kind: dmarcd.DigestDaily, EventData: dmarcd.EventData{Day: to}}))(t)
	if len(content.Paragraphs) != 2 || !strings.HasPrefix(content.Paragraphs[1], "Not counted: 50,000 messages that spoof parked domains.") || content.Chart != nil {
		t.Errorf("got %q and the chart %v, want the parked messages and no chart of one day", content.Paragraphs, content.Chart)
	}
	if diff := cmp.Diff([][]string{{parked, "50,000", "0 %"}, {ours, "30,000", "33.3 %"}}, content.Table.Rows); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	content, err := digestService(w, time.Now()).DigestContent(ctx, w.team.ID, dmarcd.Event{Kind: dmarcd.DigestDaily, EventData: dmarcd.EventData{Day: from - 2}})
	if err != nil || content.Table != nil || len(content.Paragraphs) != 1 {
		t.Errorf("a day without mail: got %+v, %v", content, err)
	}
	storetest.Count(t, w.store.Team(w.team.ID), parked, dmarcd.DayCount{Day: to - 1, Summary: dmarcd.Summary{Compliant: 7}})
	got = musttest.Get(w.service.Team(w.team.ID, w.asOwner()).Series(ctx, from, to))(t)
	if got.Parked != 0 || got.Counts.Total() != 33_000+55_000+7 {
		t.Errorf("a parked domain of which mail passes: got %+v, %d parked, want its mail counted", got.Counts, got.Parked)
	}
}

// TestRetention sets how long data is kept.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.with(w.asOwner(), func(o *service.Options) {
		o.Retention = store.Retention{Counters: 36 * time.Hour, Records: 24 * time.Hour, Originals: time.Second}
	})
	if got, err := team.Retention(ctx); err != nil || got != (service.Retention{Counters: 2, Records: 1, Originals: 1}) {
		t.Errorf("the default: got %+v, %v; want whole days", got, err)
	}
	for _, test := range []struct {
		retained service.Retention
		invalid  bool
	}{
		{retained: service.Retention{Counters: 30, Records: 30, Originals: 7}},
		{retained: service.Retention{Counters: 30, Records: 29}},
		{retained: service.Retention{Records: 10}},
		{retained: service.Retention{Counters: 30, Records: 31}, invalid: true},
		{retained: service.Retention{Counters: 30}, invalid: true},
	} {
		if err := team.SetRetention(ctx, test.retained); errors.Is(err, dmarcd.ErrInvalid) != test.invalid || !test.invalid && err != nil {
			t.Errorf("%+v: got %v, want it invalid: %t", test.retained, err, test.invalid)
		}
		if got, err := team.Retention(ctx); !test.invalid && (err != nil || got != test.retained) {
			t.Errorf("got %+v, %v; want %+v", got, err, test.retained)
		}
	}
}

// TestSelfTest sends a report that is stored at once, later, and never.
func TestSelfTest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, test := range []struct {
		name   string
		domain string        // of reports
		after  time.Duration // until it is stored; 0 is never
		stops  bool          // the process, meanwhile
		stages string        // "" is an error
		passed bool
		most   time.Duration // until the answer
	}{
		{"stored", "reports.example", time.Second, false, "mx verification store", true, 2 * time.Second},
		{"not stored", "reports.example", 0, false, "mx store", false, 31 * time.Second},
		{"not stored before the process stops", "reports.example", 0, true, "mx store", false, 0},
		{"no report domain", "", 0, false, "", false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			stopping := make(chan struct{})
			if test.stops {
				close(stopping)
			}
			team := w.with(w.asOwner(), func(o *service.Options) {
				o.ReportDomain, o.Stopping = test.domain, stopping
				o.SelfTests = selfTests(func(_ context.Context, address, domain, id string) ([]dmarcd.SelfTestStage, bool) {
					if !strings.HasSuffix(address, "@"+test.domain) || domain != ours {
						t.Errorf("got a report to %s about %s", address, domain)
					}
					if test.after > 0 {
						go func() {
							time.Sleep(test.after)
							musttest.Get(w.store.Team(w.team.ID).Receive(ctx, []*dmarcd.Delivery{storetest.Delivery(storetest.Aggregate(id, ours, 20000))}))(t)
						}()
					}
					return []dmarcd.SelfTestStage{{Name: dmarcd.StageMX, Passed: true}}, true
				})
			})
			began := time.Now()
			got, err := team.SelfTest(ctx, ours)
			var stages []string
			for _, s := range got.Stages {
				stages = append(stages, s.Name)
			}
			if (err != nil) != (test.stages == "") || strings.Join(stages, " ") != test.stages || got.Passed() != test.passed {
				t.Errorf("%s: got %+v, %v; want the stages %s", test.name, got, err, test.stages)
			}
			if took := time.Since(began); took < test.after || took > test.most || test.most > 30*time.Second && took < 30*time.Second {
				t.Errorf("%s: got an answer after %s", test.name, took)
			}
		})
	}
	reports, err := w.service.Team(w.team.ID, w.asOwner()).Reports(ctx, service.ReportFilter{}, 0, 10)
	if err != nil || len(reports) != 1 || w.entries()[0].Action != "domain.selftest" {
		t.Errorf("got the reports %+v, %v, want that of the world, and that the other is deleted", reports, err)
	}
}

// TestAdvicePages lists the advice for many domains, most urgent first.
func TestAdvicePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, w.asOwner())
	musttest.Get(team.AddDomains(ctx, []string{"a.example", "b.example"}))(t)
	w.save("b.example", facts.Check{Record: "v=DMARC1; p=none", RecordDomain: "b.example", Usable: true, Policy: "none"})
	for _, test := range []struct {
		after, limit int
		want         string
		more         bool
	}{
		{0, 1, "a.example", true},
		{0, 2, "a.example example.com", true},
		{0, 3, "a.example example.com b.example", false},
		{2, 1, "b.example", false},
		{3, 1, "", false},
	} {
		all, more, err := team.AllAdvice(ctx, test.after, test.limit)
		var names []string
		for _, a := range all {
			names = append(names, a.Domain)
		}
		if got := strings.Join(names, " "); err != nil || got != test.want || more != test.more {
			t.Errorf("%d after %d: got %q, more: %t, %v; want %q, %t", test.limit, test.after, got, more, err, test.want, test.more)
		}
	}
	unknown, err := team.Advice(ctx, "a.example")
	if err != nil || unknown.Stage != dmarcd.StageNone || unknown.Next() == nil || unknown.Next().ID != dmarcd.ActionCheck {
		t.Errorf("before DNS has answered: got %+v, %v; want a check", unknown, err)
	}
	domain := musttest.Get(team.Domain(ctx, "b.example"))(t)
	for record, action := range map[string]dmarcd.ActionID{
		"v=DMARC1; p=none": dmarcd.ActionReports,
		"v=DMARC1; p=none; rua=mailto:" + domain.ReportAddress("reports.example"): dmarcd.ActionWait,
	} {
		w.save(domain.Name, facts.Check{Record: record, RecordDomain: domain.Name, Usable: true, Policy: "none"})
		if got, err := team.Advice(ctx, domain.Name); err != nil || got.Next() == nil || got.Next().ID != action {
			t.Errorf("%s: got %+v, %v; want %s", record, got.Next(), err, action)
		}
	}
	for _, name := range []string{"", ours} {
		mail := musttest.Get(team.Mail(ctx, name, dmarcd.Days{}))(t)
		found, err := mail.List(ctx, insight.Query{Group: insight.GroupAddress, Limit: 10})
		if mail.Close(); err != nil || len(found.Rows) != 1 {
			t.Errorf("mail of %q: got %+v, %v; want one address", name, found, err)
		}
	}
	// The mail of a domain is assessed with what the team said about its senders.
	senders := func(name string) (insight.List, error) {
		mail := musttest.Get(team.Mail(ctx, name, dmarcd.Days{}))(t)
		defer mail.Close()
		return mail.List(ctx, insight.Query{Group: insight.GroupSender, Assess: true, Limit: 10})
	}
	found := musttest.Get(senders(ours))(t)
	w.must(team.SetSenderClass(ctx, ours, found.Rows[0].Key, dmarcd.ClassSpoofing))
	for _, name := range []string{"", ours} {
		if found, err = senders(name); err != nil || found.Rows[0].Assessment.Class != dmarcd.ClassSpoofing {
			t.Errorf("mail of %q: got %+v, %v; want the class that was set", name, found.Rows, err)
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := team.Mail(ended, ours, dmarcd.Days{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := team.Advice(ctx, "c.example"); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
	}
}

// TestPeriodOfSimulations chooses the days of a simulation: 30 unless both ends are given.
func TestPeriodOfSimulations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	today := dmarcd.DayOf(time.Now())
	team := w.service.Team(w.team.ID, w.asOwner())
	early, late := today-100, today-50
	for name, test := range map[string]struct {
		days     dmarcd.Days
		from, to dmarcd.Day
	}{
		"open":      {dmarcd.Days{}, today - 29, today},
		"from":      {dmarcd.Days{From: &early}, early, today},
		"to":        {dmarcd.Days{To: &late}, late - 29, late},
		"both":      {dmarcd.Days{From: &early, To: &late}, early, late},
		"backwards": {dmarcd.Days{From: &late, To: &early}, late, late},
	} {
		got, err := team.Simulate(ctx, ours, test.days, service.PolicyChange{})
		if err != nil || got.From != test.from || got.To != test.to {
			t.Errorf("%s: got %d to %d, %v; want %d to %d", name, got.From, got.To, err, test.from, test.to)
		}
	}
}

// TestVerificationsTakeTurns has many teams verify while the database is slow: half as many use it as
// there are cores, and a report of another team is stored meanwhile.
func TestVerificationsTakeTurns(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	began, proceed := make(chan struct{}, 100), make(chan struct{})
	s := storetest.SQLite(t).Open(t, store.Options{Statement: func(query string) {
		if slow.Load() && strings.Contains(query, "FROM domains\n") {
			began <- struct{}{}
			<-proceed
		}
	}})
	teams := make([]*store.Team, 4*fair.Cores()+1)
	for i := range teams {
		teams[i] = s.Team(storetest.Team(t, s, fmt.Sprint("team", i)).ID)
		musttest.Get(teams[i].AddDomain(t.Context(), ours, time.Time{}))(t)
	}
	cases := service.New(s, service.Options{
		Checker: dnscheck.New(dnscheck.Options{Resolver: dnstest.New(""), Interval: time.Hour, Now: time.Now}),
	})
	slow.Store(true)
	var verifications errgroup.Group
	for _, team := range teams[1:] {
		verifications.Go(func() error {
			_, _, err := cases.Team(team.ID(), service.CommandLine()).Verify(t.Context(), ours)
			return err
		})
	}
	for range fair.HalfCores() {
		<-began
	}
	report := storetest.Aggregate("1", ours, dmarcd.DayOf(time.Now()), storetest.Passed(ours, 7))
	musttest.Get(teams[0].Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(t)
	if more := len(began); more > 0 {
		t.Errorf("%d verifications use the database at once, want %d", int(fair.HalfCores())+more, fair.HalfCores())
	}
	slow.Store(false)
	close(proceed)
	if err := verifications.Wait(); err != nil {
		t.Error(err)
	}
}
