package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:d@example.com"`)
	database := "--database=" + filepath.Join(t.TempDir(), "dmarcd.db")
	run := func(args ...string) (status int, stdout, stderr string) {
		t.Helper()
		return runProgram(t, server, "", append(args, database)...)
	}
	for _, args := range [][]string{
		{"team", "create", "acme"},
		{"domain", "add", "--team", "acme", "example.com", "new.example"},
		{"domain", "verify", "--team", "acme", "example.com"},
		{"domain", "sender", "--team", "acme", "example.com", "AS64496", "yours"},
		{"domain", "sender", "--team", "acme", "example.com", "AS64496", "automatic"},
	} {
		if status, _, stderr := run(args...); status != exitDone {
			t.Fatalf("%v: status %d, %s", args, status, stderr)
		}
	}
	if status, stdout, stderr := run("advise", "--team", "acme", "example.com"); status != exitDone ||
		!strings.Contains(stdout, "monitoring") || !strings.Contains(stdout, "Connect the mailbox") {
		t.Errorf("got status %d, %s%s, want the stage and the next action", status, stdout, stderr)
	}
	if status, stdout, _ := run("advise", "--team", "acme", "new.example"); status != exitDone || !strings.Contains(stdout, "Check the DNS") {
		t.Errorf("before a check: got status %d, %s, want no conclusion", status, stdout)
	}
	if status, stdout, stderr := run("advise", "--team", "acme", "example.com", "--tag", "shop"); status == exitDone || !strings.Contains(stderr, "not both") {
		t.Errorf("a domain and a tag: got status %d, %s%s, want an error", status, stdout, stderr)
	}
	run("domain", "verify", "--team", "acme", "new.example") // it has no record, which is the status
	status, stdout, stderr := run("advise", "--team", "acme", "new.example", "--json")
	var advice wire.Advice
	if err := json.Unmarshal([]byte(stdout), &advice); status != exitDone || err != nil {
		t.Fatalf("got status %d, %v, %s", status, err, stderr)
	}
	if advice.Stage != "none" || advice.NextAction == nil || advice.NextAction.Record == nil ||
		advice.NextAction.Record.Name != "_dmarc.new.example" || !strings.HasPrefix(advice.NextAction.Record.Value, "v=DMARC1; p=none") {
		t.Errorf("got %s, want a record to publish", stdout)
	}
	for _, step := range []struct {
		args   []string
		status int
		want   string // in the list after it
	}{
		{[]string{"add", "our-crm", "Our CRM"}, exitProblem, ""},
		{[]string{"add", "our-crm", "Our CRM", "--network", "192.0.2.9/24", "--class", "yours", "--domain", "a.example,B.example"}, exitDone, "our-crm  Our CRM  yours  192.0.2.0/24         a.example,b.example\n"},
		{[]string{"add", "our-crm", "CRM", "--host", "c.example"}, exitDone, "our-crm  CRM   -                c.example  \n"},
		{[]string{"remove", "our-crm"}, exitDone, ""},
		{[]string{"remove", "our-crm"}, exitProblem, ""},
	} {
		args := append(append([]string{"sender"}, step.args...), "--team", "acme")
		if status, _, stderr := run(args...); status != step.status {
			t.Errorf("%v: got status %d want %d: %s", args, status, step.status, stderr)
		}
		if _, stdout, _ := run("sender", "list", "--team", "acme"); !strings.HasSuffix(stdout, step.want) {
			t.Errorf("after %v: got %q want it to end with %q", args, stdout, step.want)
		}
	}
	for _, args := range [][]string{
		{"advise", "--team", "acme", "other.example"},
		{"domain", "sender", "--team", "acme", "other.example", "AS64496", "yours"},
	} {
		if status, _, _ := run(args...); status != exitProblem {
			t.Errorf("%v: got status %d, want 1", args, status)
		}
	}
	if status, _, _ := run("domain", "sender", "--team", "acme", "example.com", "AS64496", "service"); status != exitFailed {
		t.Errorf("got status %d for a class that a team does not set, want 2", status)
	}
}

// mailedDay returns a report about a day with mail of a server of the domain, and of an address that signs
// as another domain.
func mailedDay(domain string, day time.Time, signer, result string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<feedback><report_metadata><org_name>receiver.example</org_name><report_id>%s</report_id><date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>
<policy_published><domain>%s</domain><p>none</p></policy_published>`, day.Format(time.DateOnly), day.Unix(), day.Unix()+86399, domain)
	for _, r := range []struct {
		address, signer, result, envelope, spf, dkim string
		count                                        int
	}{{"192.0.2.1", domain, "pass", domain, "pass", "pass", 100}, {"198.51.100.1", signer, result, "bounce.example", "fail", "fail", 50}} {
		fmt.Fprintf(&b, `<record><row><source_ip>%s</source_ip><count>%d</count><policy_evaluated><disposition>none</disposition><dkim>%s</dkim><spf>%s</spf></policy_evaluated></row>
<identifiers><envelope_from>%s</envelope_from><header_from>%s</header_from></identifiers><auth_results><dkim><domain>%s</domain><selector>s1</selector><result>%s</result></dkim>
<spf><domain>%s</domain><scope>mfrom</scope><result>%s</result></spf></auth_results></record>`, r.address, r.count, r.dkim, r.spf, r.envelope, domain, r.signer, r.result, r.envelope, r.spf)
	}
	b.WriteString("</feedback>")
	return b.String()
}

// TestDomainAnswer answers questions, accepts forwarded mail and marks a domain as parked.
func TestDomainAnswer(t *testing.T) {
	t.Parallel()
	const record = ` TXT "v=DMARC1; p=none; rua=mailto:d@example.com"` + "\n"
	server := resolvertest.Start(t, "_dmarc.a.example."+record+"_dmarc.b.example."+record+"_dmarc.forwarded.example."+record+"old.example. NS ns.old.example.\n")
	folder := t.TempDir()
	file := filepath.Join(t.TempDir(), "dmarcd.db")
	database := "--database=" + file
	run := func(want int, line string) string {
		t.Helper()
		args := strings.Fields(line)
		args = append(args[:2:2], append([]string{"--team", "acme", database}, args[2:]...)...)
		status, stdout, stderr := runProgram(t, server, "", args...)
		if status != want {
			t.Fatalf("%s: got status %d want %d: %s", line, status, want, stderr)
		}
		return stdout + stderr
	}
	if status, _, stderr := runProgram(t, server, "", "team", "create", "acme", database); status != exitDone {
		t.Fatal(stderr)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for domain, signed := range map[string][2]string{
		"a.example": {"sendgrid.net", "pass"}, "b.example": {"sendgrid.net", "pass"}, "forwarded.example": {"forwarded.example", "fail"}, "old.example": {},
	} {
		run(exitDone, "domain add "+domain)
		run(exitDone, "domain verify "+domain)
		for day := range 20 {
			if signed[0] == "" {
				break
			}
			report := filepath.Join(folder, fmt.Sprint(domain, day, ".xml"))
			musttest.Do(t, os.WriteFile(report, []byte(mailedDay(domain, today.AddDate(0, 0, -1-day), signed[0], signed[1])), 0o600))
		}
	}
	if status, _, stderr := runProgram(t, server, "", "import", "--team", "acme", database, folder); status != exitDone {
		t.Fatal(stderr)
	}
	next := func(domain string) wire.Action {
		t.Helper()
		var advice wire.Advice
		if err := json.Unmarshal([]byte(run(exitDone, "advise --json "+domain)), &advice); err != nil || advice.NextAction == nil {
			t.Fatalf("%s: got %+v, %v, want a next action", domain, advice, err)
		}
		return *advice.NextAction
	}
	if got := next("a.example"); got.ID != "check_dns" {
		t.Errorf("got %+v before the first full check, want it to come", got)
	}
	s := musttest.Get(store.Open(t.Context(), file, store.Options{}))(t)
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "acme"))(t).ID)
	for _, domain := range []string{"a.example", "b.example", "forwarded.example"} {
		musttest.Get(team.SaveCheck(t.Context(), domain, facts.Check{
			At: time.Now(), Conclusive: true, Record: "v=DMARC1; p=none; rua=mailto:d@example.com", RecordDomain: domain, Policy: "none", Usable: true, Facts: &facts.Facts{Domain: domain},
		}, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
	}
	musttest.Do(t, s.Close())
	const key = "sendgrid:rest"
	for _, tt := range []struct{ domain, answer, action string }{{"a.example", "yours", "fix_sender"}, {"b.example", "not-yours", "tighten_policy"}} {
		if got := next(tt.domain); got.ID != "answer_question" || got.Question == nil || got.Question.Key != key || got.Question.Messages != 1000 {
			t.Fatalf("%s: got %+v, want the question about SendGrid", tt.domain, got)
		}
		if page := run(exitDone, "advise "+tt.domain); !strings.Contains(page, "dmarcd domain answer --team NAME -- "+tt.domain+" "+key+" yours|not-yours") {
			t.Errorf("got %s, want how to answer", page)
		}
		run(exitProblem, "domain answer "+tt.domain+" sendgrid "+tt.answer)
		run(exitFailed, "domain answer "+tt.domain+" "+key+" maybe")
		run(exitDone, "domain answer "+tt.domain+" "+key+" "+tt.answer)
		if got := next(tt.domain); got.ID != tt.action || tt.action == "fix_sender" && (got.Sender == nil || *got.Sender != key || got.LegitimateAffected != 1000) ||
			tt.action == "tighten_policy" && (got.SpoofingStopped != 1000 || got.LegitimateAffected+got.UnknownAffected != 0) {
			t.Errorf("%s: got %+v, want %s", tt.answer, got, tt.action)
		}
		if got := run(exitProblem, "domain answer "+tt.domain+" "+key+" "+tt.answer); !strings.Contains(got, "no open question") {
			t.Errorf("got %s, want that the question is closed", got)
		}
	}
	for _, step := range []struct{ line, domain, action, record string }{
		{"", "forwarded.example", "accept_forwarding", ""},
		{"domain forwarding forwarded.example 1000", "forwarded.example", "tighten_policy", "p=quarantine"},
		{"domain forwarding forwarded.example 0", "forwarded.example", "accept_forwarding", ""},
		{"", "old.example", "publish_record", "p=none"},
		{"domain parked old.example yes", "old.example", "lock_parked", "p=reject"},
		{"domain parked old.example no", "old.example", "publish_record", "p=none"},
	} {
		if step.line != "" {
			run(exitDone, step.line)
		}
		got := next(step.domain)
		if got.ID != step.action || (got.Record != nil) != (step.record != "") || got.Record != nil && !strings.Contains(got.Record.Value, "; "+step.record) {
			t.Errorf("after %q: got %+v with %+v, want %s with %q", step.line, got, got.Record, step.action, step.record)
		}
	}
}
