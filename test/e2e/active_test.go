package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

func TestActiveByTheRecord(t *testing.T) {
	const name = "mail.example.com"
	rows := []struct {
		name string
		zone string
		want findings
	}{
		{"NXDOMAIN", ``, findings{}},
		{"its own record", `_dmarc.mail.example.com. TXT "v=DMARC1; p=none"`, findings{true, "v=DMARC1; p=none", "none"}},
		{"the name is there, a record is not", `mail.example.com. A 192.0.2.1
			_dmarc.mail.example.com. A 192.0.2.1`, findings{}},
		{"policy in upper case", `_dmarc.mail.example.com. TXT "v=DMARC1; P=Quarantine"`, findings{true, "v=DMARC1; P=Quarantine", "quarantine"}},
		{"two records", `_dmarc.mail.example.com. TXT "v=DMARC1; p=none"
			_dmarc.mail.example.com. TXT "v=DMARC1; p=reject"`, findings{}},
		{"other text beside it", `_dmarc.mail.example.com. TXT "v=spf1 -all"
			_dmarc.mail.example.com. TXT "v=DMARC1; p=reject"`, findings{true, "v=DMARC1; p=reject", "reject"}},
		{"other text alone", `_dmarc.mail.example.com. TXT "v=dmarc1; p=reject"`, findings{}},
		{"in two strings", `_dmarc.mail.example.com. TXT "v=DMARC1; p=re" "ject; adkim=s"`, findings{true, "v=DMARC1; p=reject; adkim=s", "reject"}},
		{"behind an alias", `_dmarc.mail.example.com. CNAME elsewhere.example.net.
			elsewhere.example.net. TXT "v=DMARC1; p=reject"`, findings{true, "v=DMARC1; p=reject", "reject"}},
		{"unusable without a policy", `_dmarc.mail.example.com. TXT "v=DMARC1"`, findings{false, "v=DMARC1", ""}},
		{"unusable by its policy", `_dmarc.mail.example.com. TXT "v=DMARC1; p=maybe"`, findings{false, "v=DMARC1; p=maybe", ""}},
		{"its parent's", `_dmarc.example.com. TXT "v=DMARC1; p=reject; sp=none"`, findings{true, "v=DMARC1; p=reject; sp=none", "reject"}},
		{"its own before its parent's", `_dmarc.example.com. TXT "v=DMARC1; p=reject"
			_dmarc.mail.example.com. TXT "v=DMARC1; p=none"`, findings{true, "v=DMARC1; p=none", "none"}},
		{"two of its own, one of its parent", `_dmarc.example.com. TXT "v=DMARC1; p=reject"
			_dmarc.mail.example.com. TXT "v=DMARC1; p=none"
			_dmarc.mail.example.com. TXT "v=DMARC1; p=quarantine"`, findings{false, "v=DMARC1; p=reject", "reject"}},
		{"its parent has two", `_dmarc.example.com. TXT "v=DMARC1; p=reject"
			_dmarc.example.com. TXT "v=DMARC1; p=none"`, findings{}},
		{"its parent's is unusable", `_dmarc.example.com. TXT "v=DMARC1"`, findings{false, "v=DMARC1", ""}},
	}
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		s.add(name)
		for _, row := range rows {
			in.setZone(row.zone)
			if got := s.verify(name, "conclusive").findings(); got != row.want {
				t.Errorf("%s: got %v want %v", row.name, got, row.want)
			}
			if got := s.read(name).findings(); got != row.want {
				t.Errorf("%s: a later GET: got %v want %v", row.name, got, row.want)
			}
			in.dns.SetFault("*", resolvertest.ServFail)
			if got := s.verify(name, "inconclusive").findings(); got != row.want {
				t.Errorf("%s: kept by an inconclusive check: got %v want %v", row.name, got, row.want)
			}
			in.dns.SetFault("*", resolvertest.None)
		}
		// A creation has the same result.
		for i, row := range rows {
			in.setZone(row.zone)
			s.remove(name)
			if got := s.add(name).findings(); got != row.want {
				t.Errorf("creation %d, %s: got %v want %v", i, row.name, got, row.want)
			}
		}
	})
}

func TestActiveByTheReportingAddress(t *testing.T) {
	const setting = "DMARCD_REPORT_DOMAIN=reports.example"
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(setting)
		in.do("team", "create", "others", "--api")
		others := in.newToken("others")
		address := map[string]string{}
		for _, name := range []string{"example.com", "mail.example.com", "news.example.com"} {
			s.add(name)
			address[name] = in.reportAddress("default", name, setting)
			s.send(adding(others, name)).wantStatus(t, http.StatusCreated)
			address["others' "+name] = in.reportAddress("others", name, setting)
		}
		seen := map[string]bool{}
		for whose, a := range address {
			if !strings.HasSuffix(a, "@reports.example") || seen[a] {
				t.Errorf("the reporting address of %s: got %s want one of its own at reports.example", whose, a)
			}
			seen[a] = true
		}
		rows := []struct {
			name   string
			domain string
			owner  string // the name with the record
			rua    string
			want   bool
		}{
			{"its own", "mail.example.com", "mail.example.com", "mailto:" + address["mail.example.com"], true},
			{"its own among others", "mail.example.com", "mail.example.com", "mailto:a@example.net,mailto:" + address["mail.example.com"] + ",mailto:b@example.net", true},
			{"its own with a size", "mail.example.com", "mail.example.com", "mailto:" + address["mail.example.com"] + "!10m", true},
			{"its own in upper case", "mail.example.com", "mail.example.com", "MAILTO:" + strings.Replace(address["mail.example.com"], "@reports.example", "@Reports.EXAMPLE", 1), true},
			{"its parent's", "mail.example.com", "mail.example.com", "mailto:" + address["example.com"], true},
			{"its parent's, by discovery", "mail.example.com", "example.com", "mailto:" + address["example.com"], true},
			{"its own, by discovery", "mail.example.com", "example.com", "mailto:" + address["mail.example.com"], true},
			{"no rua", "mail.example.com", "mail.example.com", "", false},
			{"elsewhere", "mail.example.com", "mail.example.com", "mailto:dmarc@example.com", false},
			{"an unknown address here", "mail.example.com", "mail.example.com", "mailto:unknown@reports.example", false},
			{"its address at another domain", "mail.example.com", "mail.example.com", "mailto:" + strings.Replace(address["mail.example.com"], "reports.example", "reports.example.net", 1), false},
			{"its sibling's", "mail.example.com", "mail.example.com", "mailto:" + address["news.example.com"], false},
			{"its child's", "example.com", "example.com", "mailto:" + address["mail.example.com"], false},
			{"another team's for the same name", "mail.example.com", "mail.example.com", "mailto:" + address["others' mail.example.com"], false},
			{"another team's for its parent", "mail.example.com", "mail.example.com", "mailto:" + address["others' example.com"], false},
		}
		for _, row := range rows {
			record := "v=DMARC1; p=reject"
			if row.rua != "" {
				record += "; rua=" + row.rua
			}
			in.setZone(`_dmarc.` + row.owner + `. TXT "` + record + `"`)
			if got, want := s.verify(row.domain, "conclusive").findings(), (findings{row.want, record, "reject"}); got != want {
				t.Errorf("%s: got %v want %v", row.name, got, want)
			}
		}

		// A parent domain counts only while the team has it.
		in.setZone(`_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:` + address["example.com"] + `"`)
		if !s.verify("mail.example.com", "conclusive").Active {
			t.Error("with the parent in the team: got inactive want active")
		}
		s.remove("example.com")
		if s.verify("mail.example.com", "conclusive").Active {
			t.Error("after the parent was deleted: got active want inactive")
		}
		s.add("example.com")
		if again := in.reportAddress("default", "example.com", setting); again != address["example.com"] {
			t.Errorf("a domain that was added again: got the reporting address %s want %s, as before", again, address["example.com"])
		}
	})
}

func TestUpdatedAtMovesWithVisibleFields(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve()
		before := s.add("example.com")
		nextSecond := func() {
			now := time.Now().Unix()
			daemon.Eventually(t, time.Minute, "the next second", func() bool { return time.Now().Unix() > now })
		}
		nextSecond()
		if diff := cmp.Diff(before, s.verify("example.com", "conclusive")); diff != "" {
			t.Errorf("a check that finds nothing new (-before +after):\n%s", diff)
		}
		in.dns.SetFault("*", resolvertest.ServFail)
		if diff := cmp.Diff(before, s.verify("example.com", "inconclusive")); diff != "" {
			t.Errorf("an inconclusive check (-before +after):\n%s", diff)
		}
		in.dns.SetFault("*", resolvertest.None)
		in.setZone(strings.Replace(exampleZone, "p=reject", "p=none", 1))
		changed := s.verify("example.com", "conclusive")
		if changed.UpdatedAt <= before.UpdatedAt || changed.CreatedAt != before.CreatedAt {
			t.Errorf("a new record: updated at %s want later than %s", changed.UpdatedAt, before.UpdatedAt)
		}
		nextSecond()
		in.do("domain", "purpose", "--team", "default", "example.com", "business")
		declared := s.read("example.com")
		if declared.UpdatedAt <= changed.UpdatedAt {
			t.Errorf("a purpose: updated at %s want later than %s", declared.UpdatedAt, changed.UpdatedAt)
		}
		nextSecond()
		in.do("domain", "purpose", "--team", "default", "example.com", "business")
		if got := s.read("example.com").UpdatedAt; got != declared.UpdatedAt {
			t.Errorf("the same purpose again: updated at %s want %s", got, declared.UpdatedAt)
		}
	})
}
