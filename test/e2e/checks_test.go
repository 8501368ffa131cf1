package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

const (
	// fullCheckLimit is generous: a full check follows within seconds.
	fullCheckLimit = 10 * time.Minute
	// repeatedCheckLimit is for a full check requested shortly after another one: there
	// is at most one per minute.
	repeatedCheckLimit = time.Minute + fullCheckLimit
)

// quick repeats full checks every second or so: one check in 24 is full.
var quick = []string{"DMARCD_SCHEDULE_INTERVAL=50ms"}

// checkedZone is the zone of a domain with p=none and without errors.
const checkedZone = `
	example.com. SOA ns.example.com. hostmaster.example.com. 1 3600 600 86400 60
	example.com. NS ns.example.com.
	example.com. MX 10 mx.example.com.
	mx.example.com. A 192.0.2.1
	example.com. TXT "v=spf1 mx -all"
	_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:dmarc@example.com"
	default._domainkey.example.com. TXT "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
`

// The records of checkedZone and their variants.
const (
	noneRecord   = "v=DMARC1; p=none; rua=mailto:dmarc@example.com"
	rejectRecord = "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"
	dkimRecord   = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	// secondSPF makes the SPF record an error.
	secondSPF = "\n\t" + `example.com. TXT "v=spf1 -all"` + "\n"
)

var rejectZone = strings.Replace(checkedZone, noneRecord, rejectRecord, 1)

// storedCheck is the part of a check that the tests read. The OpenAPI document covers the
// rest.
type storedCheck struct {
	ID        string     `json:"id"`
	FirstAt   string     `json:"first_at"`
	Domain    string     `json:"domain"`
	CheckedAt string     `json:"checked_at"`
	Grade     string     `json:"grade"`
	DMARC     dmarcFacts `json:"dmarc"`
	SPF       struct {
		Status  string `json:"status"`
		Record  string `json:"record"`
		Lookups int    `json:"lookups"`
	} `json:"spf"`
	Findings []struct {
		ID    string `json:"id"`
		Level string `json:"level"`
	} `json:"findings"`
	NextStep *struct {
		ID     string `json:"id"`
		Record string `json:"record"`
	} `json:"next_step"`
	Changes []change `json:"changes"`
}

type dmarcFacts struct {
	Status       string   `json:"status"`
	Record       string   `json:"record"`
	RecordDomain string   `json:"record_domain"`
	Organization string   `json:"organizational_domain"`
	Policy       string   `json:"policy"`
	Applied      string   `json:"effective_policy"`
	Queries      []string `json:"queries"`
}

type change struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// findingIDs returns the ids and levels of the findings, in order.
func (k storedCheck) findingIDs() []string {
	ids := []string{}
	for _, f := range k.Findings {
		ids = append(ids, f.Level+" "+f.ID)
	}
	return ids
}

// page is a page of a list.
type page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// readAs decodes the body of a 200 answer.
func readAs[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if a.status != http.StatusOK {
		t.Fatalf("got status %d want 200: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// checked waits for a full check of a domain that meets a condition, and returns it.
func (s *server) checked(name, what string, limit time.Duration, wanted func(storedCheck) bool) storedCheck {
	s.in.t.Helper()
	var latest storedCheck
	daemon.Eventually(s.in.t, limit, what, func() bool {
		a := s.get("/domains/" + name + "/checks/latest")
		if a.status == http.StatusNotFound {
			return false
		}
		latest = readAs[storedCheck](s.in.t, a)
		return latest.ID != "" && wanted(latest) // without an id, DNS has not answered yet
	})
	return latest
}

// firstCheck waits for the first full check of a domain.
func (s *server) firstCheck(name string) storedCheck {
	s.in.t.Helper()
	return s.checked(name, "the first full check of "+name, fullCheckLimit, func(storedCheck) bool { return true })
}

// all reads all pages of a list.
func all[T any](s *server, path string, limit int) []T {
	s.in.t.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	path += fmt.Sprintf("%slimit=%d", join, limit)
	items := []T{}
	after := ""
	for range 1000 {
		p := readAs[page[T]](s.in.t, s.get(path+after))
		if len(p.Items) > limit {
			s.in.t.Fatalf("%s: got a page of %d", path, len(p.Items))
		}
		items = append(items, p.Items...)
		if p.Next == nil {
			return items
		}
		if len(p.Items) < limit {
			s.in.t.Errorf("%s: got a page of %d with another behind it, want it full", path, len(p.Items))
		}
		after = "&after=" + *p.Next
	}
	s.in.t.Fatalf("%s: the list does not end", path)
	return nil
}

func TestLatestCheckOfAKnownZone(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		got := s.firstCheck("EXAMPLE.com.")
		if got.Domain != "example.com" || got.Grade != "C" {
			t.Errorf("got %s with grade %s want example.com with C", got.Domain, got.Grade)
		}
		wantDMARC := dmarcFacts{
			Status: "ok", Record: noneRecord, RecordDomain: "example.com", Organization: "example.com",
			Policy: "none", Applied: "none", Queries: []string{"_dmarc.example.com", "_dmarc.com"},
		}
		if diff := cmp.Diff(wantDMARC, got.DMARC); diff != "" {
			t.Errorf("dmarc (-want +got):\n%s", diff)
		}
		if got.SPF.Status != "ok" || got.SPF.Record != "v=spf1 mx -all" || got.SPF.Lookups != 1 {
			t.Errorf("spf: got %+v want one lookup of v=spf1 mx -all", got.SPF)
		}
		wantFindings := []string{
			"warning dmarc.policy_none", "info mta_sts.missing", "info tls_rpt.missing", "info dnssec.unsigned",
			"good spf.valid", "good dkim.found",
		}
		if diff := cmp.Diff(wantFindings, got.findingIDs()); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
		wantRecord := `_dmarc.example.com. TXT "v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"`
		if got.NextStep == nil || got.NextStep.ID != "dmarc.policy_none" || got.NextStep.Record != wantRecord {
			t.Errorf("next step: got %+v want dmarc.policy_none with the record %s", got.NextStep, wantRecord)
		}
		if len(got.Changes) != 0 || got.FirstAt != got.CheckedAt {
			t.Errorf("got %d changes from %s to %s want a first check", len(got.Changes), got.FirstAt, got.CheckedAt)
		}
		history := readAs[page[storedCheck]](t, s.get("/domains/example.com/checks"))
		if diff := cmp.Diff(page[storedCheck]{Items: []storedCheck{got}}, history); diff != "" {
			t.Errorf("history (-the latest check alone +got):\n%s", diff)
		}
		if got := readAs[page[event]](t, s.get("/events")); len(got.Items) != 0 || got.Next != nil {
			t.Errorf("events of a first check: got %+v want none", got)
		}
	})
}

func TestNoCheckWithoutAnAnswer(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		in.dns.SetFault("*", resolvertest.ServFail)
		s.add("example.com")
		latest := s.get("/domains/example.com/checks/latest")
		if got := readAs[storedCheck](t, latest); got.ID != "" || got.DMARC.Status != "inconclusive" || got.SPF.Status != "inconclusive" {
			t.Errorf("got %s want a check without an entry that is inconclusive", latest.body)
		}
		if missing := s.get("/domains/unknown.example/checks/latest"); missing.text() == latest.text() {
			t.Errorf("a domain without a check is told like one that is not there: %s", latest.body)
		}
		s.get("/domains/example.com/checks").wantBody(t, `{"items":[],"next":null}`)

		in.dns.SetFault("*", resolvertest.None)
		s.verify("example.com", "conclusive")
		if got := s.firstCheck("example.com").DMARC.Policy; got != "none" {
			t.Errorf("after a verification: got the policy %q want none", got)
		}
	})
}

func TestEqualChecksAreOneEntry(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(quick...)
		s.add("example.com")
		first := s.firstCheck("example.com")
		again := s.checked("example.com", "a later check finds the same", fullCheckLimit, func(k storedCheck) bool {
			return k.CheckedAt > first.CheckedAt
		})
		if again.ID != first.ID || again.FirstAt != first.FirstAt {
			t.Errorf("got %s from %s to %s want %s from %s", again.ID, again.FirstAt, again.CheckedAt, first.ID, first.FirstAt)
		}
		if got := all[storedCheck](s, "/domains/example.com/checks", 10); len(got) != 1 {
			t.Errorf("got %d entries want 1", len(got))
		}
	})
}

func TestHistoryGrowsWithChanges(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(quick...)
		s.add("example.com")
		entries := []storedCheck{s.firstCheck("example.com")}
		for _, row := range []struct {
			name string
			zone string
			want []change
		}{
			{"a stricter policy", rejectZone, []change{
				{"dmarc.effective_policy", "none", "reject"},
				{"dmarc.legacy.policy", "none", "reject"},
				{"dmarc.policy", "none", "reject"},
				{"dmarc.record", noneRecord, rejectRecord},
				{"findings.dmarc.policy_none", "warning", ""},
				{"findings.dmarc.reject", "", "good"},
				{"grade", "C", "A"},
			}},
			{"another mail server", strings.ReplaceAll(rejectZone, "192.0.2.1", "192.0.2.2"), []change{
				{"mx.mx.example.com.addresses.192.0.2.1", "192.0.2.1", ""},
				{"mx.mx.example.com.addresses.192.0.2.2", "", "192.0.2.2"},
			}},
			{"the mail server of before, and a key in testing", strings.Replace(rejectZone, "v=DKIM1;", "v=DKIM1; t=y;", 1), []change{
				{"dkim.default.record", dkimRecord, strings.Replace(dkimRecord, "v=DKIM1;", "v=DKIM1; t=y;", 1)},
				{"dkim.default.testing", "false", "true"},
				{"findings.dkim.testing", "", "warning"},
				{"grade", "A", "B"},
				{"mx.mx.example.com.addresses.192.0.2.1", "", "192.0.2.1"},
				{"mx.mx.example.com.addresses.192.0.2.2", "192.0.2.2", ""},
			}},
		} {
			in.setZone(row.zone)
			last := entries[len(entries)-1]
			next := s.checked("example.com", row.name, fullCheckLimit, func(k storedCheck) bool { return k.ID != last.ID })
			if diff := cmp.Diff(row.want, next.Changes); diff != "" {
				t.Errorf("%s: changes (-want +got):\n%s", row.name, diff)
			}
			entries = append(entries, next)
		}
		var want []string
		for _, entry := range slices.Backward(entries) {
			want = append(want, entry.ID)
		}
		for _, limit := range []int{1, 2, 3, 4, 5, 1000} {
			var got []string
			for _, entry := range all[storedCheck](s, "/domains/example.com/checks", limit) {
				got = append(got, entry.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("limit %d: history (-want +got):\n%s", limit, diff)
			}
		}
	})
}

// TestVerificationIsFollowedByAFullCheck changes the zone right after a full check, with
// the default schedule, so that only the verification can cause the next one.
func TestVerificationIsFollowedByAFullCheck(t *testing.T) {
	each(t, checkedZone+secondSPF, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		first := s.firstCheck("example.com")
		if !slices.Contains(first.findingIDs(), "error spf.multiple_records") {
			t.Fatalf("findings: got %v want spf.multiple_records", first.findingIDs())
		}
		in.setZone(rejectZone)
		s.verify("example.com", "conclusive")
		want := []happening{
			{Kind: "policy.strengthened", Before: "none", After: "reject"},
			{Kind: "record.changed", Before: noneRecord, After: rejectRecord},
		}
		if diff := cmp.Diff(want, s.happened("example.com")); diff != "" {
			t.Errorf("events of the verification (-want +got):\n%s", diff)
		}
		next := s.checked("example.com", "a full check after the verification", repeatedCheckLimit, func(k storedCheck) bool {
			return k.ID != first.ID
		})
		if next.DMARC.Policy != "reject" || next.SPF.Status != "ok" || next.Grade != "A" {
			t.Errorf("got the policy %q, SPF %q and grade %s want reject, ok and A", next.DMARC.Policy, next.SPF.Status, next.Grade)
		}
		if !slices.Contains(next.Changes, change{"spf.status", "multiple", "ok"}) {
			t.Errorf("changes: got %v want the fixed SPF among them", next.Changes)
		}
		resolved := 0
		for _, h := range s.happened("example.com") {
			if h.Kind == "finding.resolved" && h.Before == "spf.multiple_records" && h.After == "" {
				resolved++
			}
		}
		if resolved != 1 {
			t.Errorf("events: got %v want one resolved finding", s.happened("example.com"))
		}
	})
}

func TestFixedFindingThatTheFactsDoNotShow(t *testing.T) {
	without := strings.Replace(checkedZone, "dmarc@example.com", "dmarc@mail.example.com", 1) + "\n" + `mail.example.com. TXT "x"` + "\n"
	each(t, without, func(t *testing.T, in *installation) {
		s := in.serve(quick...)
		s.add("example.com")
		if got := s.firstCheck("example.com").findingIDs(); !slices.Contains(got, "error dmarc.destination_without_mail") {
			t.Fatalf("got %v", got)
		}
		in.setZone(without + "mail.example.com. MX 10 mx.example.com.\n")
		s.checked("example.com", "the finding goes", fullCheckLimit, func(k storedCheck) bool {
			return !slices.Contains(k.findingIDs(), "error dmarc.destination_without_mail")
		})
		s.awaitEvents("example.com", 1)
	})
}

func TestSetupSeesOnlyTheAddressInRUA(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(reporting)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		for _, tags := range []string{"rua=mailto:" + address + ".net", "ruf=mailto:" + address, "x=mailto:" + address} {
			in.setZone(`_dmarc.example.com. TXT "v=DMARC1; p=none; ` + tags + `"`)
			s.verify("example.com", "conclusive")
			if got := s.setup("example.com").seen()["dmarc"]; got != "false" {
				t.Errorf("%s: got seen %s want false, as active is", tags, got)
			}
		}
	})
}

func TestSetupPreservesThePolicyOfASubdomain(t *testing.T) {
	each(t, `_dmarc.example.com. TXT "v=DMARC1; p=reject; sp=none"`, func(t *testing.T, in *installation) {
		s := in.serve(reporting)
		s.add("sub.example.com")
		if got := s.setup("sub.example.com").Records[0].Value; !strings.Contains(got, "p=none") || strings.Contains(got, "p=reject") {
			t.Errorf("got %s want a record that keeps the policy none", got)
		}
	})
}

func cursorWithMoreBehindIt(t *testing.T, s *server) {
	s.get("/events?after="+base64.RawURLEncoding.EncodeToString([]byte("1794714845.5junk"))).wantStatus(t, http.StatusUnprocessableEntity)
}
