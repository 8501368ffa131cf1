package insight_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// checkSteps checks what is true of the steps of every domain: those before the one to take now
// are done or wait for it, and where there is none, all are done.
func checkSteps(t *testing.T, advice *dmarcd.Advice) {
	t.Helper()
	done, now, later := 0, 0, 0
	for i := range advice.Steps {
		step := &advice.Steps[i]
		switch step.State {
		case dmarcd.StepDone:
			done++
		case dmarcd.StepNow:
			if now++; advice.Next() != &step.Action || later > 0 {
				t.Errorf("got the next action %+v after %d later steps, want the step %+v", advice.Next(), later, step)
			}
		case dmarcd.StepLater:
			later++
		default:
			t.Errorf("got the state %q", step.State)
		}
		if step.ID == "" || step.Title == "" || step.Reason == "" {
			t.Errorf("got the step %+v without an ID, title or reason", step)
		}
		if (step.ID == dmarcd.ActionAnswer) != (step.Question != nil) {
			t.Errorf("got the step %+v with the question %+v", step, step.Question)
		}
		if q := step.Question; q != nil && (q.Key != step.Sender || q.Name == "" || q.Messages <= 0 || q.Addresses <= 0 || len(q.Evidence) == 0 || !strings.HasSuffix(q.Text, "?")) {
			t.Errorf("got the question %+v", q)
		}
	}
	all := len(advice.Steps)
	if open := min(all-done, 1); now != open || (open == 0) != (advice.Next() == nil) {
		t.Errorf("got %d steps to take now, %d later and %d done of %d, want %d", now, later, done, all, open)
	}
	if want := done * 100 / max(all, 1); advice.Done() != want {
		t.Errorf("got %d %% done, want %d", advice.Done(), want)
	}
}

// checkHarmless checks when a stricter policy may be proposed.
func (s scenario) checkHarmless(t *testing.T, got dmarcd.Action, simulated *insight.Simulation) {
	t.Helper()
	if got.LegitimateAffected*200 > simulated.Legitimate {
		t.Errorf("a stricter policy: got %d of %d legitimate messages affected, want 0.5 %% at most", got.LegitimateAffected, simulated.Legitimate)
	}
	if got.ForwarderAffected*50 > simulated.Forwarder && got.ForwarderAffected*4 > s.accepted*5 {
		t.Errorf("a stricter policy: got %d of %d forwarded messages affected, want 2 %% at most, or accepted", got.ForwarderAffected, simulated.Forwarder)
	}
	for _, sender := range simulated.Senders {
		if q := sender.Question; q != nil && q.Messages*100 > simulated.Legitimate {
			t.Errorf("a stricter policy: got the question %+v open, want it answered first", q)
		}
	}
}

// stepsOf returns the steps of a history for people.
func stepsOf(t *testing.T, s scenario, published insight.Published) (advice dmarcd.Advice, lines []string) {
	t.Helper()
	first, last := dmarcd.Day(20000), dmarcd.Day(20029)
	m := musttest.Get(scenarioService(t).Read(t.Context(), s.reports(), "example.com", dmarcd.Days{From: &first, To: &last}))(t)
	defer m.Close()
	s.facts.Domain = "example.com"
	about := insight.Domain{Name: "example.com", Facts: &s.facts, Classes: s.team}
	advice = musttest.Get(m.Advise(t.Context(), insight.Situation{Domain: about, Published: published}))(t)[0]
	checkSteps(t, &advice)
	for _, step := range advice.Steps {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", step.State, step.ID, step.Sender)))
	}
	return advice, lines
}

// usesRecord is a domain with a record, whose reports come here.
func usesRecord(record string) insight.Published {
	return insight.Published{Record: record, Own: record != "", Base: record, Addressed: true, ReportsHere: true}
}

// TestSteps checks the way to reject of some domains.
func TestSteps(t *testing.T) {
	t.Parallel()
	const quarantine, reject = "v=DMARC1; p=quarantine; rua=mailto:d@example.com", "v=DMARC1; p=reject; rua=mailto:d@example.com"
	elsewhere := usesRecord(watching)
	elsewhere.ReportsHere = false
	unconnected := insight.Published{Record: watching, Own: true, Base: watching}
	parked := usesRecord(watching)
	parked.Parked = true
	locked := usesRecord(reject)
	locked.Parked = true
	for _, test := range []struct {
		name      string
		scenario  scenario
		published insight.Published
		want      []string
		done      int
	}{
		{"not checked", scenario{}, insight.Published{Unchecked: true}, []string{"now check_dns"}, 0},
		{
			"no record",
			scenario{},
			insight.Published{Base: watching, Addressed: true},
			[]string{"now publish_record", "later receive_reports", "later wait_for_reports", "later tighten_policy", "later tighten_policy"},
			0,
		},
		{
			"reports go elsewhere",
			scenario{},
			elsewhere,
			[]string{"done publish_record", "now receive_reports", "later wait_for_reports", "later tighten_policy", "later tighten_policy"},
			20,
		},
		{
			"no mailbox",
			scenario{},
			unconnected,
			[]string{"done publish_record", "now receive_reports", "later wait_for_reports", "later tighten_policy", "later tighten_policy"},
			20,
		},
		{
			"a few reports",
			scenario{mail: []flow{{source: "192.0.2.1", days: 13, perDay: 100, spf: "example.com pass"}}},
			usesRecord(watching),
			[]string{"done publish_record", "done receive_reports", "now wait_for_reports", "done fix_sender", "later tighten_policy", "later tighten_policy"},
			50,
		},
		{
			"100 messages on 14 days",
			scenario{mail: []flow{{source: "192.0.2.1", days: 13, perDay: 7, spf: "example.com pass"}, {source: "192.0.2.1", first: 13, days: 1, perDay: 9, spf: "example.com pass"}}},
			usesRecord(watching),
			[]string{"done publish_record", "done receive_reports", "done fix_sender", "now tighten_policy", "later tighten_policy"},
			60,
		},
		{
			"99 messages",
			scenario{mail: []flow{{source: "192.0.2.1", days: 13, perDay: 7, spf: "example.com pass"}, {source: "192.0.2.1", first: 13, days: 1, perDay: 8, spf: "example.com pass"}}},
			usesRecord(watching),
			[]string{"done publish_record", "done receive_reports", "now wait_for_reports", "done fix_sender", "later tighten_policy", "later tighten_policy"},
			50,
		},
		{
			"enforced",
			scenario{mail: append(botnet(5), office(100))},
			usesRecord(reject),
			[]string{"done publish_record", "done receive_reports", "done fix_sender", "done tighten_policy", "done tighten_policy"},
			100,
		},
		{"parked", scenario{mail: botnet(5)}, parked, []string{"now lock_parked"}, 0},
		{"parked and locked", scenario{mail: botnet(5)}, locked, []string{"done lock_parked"}, 100},
		{
			"quarantine",
			scenario{mail: []flow{office(100)}},
			usesRecord(quarantine),
			[]string{"done publish_record", "done receive_reports", "done fix_sender", "done tighten_policy", "now tighten_policy"},
			80,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			advice, got := stepsOf(t, test.scenario, test.published)
			if diff := cmp.Diff(test.want, got); diff != "" || advice.Done() != test.done {
				t.Errorf("got %d %%, want %d; -want +got\n%s", advice.Done(), test.done, diff)
			}
		})
	}
}

// inTrouble is a company whose SPF record lost its office, that may or may not use a shop, and
// whose mail a list changes.
func inTrouble() scenario {
	return scenario{
		facts: facts.Facts{SPF: facts.SPF{Status: "permerror", Lookups: 12}},
		mail: []flow{
			{source: "192.0.2.17", first: -60, days: 60, perDay: 160, spf: "example.com pass"},
			{source: "192.0.2.17", perDay: 160, spf: "example.com permerror"},
			{source: "198.51.100.16", perDay: 540, signed: "selector1 example.com pass", spf: "example.com permerror"},
			{source: "198.51.100.77", perDay: 75, spf: "shop.example pass"},
			signedBy("203.0.113.5", "selector1", 9),
			silent("203.0.113.66", 45),
		},
	}
}

// TestStepsOfADomainInTrouble has three open steps: a sender to fix, a question, and the policy.
func TestStepsOfADomainInTrouble(t *testing.T) {
	t.Parallel()
	s := inTrouble()
	published := usesRecord("v=DMARC1; p=quarantine; rua=mailto:d@example.com")
	advice, lines := stepsOf(t, s, published)
	var open []string
	for _, line := range lines {
		if state, step, _ := strings.Cut(line, " "); state != "done" {
			open = append(open, step)
		}
	}
	if len(open) != 3 || open[2] != "tighten_policy" {
		t.Fatalf("got the steps %q, want three open ones, of which the policy is the last", lines)
	}
	slices.Sort(open)
	if want := []string{"answer_question AS64497:as:shop.example", "fix_sender AS64496:yours", "tighten_policy"}; !slices.Equal(open, want) || advice.Done() != 50 {
		t.Errorf("got %q with %d %% done, want %q with 50", open, advice.Done(), want)
	}
	for _, step := range advice.Steps {
		if step.State == dmarcd.StepDone {
			continue
		}
		if want := (dmarcd.Effect{LegitimateAffected: 160 * 30, UnknownAffected: 75 * 30, SpoofingStopped: 45 * 30}); step.Effect != want {
			t.Errorf("%s: got the effect %+v, want %+v", step.ID, step.Effect, want)
		}
		if q := step.Question; q != nil && (q.Name != "Rented Servers (as shop.example)" || q.Messages != 75*30 || q.Addresses != 1) {
			t.Errorf("got the question %+v", q)
		}
	}
	// Each step that is taken brings the next one.
	s.team = map[string]dmarcd.Class{"AS64497:as:shop.example": dmarcd.ClassSpoofing}
	if _, lines := stepsOf(t, s, published); !slices.Contains(lines, "now fix_sender AS64496:yours") {
		t.Errorf("after the answer: got %q, want the sender to fix", lines)
	}
	s.facts.SPF = facts.SPF{Status: "ok"}
	s.mail[1].spf = "example.com pass"
	if _, lines := stepsOf(t, s, published); !slices.Contains(lines, "now tighten_policy") {
		t.Errorf("after the fix: got %q, want the policy", lines)
	}
}

// TestBlockedForwardedMail has forwarded mail that receivers blocked: the conclusion is about what
// they did, the step about what the policy asks for. One of them says what helps, however little it is.
func TestBlockedForwardedMail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, record     string
		broken           int64
		conclusion, step string
	}{
		{"2 %", "p=reject", 2, "Enforced. In 30 days, receivers blocked 60 messages from forwarders and mailing lists.", ""},
		{
			"3 %", "p=reject", 3, "Enforced. In 30 days, receivers blocked 90 messages from forwarders and mailing lists.",
			"Decide about forwarded mail: The policy asks receivers to block 90 of 3,030 forwarded messages.",
		},
		{"quarantine", "p=quarantine", 2, "Partly protected. In 30 days, receivers blocked 60 messages from forwarders and mailing lists.", ""},
		{
			"nothing was blocked", "p=none", 3, "Not protected: the policy only monitors.",
			"Decide about forwarded mail: p=quarantine would ask receivers to block 90 of 3,030 forwarded messages.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			changed := broken("203.0.113.5", "s1", test.broken)
			changed.blocked = test.record != "p=none"
			published := usesRecord("v=DMARC1; " + test.record + "; rua=mailto:d@example.com")
			advice, _ := stepsOf(t, scenario{mail: []flow{office(100), signedBy("203.0.113.5", "s1", 98), changed}}, published)
			if waysOut := "ask the operators of lists to rewrite the From address"; !strings.HasPrefix(advice.Conclusion, test.conclusion) || strings.Contains(advice.Conclusion, waysOut) != (changed.blocked && test.step == "") { // once
				t.Errorf("got the conclusion %q, want %q, and the ways out if mail was blocked and no step says them", advice.Conclusion, test.conclusion)
			}
			title := ""
			for _, step := range advice.Steps {
				if step.ID == dmarcd.ActionAccept {
					title = step.Title + ": " + step.Reason
				}
			}
			if !strings.HasPrefix(title, test.step) || (title == "") != (test.step == "") {
				t.Errorf("got the step %q, want %q", title, test.step)
			}
		})
	}
}

// TestNoQuestionBeforeTheFirstCheck has mail of a service that the SPF record may include, and a
// server that it may list: nothing is asked or advised about them before the record is known.
func TestNoQuestionBeforeTheFirstCheck(t *testing.T) {
	t.Parallel()
	first, last := dmarcd.Day(20000), dmarcd.Day(20029)
	s := scenario{mail: []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s sendgrid.net pass", spf: "sendgrid.net pass"}, silent("192.0.2.9", 20)}}
	m := musttest.Get(scenarioService(t).Read(t.Context(), s.reports(), "example.com", dmarcd.Days{From: &first, To: &last}))(t)
	defer m.Close()
	about := insight.Domain{Name: "example.com"}
	advice := musttest.Get(m.Advise(t.Context(), insight.Situation{Domain: about, Published: usesRecord(watching)}))(t)[0]
	checkSteps(t, &advice)
	var got []string
	for _, step := range advice.Steps {
		got = append(got, fmt.Sprintf("%s %s", step.State, step.ID))
	}
	if want := []string{"done publish_record", "done receive_reports", "now check_dns"}; !slices.Equal(got, want) {
		t.Errorf("got the steps %q, want %q", got, want)
	}
	if !strings.Contains(advice.Conclusion, "The first check of its DNS is still to come.") || strings.Contains(advice.Conclusion, "spoofed") {
		t.Errorf("got the conclusion %q, want that the first check is still to come, and nothing that follows from it", advice.Conclusion)
	}
	for _, sender := range musttest.Get(m.Simulate(t.Context(), insight.Trial{Domain: about, Policy: insight.Policy{Record: dmarc.Record{P: dmarc.Reject}}}))(t)[0].Senders {
		if sender.Question != nil {
			t.Errorf("got the question %+v, want none", sender.Question)
		}
	}
}

// TestPolicyInRecord wants the record of a simulation to say what was simulated: test mode and
// a percentage stay where they are part of the policy.
func TestPolicyInRecord(t *testing.T) {
	t.Parallel()
	const record = "v=DMARC1; p=none; t=y; pct=50; rua=mailto:a@example.com"
	for _, row := range []struct {
		policy, want string
	}{
		{"v=DMARC1; p=reject; t=y; pct=50", "v=DMARC1; p=reject; t=y; pct=50; rua=mailto:a@example.com"},
		{"v=DMARC1; p=reject", "v=DMARC1; p=reject; rua=mailto:a@example.com"},
	} {
		policy, _ := dmarc.Parse(row.policy)
		if got := (insight.Policy{Record: policy}).In(record); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
