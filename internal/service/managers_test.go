package service_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// company is a team whose domains are for a report for managers.
type company struct {
	*testing.T
	team   *service.Team
	stored *store.Team
	today  dmarcd.Day
	n      int
}

func newCompany(t *testing.T, db storetest.DB) *company {
	t.Helper()
	s := db.Open(t, store.Options{})
	w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), Memory: memory.NewBudget(1 << 30)})
	acme := musttest.Get(s.CreateTeam(t.Context(), "Zürich Ltd", true))(t)
	return &company{T: t, team: w.Team(acme.ID, service.CommandLine()), stored: s.Team(acme.ID), today: dmarcd.DayOf(time.Now())}
}

// publish adds a domain, and has it publish a policy; "" is no record.
func (c *company) publish(name, policy string) {
	c.Helper()
	if _, err := c.team.Domain(c.Context(), name); err != nil {
		musttest.Get(c.stored.AddDomains(c.Context(), []string{name}, time.Now().Add(time.Hour)))(c.T)
	}
	check := facts.Check{At: time.Now().Add(-time.Hour), Conclusive: true, Asked: true, Facts: &facts.Facts{Domain: name}}
	if policy != "" {
		check.Record, check.RecordDomain, check.Usable = "v=DMARC1; p="+policy, name, true
		check.Policy, _, _ = strings.Cut(policy, ";")
		check.Facts.DMARC = facts.DMARC{Status: "ok", Record: check.Record}
	}
	for range 2 { // a change must be confirmed
		check.At = check.At.Add(2 * time.Minute)
		musttest.Get(c.stored.SaveCheck(c.Context(), name, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(c.T)
	}
}

// receive has a receiver report messages of a domain from an address, some days ago.
func (c *company) receive(domain string, ago dmarcd.Day, source string, passes bool, disposition aggregate.Policy, messages int64) {
	c.Helper()
	c.n++
	r := aggregate.Record{Source: source, Count: messages, HeaderFrom: domain, Disposition: disposition, DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail}
	if passes {
		r.DKIM = aggregate.ResultPass
		r.DKIMResults = []aggregate.DKIMResult{{Domain: domain, Selector: "s", Result: aggregate.ResultPass}}
	}
	delivery := storetest.Delivery(storetest.Aggregate(fmt.Sprint(c.n), domain, c.today-ago, r))
	musttest.Get(c.stored.Receive(c.Context(), []*dmarcd.Delivery{delivery}))(c.T)
}

// plant gives the company three domains: one protected, one with spoofing that is delivered, and one
// without a record or mail.
func (c *company) plant() {
	c.publish("safe.example", "reject")
	c.publish("open.example", "none")
	c.publish("bare.example", "")
	for _, ago := range []dmarcd.Day{3, 10, 40} {
		c.receive("safe.example", ago, "192.0.2.1", true, aggregate.PolicyNone, 500)
		c.receive("safe.example", ago, "198.51.100.1", false, aggregate.PolicyReject, 60)
		c.receive("open.example", ago, "203.0.113.1", true, aggregate.PolicyNone, 90)
		c.receive("open.example", ago, "198.51.100.2", false, aggregate.PolicyNone, 300)
	}
	c.receive("open.example", 3, "203.0.113.1", false, aggregate.PolicyNone, 20) // own mail that fails
	c.receive("open.example", 66, "203.0.113.1", true, aggregate.PolicyNone, 1)  // reports reach back
	for name, address := range map[string]string{"safe.example": "198.51.100.1", "open.example": "198.51.100.2"} {
		musttest.Do(c.T, c.team.SetSenderClass(c.Context(), name, address, dmarcd.ClassSpoofing))
	}
	for name, address := range map[string]string{"safe.example": "192.0.2.1", "open.example": "203.0.113.1"} {
		musttest.Do(c.T, c.team.SetSenderClass(c.Context(), name, address, dmarcd.ClassYours))
	}
}

func (c *company) summary(name string) service.ManagerSummary {
	c.Helper()
	return musttest.Get(c.team.ManagerSummary(c.Context(), name, c.today-29, c.today))(c.T)
}

// TestManagerSummary computes the report for managers from planted mail, and has it agree with the
// other use cases.
func TestManagerSummary(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		c := newCompany(t, db)
		c.plant()
		c.publish("open.example", "quarantine")
		got := c.summary("")
		if want := "1 of 3 domains is protected against spoofing, 1 partly. 600 of 720 spoofed messages were delivered."; got.Conclusion != want {
			t.Errorf("got the conclusion %q, want %q", got.Conclusion, want)
		}
		for i, want := range []string{
			"bare.example no policy not protected – – –",
			"open.example quarantine partly protected 90.0 % 0 of 600 −10.0",
			"safe.example reject protected 100 % 120 of 120 ±0",
		} {
			r := got.Rows[i]
			if text := strings.Join([]string{r.Title(), r.PolicyText(), string(r.Protection), r.Share(), r.BlockedText(), r.Change()}, " "); text != want {
				t.Errorf("row %d: got %q, want %q", i, text, want)
			}
		}
		if len(got.Rows) != 3 || got.Groups != nil || !got.Compared {
			t.Errorf("got %d rows, groups %v, compared %t", len(got.Rows), got.Groups, got.Compared)
		}
		series := musttest.Get(c.team.Series(t.Context(), got.From, got.To))(t)
		all := got.Total.Mail.All()
		if all.Total() != series.Counts.Total() || all.Compliant != series.Counts.Compliant {
			t.Errorf("got the totals %+v, want those of the overview: %+v", all, series.Counts)
		}
		var done []string
		for _, d := range got.Done {
			done = append(done, d.Text)
		}
		for _, want := range []string{"open.example has a stricter policy: quarantine instead of none.", "bare.example, open.example and safe.example were added to the monitoring."} {
			if !slices.Contains(done, want) {
				t.Errorf("got what was done %q, want %q among it", done, want)
			}
		}
		if len(got.Next) == 0 || got.Next[0].Who != "DNS administrator" || got.Next[0].Where() != "bare.example" {
			t.Errorf("got what is next %+v, want the record of bare.example first", got.Next)
		}
		one := c.summary("OPEN.example")
		advice := musttest.Get(c.team.Advice(t.Context(), "open.example"))(t)
		if len(one.Rows) != 1 || one.Rows[0].Share() != "90.0 %" || one.Rows[0].Change() != "−10.0" || one.Conclusion != advice.Conclusion {
			t.Errorf("one domain: got %+v, want its row, and the conclusion %q", one, advice.Conclusion)
		}
		c.publish("bare.example", "quarantine; t=y")
		if want, bare := "bare.example tests the policy quarantine, which receivers do not apply yet.", c.summary("bare.example"); !slices.ContainsFunc(bare.Done, func(d service.SummaryDone) bool { return d.Text == want }) {
			t.Errorf("got what was done %+v, want %q among it", bare.Done, want)
		}
		if _, err := c.team.ManagerSummary(t.Context(), "none.example", got.From, got.To); err == nil {
			t.Error("got a report about a domain that the team does not have")
		}
	})
}

// TestManagerSummaryWithoutFigures shows no figure that is not known.
func TestManagerSummaryWithoutFigures(t *testing.T) {
	t.Parallel()
	c := newCompany(t, storetest.SQLite(t))
	if got := c.summary(""); got.Conclusion != "No domain is monitored yet." {
		t.Errorf("no domains: got %q", got.Conclusion)
	}
	musttest.Get(c.stored.AddDomains(t.Context(), []string{"new.example"}, time.Now().Add(time.Hour)))(t)
	got := c.summary("")
	if want := "0 of 1 domain is protected against spoofing. 1 domain could not be checked yet. No mail was reported in this period."; got.Conclusion != want {
		t.Errorf("got %q, want %q", got.Conclusion, want)
	}
	r := got.Rows[0]
	if r.Protection != service.UnknownYet || r.PolicyText() != "not known yet" || r.GradeText() != "–" || r.Share() != "–" || r.BlockedText() != "–" || r.Change() != "–" || got.Compared {
		t.Errorf("got the row %+v, compared %t; want nothing to be known", r, got.Compared)
	}
	c.receive("new.example", 3, "192.0.2.1", true, aggregate.PolicyNone, 10)
	c.receive("new.example", 31, "192.0.2.1", false, aggregate.PolicyNone, 10) // not the whole previous period
	if got := c.summary(""); got.Compared || got.Rows[0].Change() != "–" {
		t.Errorf("got a comparison with a period that reports only begin in: %+v", got.Rows[0])
	}
}

// TestManagerSummaryOfManyDomains groups the domains beyond the first, and keeps the PDF short.
func TestManagerSummaryOfManyDomains(t *testing.T) {
	t.Parallel()
	c := newCompany(t, storetest.SQLite(t))
	c.plant()
	var names []string
	for i := range 298 {
		names = append(names, fmt.Sprintf("brand%03d.%s.example", i, strings.Repeat("x", 60)))
	}
	musttest.Get(c.stored.AddDomains(t.Context(), names, time.Now().Add(time.Hour)))(t)
	got := c.summary("")
	var domains int
	for _, r := range got.All() {
		domains += r.Domains
	}
	if len(got.All()) > 16 || domains != 301 || got.Total.Domains != 301 {
		t.Errorf("got %d rows for %d of %d domains, want a short table of all 301", len(got.All()), domains, got.Total.Domains)
	}
	if want := "288 more domains"; got.Groups[0].Title() != want {
		t.Errorf("got the group %q, want %q", got.Groups[0].Title(), want)
	}
	if !slices.ContainsFunc(got.Next, func(n service.SummaryNext) bool { return n.Action == dmarcd.ActionCheck && n.Count == 298 }) {
		t.Errorf("got what is next %+v, want one line for equal actions", got.Next)
	}
	if testing.Short() {
		return // it needs pdftotext
	}
	text := textOf(t, musttest.Get(c.team.SummaryPDF(t.Context(), got))(t))
	if pages := strings.Count(text, "\f"); pages > 2 {
		t.Errorf("got %d pages, want at most 2", pages)
	}
}

// textOf returns the text of a PDF, as poppler reads it. Each page ends with a form feed.
func textOf(t *testing.T, file []byte) string {
	t.Helper()
	read := exec.CommandContext(t.Context(), "pdftotext", "-layout", "-", "-")
	read.Stdin = strings.NewReader(string(file))
	text, err := read.Output()
	if err != nil {
		t.Fatalf("pdftotext (scripts/need-pdf.sh installs it): %v", err)
	}
	return string(text)
}

// TestSummaryPDF reads the PDF back: it has all that the page has, in its own font.
func TestSummaryPDF(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	c := newCompany(t, storetest.SQLite(t))
	c.plant()
	s := c.summary("")
	file := musttest.Get(c.team.SummaryPDF(t.Context(), s))(t)
	text := strings.Join(strings.Fields(textOf(t, file)), " ")
	wanted := []string{"Email protection of Zürich Ltd", "Page 1 of 1", "bare.example – no policy not protected", s.Period(), "Messages per day", "Own mail, passes", s.ChangeNote()}
	for _, r := range s.Rows {
		wanted = append(wanted, strings.Join([]string{r.Title(), r.GradeText(), r.PolicyText(), string(r.Protection), r.Share(), r.BlockedText(), r.Change()}, " "))
	}
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("got the text %q, want %q in it", text, want)
		}
	}
	for _, part := range []string{"/Lang (en)", "/Title"} {
		if !strings.Contains(string(file), part) {
			t.Errorf("the file has no %s", part)
		}
	}
	if len(file) > 60<<10 {
		t.Errorf("got a file of %d bytes, want at most 60 KiB", len(file))
	}
}

// managerUses are the uses of the report for managers.
var managerUses = map[string]use{
	"Classes": reads(func(_ *world, t *service.Team) ([]insight.ClassDay, error) {
		c, err := t.Classes(ctx, ours, 20000, 20029)
		return c.Days, err
	}),
	"ManagerSummary": reads(func(_ *world, t *service.Team) (string, error) {
		s, err := t.ManagerSummary(ctx, ours, 20000, 20029)
		return s.Conclusion, err
	}),
	"SummaryPDF": reads(func(_ *world, t *service.Team) ([]byte, error) { return t.SummaryPDF(ctx, service.ManagerSummary{}) }),
}
