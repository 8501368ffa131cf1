package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// many adds 120 domains to the empty team: 60 monitor, 40 have no record, 20 are new.
func (s *site) many(t *testing.T) *store.Team {
	t.Helper()
	team := s.store.Team(s.emptyTeam)
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("brand%03d.example", i))
	}
	musttest.Get(team.AddDomains(t.Context(), names, now.Add(time.Hour)))(t)
	var postures []store.StoredPosture
	for i, d := range musttest.Get(team.Domains(t.Context(), "", 1000))(t) {
		posture := dmarcd.Posture{Stage: dmarcd.StageMonitoring, Action: dmarcd.ActionTighten, Title: "Publish p=quarantine", MailCounts: dmarcd.MailCounts{Messages: 1000, Yours: 400, YoursPassing: 300}, ComputedAt: now}
		switch {
		case i >= 100:
			continue
		case i >= 60:
			posture = dmarcd.Posture{Stage: dmarcd.StageNone, Action: dmarcd.ActionPublish, Title: "Publish a DMARC record", ComputedAt: now}
		}
		postures = append(postures, store.StoredPosture{Domain: d.ID, Posture: posture})
	}
	musttest.Do(t, team.SavePostures(t.Context(), postures))
	return team
}

var brands = regexp.MustCompile(`name="domain" value="(brand\d+)\.example"`)

// listed are the domains on a page, without their last label.
func listed(body string) (names []string) {
	for _, found := range brands.FindAllStringSubmatch(body, -1) {
		names = append(names, found[1])
	}
	return names
}

// TestDomains lists, filters, counts and pages domains.
func TestDomains(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if body := s.body(t, elsewhere, "/app/domains"); !strings.Contains(body, "No domains yet") || !strings.Contains(body, `href="/app/domains/new"`) {
		t.Error("got no invitation to add domains for a team without any")
	}
	team := s.many(t)
	musttest.Do(t, team.SetTags(t.Context(), "brand007.example", []string{"shop"}))
	for _, test := range []struct {
		query       string
		rows        int
		first, last string
		wants       []string
	}{
		{"", 50, "brand000", "brand049", []string{`Domains <span class="quiet">120</span>`, "monitoring <strong>60</strong>", "no record <strong>40</strong>", "not known yet <strong>20</strong>", "1–50 of 120", "Publish p=quarantine", `<data value="300">`, "page=2"}},
		{"?page=3", 20, "brand100", "brand119", []string{"101–120 of 120", "not known yet"}},
		{"?stage=none", 40, "brand060", "brand099", []string{"40 of 120 match", "all 40 that match", "Publish a DMARC record", `value="none" selected`, "Clear"}},
		{"?stage=none&search=09&sort=-name", 10, "brand099", "brand090", []string{"10 of 120 match", `value="09"`}},
		{"?search=BRAND1", 20, "brand100", "brand119", []string{"20 of 120 match"}},
		{"?tag=shop", 1, "brand007", "brand007", []string{`Domains <span class="quiet">1</span>`, `href="/app/domains?tag=shop"`}},
		{"?grade=A", 0, "", "", []string{"No domain matches", "Show all domains"}},
		{"?stage=nothing", 0, "", "", []string{"No domain matches"}},
	} {
		body := s.body(t, elsewhere, "/app/domains"+test.query)
		got := listed(body)
		if len(got) != test.rows || len(got) > 0 && (got[0] != test.first || got[len(got)-1] != test.last) {
			t.Errorf("%s: got %d domains %v, want %d from %s to %s", test.query, len(got), got, test.rows, test.first, test.last)
		}
		for _, want := range test.wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got a page without %q", test.query, want)
			}
		}
	}
	if lines := strings.Count(s.body(t, elsewhere, "/app/domains?stage=none&csv=domains"), "\n"); lines != 41 {
		t.Errorf("got a file of %d lines, want 40 domains and the header", lines)
	}
	r := httptest.NewRequest(http.MethodGet, "/app/domains?stage=none", nil)
	r.Header.Set("Accept", "text/html;profile=fragment")
	if body := s.send(elsewhere, r).Body.String(); len(listed(body)) != 40 || strings.Contains(body, "<html") {
		t.Errorf("got a fragment of %d domains, want only the list", len(listed(body)))
	}
}

// TestBulk tags, checks, exports and deletes selected domains, and keeps the filter.
func TestBulk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.many(t)
	const path = "/app/domains/bulk?stage=none"
	pathOf := func(form url.Values) string {
		if form.Has("confirm") {
			return "/app/domains/delete?stage=none"
		}
		return path
	}
	form := func(action string, more ...string) url.Values {
		values := url.Values{"action": {action}}
		for i := 0; i < len(more); i += 2 {
			values.Add(more[i], more[i+1])
		}
		return values
	}
	tagged := func(tag string) int {
		t.Helper()
		return len(musttest.Get(team.Tagged(tag).Domains(t.Context(), "", 1000))(t))
	}
	// Bad input: nothing changes, and what was written stays.
	for _, test := range []struct {
		form  url.Values
		wants []string
	}{
		{form("tag", "tags", "shop"), []string{"Select at least one domain.", `value="shop"`}},
		{form("tag", "all", "yes", "tags", ""), []string{"Enter a tag.", `name="all" value="yes" checked`}},
		{form("tag", "domain", "brand070.example", "tags", "a/b"), []string{"A tag consists of", `value="a/b"`, `value="brand070.example" aria-label="Select brand070.example" checked`}},
		{form("tag", "domain", "brand001.example", "tags", "shop"), []string{"no longer in the list"}}, // the filter excludes it
		{form("delete", "all", "yes", "confirm", "39"), []string{"The number does not match", "40 domains", `value="39"`}},
	} {
		w := s.post(elsewhere, pathOf(test.form), test.form)
		for _, want := range append(test.wants, "stage=none") {
			if body := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, want) {
				t.Errorf("%v: got %d without %q", test.form, w.Code, want)
			}
		}
	}
	if w := s.post(elsewhere, path, form("explode", "all", "yes")); w.Code != http.StatusBadRequest {
		t.Errorf("an unknown action: got %d, want 400", w.Code)
	}
	if tagged("shop") > 0 || tagged("") != 120 {
		t.Fatal("bad input changed something")
	}

	does := func(values url.Values, done string) {
		t.Helper()
		w := s.post(elsewhere, pathOf(values), values)
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.Contains(to, "done="+done) || !strings.Contains(to, "stage=none") {
			t.Errorf("%v: got %d to %q, want it done with the filter kept", values, w.Code, to)
		}
	}
	does(form("tag", "domain", "brand070.example", "domain", "brand071.example", "tags", "Shop, eu"), "domains-tagged")
	if got := tagged("shop"); got != 2 {
		t.Errorf("got %d domains tagged, want two", got)
	}
	does(form("tag", "all", "yes", "tags", "brands"), "domains-tagged")
	does(form("untag", "all", "yes", "tags", "eu"), "domains-tagged")
	if all, eu := tagged("brands"), tagged("eu"); all != 40 || eu != 0 {
		t.Errorf("got %d domains with the tag that was added and %d with the one that was removed, want 40 and none", all, eu)
	}
	does(form("check", "all", "yes"), "domains-checked")

	export := s.post(elsewhere, path, form("export", "domain", "brand070.example", "domain", "brand099.example"))
	if lines := strings.Split(strings.TrimSpace(export.Body.String()), "\n"); export.Header().Get("Content-Type") != "text/csv; charset=utf-8" || len(lines) != 3 || !strings.HasPrefix(lines[2], "brand099.example,") {
		t.Errorf("got the export %q, want the two domains", lines)
	}

	ask := s.post(elsewhere, path, form("delete", "domain", "brand070.example", "domain", "brand071.example")).Body.String()
	if !strings.Contains(ask, "Enter 2 to confirm") || !strings.Contains(ask, "<li>brand070.example</li>") || tagged("") != 120 {
		t.Error("got no question before domains are deleted")
	}
	does(form("delete", "domain", "brand070.example", "domain", "brand071.example", "confirm", "2"), "domains-deleted")
	if got := tagged(""); got != 118 {
		t.Errorf("got %d domains, want two deleted", got)
	}
	does(form("delete", "all", "yes", "confirm", "38"), "domains-deleted")
	left := musttest.Get(team.Domains(t.Context(), "", 1000))(t)
	if len(left) != 80 || slices.ContainsFunc(left, func(d dmarcd.Domain) bool { return d.Name >= "brand060" && d.Name < "brand100" }) {
		t.Errorf("got %d domains left, want those that the filter excludes", len(left))
	}
}
