package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// reporting sets a report domain of another organization.
const reporting = "DMARCD_REPORT_DOMAIN=reports.example"

// setup is the setup guide of a domain.
type setup struct {
	Domain        string        `json:"domain"`
	ReportAddress *string       `json:"report_address"`
	CheckedAt     *string       `json:"checked_at"`
	Records       []setupRecord `json:"records"`
}

type setupRecord struct {
	Purpose string `json:"purpose"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Value   string `json:"value"`
	Seen    *bool  `json:"seen"`
	Why     string `json:"why"`
}

// line returns the record as a line of a zone file.
func (r setupRecord) line() string {
	return fmt.Sprintf("%s. %s %q\n", r.Name, r.Type, r.Value)
}

func (s *server) setup(name string) setup {
	s.in.t.Helper()
	return readAs[setup](s.in.t, s.get("/domains/"+name+"/setup"))
}

// seen returns by purpose whether a record is published.
func (u setup) seen() map[string]string {
	words := map[string]string{}
	for _, r := range u.Records {
		words[r.Purpose] = "unknown"
		if r.Seen != nil {
			words[r.Purpose] = fmt.Sprint(*r.Seen)
		}
	}
	return words
}

// awaitSeen waits until the records of a domain are seen as wanted.
func (s *server) awaitSeen(name, what string, want map[string]string) setup {
	s.in.t.Helper()
	var got setup
	daemon.Eventually(s.in.t, fullCheckLimit, what, func() bool {
		got = s.setup(name)
		return cmp.Equal(want, got.seen())
	})
	return got
}

func TestSetupWithoutAReportDomain(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.firstCheck("example.com")
		got := s.setup("example.com")
		if got.Domain != "example.com" || got.ReportAddress != nil || got.CheckedAt == nil || len(got.Records) != 0 {
			t.Errorf("got %s want example.com without an address and records", s.get("/domains/example.com/setup").body)
		}
	})
}

func TestSetupIsSeenStepByStep(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(slices.Concat(quick, []string{reporting})...)
		in.dns.SetFault("*", resolvertest.ServFail)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		before := s.setup("example.com")
		if before.ReportAddress == nil || *before.ReportAddress != address {
			t.Errorf("got the address %v want %s", before.ReportAddress, address)
		}
		want := map[string]string{"dmarc": "unknown", "report_authorization": "unknown", "tls_rpt": "unknown"}
		if diff := cmp.Diff(want, before.seen()); diff != "" {
			t.Errorf("seen before there was an answer (-want +got):\n%s", diff)
		}
		if got := before.Records[0].Value; got != "v=DMARC1; p=none; rua=mailto:"+address {
			t.Errorf("the record to publish where none is known: got %s", got)
		}

		in.dns.SetFault("*", resolvertest.None)
		s.verify("example.com", "conclusive")
		asked := s.awaitSeen("example.com", "nothing is published yet", map[string]string{
			"dmarc": "false", "report_authorization": "unknown", "tls_rpt": "false",
		})
		for i, want := range []setupRecord{
			{Purpose: "dmarc", Name: "_dmarc.example.com", Type: "TXT", Value: noneRecord + ",mailto:" + address},
			{Purpose: "report_authorization", Name: "example.com._report._dmarc.reports.example", Type: "TXT", Value: "v=DMARC1"},
			{Purpose: "tls_rpt", Name: "_smtp._tls.example.com", Type: "TXT", Value: "v=TLSRPTv1; rua=mailto:" + address},
		} {
			got := asked.Records[i]
			if !strings.HasSuffix(got.Why, ".") {
				t.Errorf("%s: got the reason %q want a sentence", got.Purpose, got.Why)
			}
			got.Seen, got.Why = nil, ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the record to publish (-want +got):\n%s", diff)
			}
		}

		published := strings.Replace(checkedZone, noneRecord, asked.Records[0].Value, 1)
		in.setZone(published)
		s.awaitSeen("example.com", "the DMARC record is published", map[string]string{
			"dmarc": "true", "report_authorization": "false", "tls_rpt": "false",
		})
		in.setZone(published + asked.Records[1].line() + asked.Records[2].line())
		everything := map[string]string{"dmarc": "true", "report_authorization": "true", "tls_rpt": "true"}
		done := s.awaitSeen("example.com", "everything is published", everything)
		for i, r := range done.Records {
			if r.Value != asked.Records[i].Value {
				t.Errorf("%s: got the record %s want it as it was published, %s", r.Purpose, r.Value, asked.Records[i].Value)
			}
		}
		if !s.read("example.com").Active {
			t.Error("with everything published: got inactive want active")
		}

		in.setZone(published + asked.Records[2].line())
		s.awaitSeen("example.com", "the authorization is withdrawn", map[string]string{
			"dmarc": "true", "report_authorization": "false", "tls_rpt": "true",
		})
		in.setZone(published + asked.Records[2].line() + `*._report._dmarc.reports.example. TXT "v=DMARC1"` + "\n")
		s.awaitSeen("example.com", "all domains are authorized at once", everything)
	})
}

func TestSetupWithinOneOrganization(t *testing.T) {
	// The record at the parent makes both one organization (RFC 9989 §4.10.2).
	const zone = `
		_dmarc.reports.example. TXT "v=DMARC1; p=reject"
	`
	each(t, zone, func(t *testing.T, in *installation) {
		s := in.serve(slices.Concat(quick, []string{reporting})...)
		s.add("mail.reports.example")
		asked := s.awaitSeen("mail.reports.example", "nothing is published yet", map[string]string{"dmarc": "false", "tls_rpt": "false"})
		in.setZone(zone + asked.Records[0].line() + asked.Records[1].line())
		s.awaitSeen("mail.reports.example", "everything is published", map[string]string{"dmarc": "true", "tls_rpt": "true"})
	})
}
