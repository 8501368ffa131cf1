package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// proving requires a proof of domains.
const proving = "DMARCD_DOMAIN_PROOF=on"

// challenge returns what the setup of a domain says about its proof, and the challenge to publish as a
// line of a zone file, "" if none is needed.
func (s *server) challenge(name string) (proven, line string) {
	s.in.t.Helper()
	answer := s.get("/domains/" + name + "/setup")
	proven = "not required"
	if got := readAs[struct {
		Proven *bool `json:"proven"`
	}](s.in.t, answer).Proven; got != nil {
		proven = map[bool]string{true: "proven", false: "not proven"}[*got]
	}
	for _, record := range readAs[setup](s.in.t, answer).Records {
		if record.Purpose == "challenge" {
			line = record.line()
		}
	}
	return proven, line
}

// wantProof verifies a domain with a zone, and compares its proof.
func (s *server) wantProof(what, name, zone, want string) (active bool) {
	s.in.t.Helper()
	s.in.setZone(zone)
	active = s.verify(name, "conclusive").Active
	if got, _ := s.challenge(name); got != want {
		s.in.t.Errorf("%s: got %s want %s", what, got, want)
	}
	return active
}

const (
	provenRecord = `_dmarc.example.com. TXT "v=DMARC1; p=none"` + "\n"
	notProven    = "not proven"
)

func TestProofByChallenge(t *testing.T) {
	each(t, provenRecord, func(t *testing.T, in *installation) {
		s := in.serve(proving, unscheduled)
		if s.add("example.com").Active {
			t.Error("added: got active want inactive")
		}
		_, line := s.challenge("example.com")
		if !strings.HasPrefix(line, `_dmarcd-challenge.example.com. TXT "dmarcd-challenge=`) {
			t.Fatalf("got the challenge %q", line)
		}
		if got := statuses(s.upload(about("sub.example.com", "1", 5, 4).xml(), http.StatusCreated)); got != "unclaimed" {
			t.Errorf("not proven: got %s want unclaimed", got)
		}
		s.wantCounted("not proven", "example.com", 0, 0)
		text := line[strings.IndexByte(line, '"'):]
		for what, zone := range map[string]string{
			"nothing":                   "",
			"another challenge":         `_dmarcd-challenge.example.com. TXT "dmarcd-challenge=aaaaaaaaaaaaaaaaaaaaaaaaaa"`,
			"an empty challenge":        `_dmarcd-challenge.example.com. TXT "dmarcd-challenge="`,
			"at the domain itself":      `example.com. TXT ` + text,
			"at the parent":             `_dmarcd-challenge.com. TXT ` + text,
			"at the target of an alias": `_dmarcd-challenge.example.com. CNAME x.hosting.example.` + "\n" + `x.hosting.example. TXT ` + text,
			"behind a wildcard alias":   `*.example.com. CNAME x.hosting.example.` + "\n" + `x.hosting.example. TXT ` + text,
		} {
			if s.wantProof(what, "example.com", provenRecord+zone, notProven) {
				t.Errorf("%s: got active want inactive", what)
			}
		}
		if !s.wantProof("published", "example.com", provenRecord+`_dmarcd-challenge.example.com. TXT "x"`+"\n"+line, "proven") {
			t.Error("proven: got inactive want active")
		}
		s.wantCounted("what waited", "example.com", 5, 4)
		s.upload(about("example.com", "2", 10, 0).xml(), http.StatusCreated)
		s.wantCounted("proven", "example.com", 15, 4)

		// A check without an answer loses nothing.
		in.dns.SetFault("_dmarcd-challenge.example.com", resolvertest.ServFail)
		if !s.wantProof("the challenge has no answer", "example.com", provenRecord, "proven") {
			t.Error("the challenge has no answer: got inactive want active")
		}
		in.dns.SetFault("_dmarcd-challenge.example.com", resolvertest.None)
		in.dns.SetFault("*", resolvertest.ServFail)
		s.verify("example.com", "inconclusive")
		in.dns.SetFault("*", resolvertest.None)
		if got, _ := s.challenge("example.com"); got != "proven" {
			t.Errorf("no answer at all: got %s want proven", got)
		}

		// Without the challenge new records wait, and what was counted stays.
		if s.wantProof("withdrawn", "example.com", provenRecord, notProven) {
			t.Error("withdrawn: got active want inactive")
		}
		if lost := readAs[page[event]](t, s.get("/events?domain=example.com&kind=proof.lost")).Items; len(lost) != 1 {
			t.Errorf("withdrawn: got %d events, want one", len(lost))
		}
		if got := statuses(s.upload(about("example.com", "3", 100, 0).xml(), http.StatusCreated)); got != "unclaimed" {
			t.Errorf("withdrawn: got %s want unclaimed", got)
		}
		s.wantCounted("withdrawn", "example.com", 15, 4)
		s.wantProof("published again", "example.com", provenRecord+line, "proven")
		s.wantCounted("published again", "example.com", 115, 4)

		// A domain that was deleted and added again has another challenge.
		s.remove("example.com")
		s.add("example.com")
		if got, again := s.challenge("example.com"); got != notProven || again == line {
			t.Errorf("added again: got %s and the challenge %s want another one", got, again)
		}
		s.wantProof("the old challenge", "example.com", provenRecord+line, notProven)
	})
}

func TestProofByTheReportingAddress(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(proving, reporting, unscheduled)
		in.do("team", "create", "others", "--api")
		others := in.newToken("others")
		rua := map[string]string{}
		for _, name := range []string{"example.com", "mail.example.com"} {
			s.add(name)
			rua[name] = ` TXT "v=DMARC1; p=none; rua=mailto:` + in.reportAddress("default", name, reporting, proving) + `"` + "\n"
			s.send(adding(others, name)).wantStatus(t, http.StatusCreated)
			rua["others' "+name] = ` TXT "v=DMARC1; p=none; rua=mailto:` + in.reportAddress("others", name, reporting, proving) + `"` + "\n"
		}
		for _, row := range []struct {
			name, domain, zone string
			proven, active     bool
		}{
			{"its own", "mail.example.com", `_dmarc.mail.example.com.` + rua["mail.example.com"], true, true},
			{"its own at the parent", "mail.example.com", `_dmarc.example.com.` + rua["mail.example.com"], false, false},
			{"its parent's", "mail.example.com", `_dmarc.example.com.` + rua["example.com"], false, false},
			{"its parent's at its own name", "mail.example.com", `_dmarc.mail.example.com.` + rua["example.com"], false, false},
			{"its child's", "example.com", `_dmarc.example.com.` + rua["mail.example.com"], false, false},
			{"another team's", "example.com", `_dmarc.example.com.` + rua["others' example.com"], false, false},
			{"at the target of an alias", "example.com", `_dmarc.example.com. CNAME d.example.net.` + "\n" + `d.example.net.` + rua["example.com"], false, false},
			{"behind a wildcard alias", "example.com", `*.example.com. CNAME d.example.net.` + "\n" + `d.example.net.` + rua["example.com"], false, false},
			{"beside a second record", "example.com", `_dmarc.example.com. TXT "v=DMARC1; p=none"` + "\n" + `_dmarc.example.com.` + rua["example.com"], false, false},
			{"its own, once more", "example.com", `_dmarc.example.com.` + rua["example.com"], true, true},
		} {
			want := map[bool]string{true: "proven", false: notProven}[row.proven]
			if got := s.wantProof(row.name, row.domain, row.zone, want); got != row.active {
				t.Errorf("%s: got active %v want %v", row.name, got, row.active)
			}
		}
		// The proof of one team is none of another, and neither sees the other's.
		answer := s.send(request{method: http.MethodPost, path: "/domains/example.com/verify", token: others})
		if got := readAs[domain](t, answer); got.Active {
			t.Error("the other team: got active want inactive")
		}
		if _, line := s.challenge("example.com"); line != "" {
			t.Errorf("proven by its record: got the challenge %s want none", line)
		}
		before := in.dns.Asked("_dmarcd-challenge.example.com", dns.TXT)
		s.verify("example.com", "conclusive")
		if got := in.dns.Asked("_dmarcd-challenge.example.com", dns.TXT); got != before {
			t.Errorf("a record that proves the domain: got %d more queries want none", got-before)
		}
	})
}

func TestProofIsSwitched(t *testing.T) {
	each(t, provenRecord, func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		if !s.add("example.com").Active {
			t.Error("without proofs: got inactive want active")
		}
		if got, line := s.challenge("example.com"); got != "not required" || line != "" {
			t.Errorf("without proofs: got %s and the challenge %q", got, line)
		}
		if got := in.dns.Asked("_dmarcd-challenge.example.com", dns.TXT); got != 0 {
			t.Errorf("without proofs: got %d queries for the challenge want none", got)
		}
		s.Stop()
		s = in.serve(unscheduled, proving)
		s.upload(about("example.com", "1", 5, 4).xml(), http.StatusCreated)
		s.wantCounted("switched on", "example.com", 0, 0)
		if s.wantProof("switched on", "example.com", provenRecord, notProven) {
			t.Error("switched on: got active want inactive")
		}
		s.Stop()
		s = in.serve(unscheduled)
		s.awaitCounted("example.com", seenLimit, 5, 4)
		if !s.verify("example.com", "conclusive").Active {
			t.Error("switched off: got inactive want active")
		}
	})
}
