package e2e_test

import (
	"net/http"
	"testing"
)

func TestUnclaimedReportCountsOnceTheDomainIsAdded(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)

		if got := statuses(s.upload(about("later.example", "1", 5, 4).xml(), http.StatusCreated)); got != "unclaimed" {
			t.Errorf("uploaded: got %s want unclaimed", got)
		}
		s.mail(address, mailWith(about("later.example", "2", 50, 40).xml()))
		s.mail(address, mailWith(about("example.com", "3", 1, 0).xml()))
		s.awaitCounted("", seenLimit, 1, 0)
		if got := s.reports("?unclaimed=true"); len(got) != 2 {
			t.Errorf("got %d unclaimed reports want 2", len(got))
		}
		s.get("/reports/later.example").wantStatus(t, http.StatusNotFound)

		s.add("later.example")
		s.wantCounted("the domain that was added", "later.example", 55, 44)
		s.wantCounted("the team", "", 56, 44)
		if got := s.reports("?unclaimed=true"); len(got) != 0 {
			t.Errorf("got %d unclaimed reports want none", len(got))
		}
		if got := statuses(s.upload(about("later.example", "1", 5, 4).xml(), http.StatusOK)); got != "duplicate" {
			t.Errorf("uploaded again: got %s want duplicate", got)
		}
		s.wantCounted("uploaded again", "later.example", 55, 44)
	})
}

func TestRecordsCountForTheNearestDomain(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		for _, name := range []string{"example.com", "mail.example.com", "example.net"} {
			s.add(name)
		}
		report := about("example.com", "1", 1, 0)
		report.rows = append(report.rows,
			feedbackRow{"news.example.com", 2, true},
			feedbackRow{"mail.example.com", 4, true},
			feedbackRow{"a.mail.example.com", 8, false},
			feedbackRow{"example.net", 16, true},
			feedbackRow{"outsider.example", 32, true}, // attributed to the policy domain
		)
		s.upload(report.xml(), http.StatusCreated)
		s.wantCounted("with what has no domain of its own", "example.com", 1+2+32, 0)
		s.wantCounted("a subdomain of the team's", "mail.example.com", 4, 8)
		s.wantCounted("another domain", "example.net", 16, 0)
		s.wantCounted("the team", "", 55, 8)
	})
}

func TestDeletedDomainStartsAtZero(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		s.add("example.net")
		report := about("example.com", "1", 7, 3).xml()
		s.upload(report, http.StatusCreated)
		s.upload(about("example.net", "1", 1, 1).xml(), http.StatusCreated)
		s.wantCounted("before", "", 8, 4)

		s.remove("example.com")
		s.wantCounted("deleted", "", 1, 1)
		if got := s.reports("?domain=example.com"); len(got) != 0 {
			t.Errorf("deleted: got %d reports want none", len(got))
		}
		s.add("example.com")
		s.wantCounted("added again", "example.com", 0, 0)
		s.wantCounted("added again", "", 1, 1)
		if got := statuses(s.upload(report, http.StatusCreated)); got != "stored" {
			t.Errorf("the report once more: got %s want stored", got)
		}
		s.wantCounted("the report once more", "example.com", 7, 3)
		s.wantCounted("the report once more", "", 8, 4)
	})
}

func TestNewVersionReplacesTheOld(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		first, second := about("example.com", "1", 7, 3).xml(), about("example.com", "<1>", 100, 0).xml()
		rows := []struct {
			name, content  string
			status         int
			want           string
			compliant, not int64
		}{
			{"the first", first, http.StatusCreated, "stored", 7, 3},
			{"the second", second, http.StatusCreated, "replaced", 100, 0},
			{"the first again", first, http.StatusOK, "duplicate", 100, 0},
			{"the second again", gzipped(second), http.StatusOK, "duplicate", 100, 0},
		}
		for _, row := range rows {
			if got := statuses(s.upload(row.content, row.status)); got != row.want {
				t.Errorf("%s: got %s want %s", row.name, got, row.want)
			}
			s.wantCounted(row.name, "example.com", row.compliant, row.not)
			s.wantCounted(row.name, "", row.compliant, row.not)
		}
	})
}

func TestReportsOfDaysAreSummedUp(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		for i, day := range []string{"2026-09-30", "2026-10-01", "2026-10-30"} {
			report := about("example.com", day, []int64{1, 10, 100}[i], []int64{2, 20, 200}[i])
			report.day = day
			s.upload(report.xml(), http.StatusCreated)
		}
		for query, want := range map[string]string{
			"":                                summary(111, 222),
			"?from=2026-10-01":                summary(110, 220),
			"?to=2026-10-01":                  summary(11, 22),
			"?from=2026-10-01&to=2026-10-01":  summary(10, 20),
			"?from=2026-10-02&to=2026-10-29":  summary(0, 0),
			"?from=2026-09-30&to=2026-10-30&": summary(111, 222),
		} {
			for _, path := range []string{"/reports", "/reports/example.com"} {
				s.get(path+query).wantBody(t, want)
			}
		}
		type daily struct {
			Day          string `json:"day"`
			Compliant    int64  `json:"compliant"`
			NonCompliant int64  `json:"non_compliant"`
		}
		var compliant, nonCompliant int64
		for _, d := range all[daily](s, "/insights/daily?domain=example.com", 2) {
			compliant, nonCompliant = compliant+d.Compliant, nonCompliant+d.NonCompliant
		}
		if compliant != 111 || nonCompliant != 222 {
			t.Errorf("the days: got %d and %d want 111 and 222", compliant, nonCompliant)
		}
	})
}
