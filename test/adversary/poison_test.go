package adversary_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// report returns the report with an id of the reporter.
func (v *tenant) report(id string) listedReport {
	v.t.Helper()
	all := v.reports("")
	i := slices.IndexFunc(all, func(r listedReport) bool { return r.ReportID != nil && *r.ReportID == id })
	if i < 0 {
		v.t.Fatalf("%s: got %v want a report %q", v.name, all, id)
	}
	return all[i]
}

// count includes or excludes a report.
func (v *tenant) count(r listedReport, counted bool) {
	v.t.Helper()
	got := v.send(http.MethodPatch, "/insights/reports/"+r.ID, "application/json", fmt.Appendf(nil, `{"counted": %t}`, counted))
	if got.status != http.StatusOK {
		v.t.Fatalf("%s: PATCH counted=%t: got %v want 200", v.name, counted, got)
	}
	var changed listedReport
	if err := json.Unmarshal(got.body, &changed); err != nil || changed.ID != r.ID || changed.Counted != counted {
		v.t.Errorf("%s: PATCH counted=%t: got %v want the report as it is now", v.name, counted, got)
	}
}

// wantCounts wants every figure of a team to be the same: the summary, that of
// the domain, the days, and the senders in every grouping.
func (v *tenant) wantCounts(when, domain string, compliant, nonCompliant int64) {
	v.t.Helper()
	want := counts{compliant + nonCompliant, compliant, nonCompliant}
	for _, name := range []string{"", domain} {
		if got := v.counted(name); got != want {
			v.t.Errorf("%s: the summary of %q: got %+v want %+v", when, name, got, want)
		}
	}
	groupings := []string{"/insights/daily", "/insights/daily?by=domain", "/insights/daily?domain=" + domain}
	for _, by := range []string{"sender", "country", "address", "selector", "envelope_from", "header_from", "reporter"} {
		groupings = append(groupings, "/insights/senders?by="+by, "/insights/senders?by="+by+"&domain="+domain)
	}
	for _, path := range groupings {
		got := counts{}
		for _, part := range list[counts](v, path) {
			got.Compliant += part.Compliant
			got.NonCompliant += part.NonCompliant
		}
		got.Total = got.Compliant + got.NonCompliant
		if got != want {
			v.t.Errorf("%s: the sum of %s: got %+v want %+v", when, path, got, want)
		}
	}
}

// TestForgedCounts sends reports with impossible numbers, by mail and by
// upload. They are held, and nothing that comes later is kept out.
func TestForgedCounts(t *testing.T) {
	const forgeries, huge = 53, 9007199254740991
	for _, forged := range []string{"mark", "refuse"} {
		t.Run(forged, func(t *testing.T) {
			onEach(t, func(t *testing.T, a *arena) {
				a.dns.setZone(t, dkimZone("reporter.test"))
				to := a.address("victim", "victim.test")
				honest := int64(0)
				later := func(when string) {
					t.Helper()
					honest++
					if got := a.victim.upload([]byte(about("victim.test", when, 1, 0).xml())); got[0].Status != "stored" {
						t.Errorf("%s: an honest report: got %+v want it stored", when, got)
					}
				}
				later("before")
				for i := range forgeries {
					if i%10 == 0 {
						a.mail("127.1.0.1", "x@evil.test", to, mailFrom("evil.test", about("victim.test", fmt.Sprint("mailed ", i), huge, 0).xml()))
					}
					got := a.victim.upload([]byte(about("victim.test", fmt.Sprint("forged ", i), huge, huge).xml()))
					if len(got) != 1 || got[0].Status != "held" {
						t.Fatalf("forgery %d: got %+v want it held", i, got)
					}
				}
				// Many records that are plausible alone, and not together.
				crowd := about("victim.test", "crowd", 0, 0)
				crowd.rows = nil
				for i := range 11 {
					crowd.rows = append(crowd.rows, row{fmt.Sprintf("192.0.2.%d", i), "1000000000", true})
				}
				if got := a.victim.upload([]byte(crowd.xml())); got[0].Status != "held" {
					t.Errorf("more than 10^10 messages in all: got %+v want it held", got)
				}
				// The limits themselves are plausible.
				edge := about("victim.test", "edge", 1_000_000_000, 1)
				if got := a.victim.upload([]byte(edge.xml())); got[0].Status != "stored" {
					t.Errorf("10^9 messages in a record: got %+v want it stored", got)
				}
				later("after")
				a.reported("after forgeries", to, 1)
				honest++
				a.victim.wantCounts("with forgeries", "victim.test", 1_000_000_000+honest, 1)
				for _, id := range []string{"forged 0", "crowd"} {
					r := a.victim.report(id)
					if r.Counted || r.HeldReason == nil || *r.HeldReason == "" {
						t.Errorf("%s: got %+v want it held with a reason", id, r)
					}
				}

				// An editor may release what is held, unless it counts too much.
				got := a.victim.send(http.MethodPatch, "/insights/reports/"+a.victim.report("forged 0").ID, "application/json", []byte(`{"counted": true}`))
				if got.status != http.StatusUnprocessableEntity {
					t.Errorf("a forgery is released: got %v want 422", got)
				}
				a.victim.count(a.victim.report("crowd"), true)
				later("after the release")
				a.victim.wantCounts("with a released report", "victim.test", 12_000_000_000+honest, 1)
				a.victim.count(a.victim.report("crowd"), false)
				a.victim.wantCounts("without forgeries again", "victim.test", 1_000_000_000+honest, 1)
				a.d.Stop()
			}, "DMARCD_INTAKE_FORGED="+forged, "DMARCD_RATE_LIMIT=0")
		})
	}
}

// TestExcludedAndDeleted takes reports out of the figures and puts them back.
func TestExcludedAndDeleted(t *testing.T) {
	onEach(t, func(t *testing.T, a *arena) {
		v := a.victim
		days := []string{"2026-11-10", "2026-11-11", "2026-11-12"}
		for i, day := range days {
			r := about("victim.test", day, 10, 1)
			r.day = day
			v.upload([]byte(r.xml()))
			spam := about("victim.test", "spam "+day, 1000, int64(100*(i+1)))
			spam.day, spam.org, spam.email = day, "spam.test", "noreply@spam.test"
			v.upload([]byte(spam.xml()))
		}
		v.wantCounts("everything", "victim.test", 3030, 603)

		first := v.report(days[0])
		v.count(first, false)
		v.wantCounts("one report excluded", "victim.test", 3020, 602)
		v.count(first, false)
		v.wantCounts("excluded twice", "victim.test", 3020, 602)
		// A new version does not come back by itself.
		again := about("victim.test", days[0], 20, 2)
		again.day = days[0]
		v.upload([]byte(again.xml()))
		v.wantCounts("a new version of what is excluded", "victim.test", 3020, 602)
		i := slices.IndexFunc(v.reports(""), func(r listedReport) bool { return r.Messages == 22 })
		if i < 0 {
			t.Fatalf("got %v want the new version listed", v.reports(""))
		}
		v.count(v.reports("")[i], true)
		v.wantCounts("the new version included", "victim.test", 3040, 604)

		exclude := func(body string) answer {
			t.Helper()
			return v.send(http.MethodPost, "/insights/reports/exclude", "application/json", []byte(body))
		}
		if got := exclude(`{"reporter": "spam.test", "from": "2026-11-11", "to": "2026-11-12", "counted": false}`); got.status != http.StatusOK {
			t.Errorf("exclude a reporter for two days: got %v want 200", got)
		}
		v.wantCounts("two days of a reporter excluded", "victim.test", 1040, 104)
		if got := exclude(`{"reporter": "spam.test", "counted": false}`); got.status != http.StatusOK {
			t.Errorf("exclude a reporter: got %v want 200", got)
		}
		v.wantCounts("a reporter excluded", "victim.test", 40, 4)
		if got := exclude(`{"from": "2026-11-11", "to": "2026-11-11", "counted": false}`); got.status != http.StatusOK {
			t.Errorf("exclude a day: got %v want 200", got)
		}
		v.wantCounts("a day excluded", "victim.test", 30, 3)
		if got := exclude(`{"reporter": "spam.test", "counted": true}`); got.status != http.StatusOK {
			t.Errorf("include a reporter: got %v want 200", got)
		}
		v.wantCounts("a reporter included", "victim.test", 3030, 603)

		gone := v.report("spam " + days[2])
		if got := v.send(http.MethodDelete, "/insights/reports/"+gone.ID, "", nil); got.status != http.StatusNoContent {
			t.Errorf("DELETE: got %v want 204", got)
		}
		v.wantCounts("a report deleted", "victim.test", 2030, 303)
		for _, path := range []string{"", "/original", "/records"} {
			if got := v.send(http.MethodGet, "/insights/reports/"+gone.ID+path, "", nil); got.status != http.StatusNotFound {
				t.Errorf("GET %s of a deleted report: got %v want 404", path, got)
			}
		}
		if got := v.send(http.MethodDelete, "/insights/reports/"+gone.ID, "", nil); got.status != http.StatusNotFound {
			t.Errorf("DELETE again: got %v want 404", got)
		}
		spam := about("victim.test", "spam "+days[2], 1000, 300)
		spam.day, spam.org, spam.email = days[2], "spam.test", "noreply@spam.test"
		if got := v.upload([]byte(spam.xml())); got[0].Status != "stored" {
			t.Errorf("a deleted report that arrives again: got %+v want it stored", got)
		}
		v.wantCounts("a deleted report arrives again", "victim.test", 3030, 603)

		// Another team can neither see nor change it.
		for _, method := range []string{http.MethodPatch, http.MethodDelete} {
			if got := a.mallory.send(method, "/insights/reports/"+first.ID, "application/json", []byte(`{"counted": false}`)); got.status != http.StatusNotFound {
				t.Errorf("%s by another team: got %v want 404", method, got)
			}
		}
		v.wantCounts("after another team has tried", "victim.test", 3030, 603)

		// What could not be read can be deleted too.
		v.send(http.MethodPost, "/reports", "application/octet-stream", []byte("not a report"))
		rejected := list[struct {
			ID string `json:"id"`
		}](v, "/insights/rejected")
		if len(rejected) != 1 {
			t.Fatalf("got %v rejected want one item", rejected)
		}
		if got := v.send(http.MethodDelete, "/insights/rejected/"+rejected[0].ID, "", nil); got.status != http.StatusNoContent {
			t.Errorf("DELETE of a rejected item: got %v want 204", got)
		}
		if got := list[listedReport](v, "/insights/rejected"); len(got) != 0 {
			t.Errorf("got %v rejected want none", got)
		}
		a.d.Stop()
	}, "DMARCD_RATE_LIMIT=0")
}

// TestMailThatEndsTheProcess ends the process whenever a certain mail is handled, as a
// mail could whose content overflows a stack or exhausts the memory: twice while it is
// verified and once while it is read. After that it is set aside, and the daemon stays.
func TestMailThatEndsTheProcess(t *testing.T) {
	const restLimit = 10 * time.Minute // the daemon waits longer after every crash
	onSQLite(t, func(t *testing.T, a *arena) {
		to, sender := a.address("mallory", "mallory.test"), "poison"+silentSuffix
		content := mailFrom(sender, string(closings(t, 200*mega)),
			"DKIM-Signature: v=1; a=rsa-sha256; d="+sender+"; s=s1; h=from; bh=AAAA; b=AAAA")
		asked := a.dns.silent.Load()
		a.mail("127.1.0.1", "x@"+sender, to, content)
		for crash := range 2 {
			eventually(t, restLimit, "the mail is verified", func() bool { return a.dns.silent.Load() > asked })
			a.d.Kill()
			asked = a.dns.silent.Load()
			a.serve()
			if crash == 0 {
				a.watch("after a crash", func() { a.work(1) })
			}
		}
		// Nothing else takes so much processor time.
		const reading = 700 * time.Millisecond
		rest := a.d.CPU()
		eventually(t, restLimit, "the mail is read", func() bool {
			now := a.d.CPU()
			if !strings.Contains(a.d.Log(), "crashes") {
				rest = now // it is still starting
			}
			return now-rest > reading
		})
		a.d.Kill()
		a.serve()
		type rejection struct {
			Reason string `json:"reason"`
		}
		var rejected []rejection
		a.watch("after the last crash", func() {
			eventually(t, restLimit, "the mail is set aside", func() bool {
				rejected = list[rejection](a.mallory, "/insights/rejected")
				return len(rejected) > 0
			})
			a.work(1)
		})
		if len(rejected) != 1 || !strings.Contains(rejected[0].Reason, "could not be handled") {
			t.Errorf("got %+v want one item that could not be handled", rejected)
		}
		a.restart()
		a.watch("after a restart", func() { a.work(1) })
		a.reported("after a mail that ends the process", a.address("victim", "victim.test"), 1)
		a.d.Stop()
	})
}
