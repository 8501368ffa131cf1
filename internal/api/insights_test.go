package api_test

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// listed is what the tests read of an item of a list.
type listed struct {
	ID       string
	ReportID *string `json:"report_id"`
	Reason   string
}

// ids returns the reporters' ids of a page of reports.
func ids(p page[listed]) []string {
	got := []string{}
	for _, report := range p.Items {
		got = append(got, orNull(report.ReportID))
	}
	return got
}

func TestReportsAreListed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		s.stored(aggregateXML("a", "example.com", firstDay, row{"example.com", "none", "pass", 1}))
		s.stored(aggregateXML("b", "example.org", firstDay+1, row{"example.org", "none", "pass", 1}))
		s.stored(bytes.Replace(aggregateXML("c", "example.net", firstDay+2, row{"example.net", "none", "pass", 1}), []byte("Receiver.example"), []byte("Other"), 1))
		s.stored(tlsJSON("d", "example.com"))
		s.stored(bytes.TrimPrefix(aggregateXML("e", "example.com", firstDay+4), []byte(`<?xml version="1.0" encoding="UTF-8"?>`)))
		for _, tt := range []struct {
			name, query string
			want        []string
		}{
			{"all", "", []string{"e", "d", "c", "b", "a"}},
			{"about a domain", "?domain=EXAMPLE.com.", []string{"e", "d", "a"}},
			{"about an unknown domain", "?domain=unknown.example", []string{}},
			{"about an unclaimed name", "?domain=example.net", []string{}},
			{"of a reporter, in any case", "?organization=receiver.EXAMPLE", []string{"e", "b", "a"}},
			{"of a kind", "?kind=tls", []string{"d"}},
			{"with a quirk", "?quirk=declaration_missing", []string{"e"}},
			{"with a part of the name of a quirk", "?quirk=declaration", []string{}},
			{"from a day", "?from=2024-10-05&organization=receiver.example", []string{"e", "b"}},
			{"to a day", "?to=2024-10-04", []string{"a"}},
			{"by the reporter's id", "?report_id=b", []string{"b"}},
			{"unclaimed", "?unclaimed=true", []string{"c"}},
			{"unclaimed or not", "?unclaimed=false", []string{"e", "d", "c", "b", "a"}},
			{"of unknown origin", "?genuine=unknown&kind=tls", []string{"d"}},
			{"forged", "?genuine=no", []string{}},
		} {
			got := read[page[listed]](t, s.get("/insights/reports"+tt.query), http.StatusOK)
			if diff := cmp.Diff(tt.want, ids(got)); diff != "" || got.Next != nil {
				t.Errorf("%s: next is %s (-want +got):\n%s", tt.name, orNull(got.Next), diff)
			}
		}
		if got, want := paged(s, "/insights/reports", 2), []string{"e", "d", "c", "b", "a"}; !slices.Equal(got, want) {
			t.Errorf("page by page: got %v, want %v", got, want)
		}
		for _, query := range []string{
			"limit=0", "limit=1001", "after=x", "after=MTIz", "domain=-", "kind=other", "genuine=maybe", "unclaimed=1",
			"from=2024-13-01", "from=2024-10-05&to=2024-10-04", "organization=%00", "quirk=%ff", "report_id=%00", "organization=%zz", "colour=red",
		} {
			if got := s.get("/insights/reports?" + query); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422: %s", query, got.status, got.body)
			}
		}
	})
}

// paged reads a list of reports page by page.
func paged(s *service, path string, limit int) []string {
	s.t.Helper()
	var got []string
	for query := "?limit=" + itoa(limit); ; {
		part := read[page[listed]](s.t, s.get(path+query), http.StatusOK)
		if len(part.Items) > limit {
			s.t.Fatalf("got %d items on a page of %d", len(part.Items), limit)
		}
		got = append(got, ids(part)...)
		if part.Next == nil {
			return got
		}
		query = "?limit=" + itoa(limit) + "&after=" + url.QueryEscape(*part.Next)
	}
}

func TestReportIsReadInFull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com")
		rows := make([]row, 1003)
		for i := range rows {
			rows[i] = row{"example.com", "none", "pass", i}
		}
		id := s.stored(aggregateXML("1", "example.com", firstDay, rows...))
		type record struct {
			ForDomain   *string `json:"for_domain"`
			Count       int
			DKIMResults []struct{ Selector string } `json:"dkim_results"`
		}
		type full struct {
			ID         string
			Report     struct{ Kind, Domain, P string }
			RecordList []record `json:"record_list"`
			Next       *string
		}
		report := read[full](t, s.get("/insights/reports/"+id), http.StatusOK)
		if report.ID != id || report.Report.Kind != "aggregate" || report.Report.P != "none" || len(report.RecordList) != 1000 || report.Next == nil {
			t.Fatalf("got %s, %+v, %d records, next %s", report.ID, report.Report, len(report.RecordList), orNull(report.Next))
		}
		records := report.RecordList
		for next := report.Next; next != nil; {
			part := read[page[record]](t, s.get("/insights/reports/"+id+"/records?limit=2&after="+*next), http.StatusOK)
			records, next = append(records, part.Items...), part.Next
		}
		for i, r := range records {
			if r.Count != i || orNull(r.ForDomain) != "example.com" || len(r.DKIMResults) != 1 {
				t.Fatalf("record %d: got %+v, want the count %d for example.com", i, r, i)
			}
		}
		if len(records) != len(rows) {
			t.Errorf("got %d records, want %d", len(records), len(rows))
		}
		for _, after := range []string{"x", "MS54", "OTk5OTk5OTk5OTkuMQ", "LTEuLTE"} {
			if got := s.get("/insights/reports/" + id + "/records?after=" + after); got.status != http.StatusUnprocessableEntity {
				t.Errorf("after=%s: got status %d, want 422", after, got.status)
			}
		}

		unclaimed := s.stored(aggregateXML("3", "example.net", firstDay, row{"example.net", "none", "pass", 1}))
		if got := read[full](t, s.get("/insights/reports/"+unclaimed), http.StatusOK).RecordList; len(got) != 1 || got[0].ForDomain != nil {
			t.Errorf("got %+v, want a record for no domain", got)
		}
		tls := read[full](t, s.get("/insights/reports/"+s.stored(tlsJSON("2", "example.com"))), http.StatusOK)
		if tls.Report.Kind != "tls" || len(tls.RecordList) != 0 || tls.Next != nil {
			t.Errorf("got %+v, want a TLS report without records", tls)
		}
		storetest.All(t, func(ctx context.Context) (bool, error) {
			return s.store.Expire(ctx, store.Retention{Records: time.Hour})
		})
		old := s.get("/insights/reports/" + tls.ID)
		if body := read[map[string]any](t, old, http.StatusOK); body["report"] != nil || body["kind"] != "tls" {
			t.Errorf("past its retention: got %s, want a report that is null", old.body)
		}
	})
}

func TestOriginalIsWhatWasSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com")
		rows := make([]row, 3000) // more than one part
		for i := range rows {
			rows[i] = row{"example.com", "none", "pass", i * 7919}
		}
		report, text := aggregateXML("1", "example.com", firstDay, rows...), []byte("<script>hello</script>")
		id := s.stored(report)
		s.upload(text)
		rejected := read[page[listed]](t, s.get("/insights/rejected"), http.StatusOK).Items[0].ID
		for _, tt := range []struct {
			id, path string
			want     []byte
		}{{id, "/insights/reports/" + id + "/original", report}, {rejected, "/insights/rejected/" + rejected + "/original", text}} {
			got := s.get(tt.path)
			if got.status != http.StatusOK || !bytes.Equal(got.body, tt.want) {
				t.Errorf("%s: got status %d and %d bytes, want the %d that were sent", tt.path, got.status, len(got.body), len(tt.want))
			}
			head := s.send(s.request(http.MethodHead, tt.path, nil))
			for _, header := range []http.Header{got.header, head.header} {
				want := http.Header{
					"Content-Type": {"application/octet-stream"}, "Content-Length": {itoa(len(tt.want))}, "Cache-Control": {"private, no-cache"},
					"Content-Disposition": {`attachment; filename="` + tt.id + `"`}, "X-Content-Type-Options": {"nosniff"},
				}
				if diff := cmp.Diff(want, header); diff != "" {
					t.Errorf("%s: headers (-want +got):\n%s", tt.path, diff)
				}
			}
		}

		for _, table := range []string{"original_chunks", "originals"} {
			musttest.Get(db.SQL(t).ExecContext(t.Context(), "DELETE FROM "+table))(t)
		}
		for _, r := range []*http.Request{
			s.request(http.MethodGet, "/insights/reports/"+id+"/original", nil),
			s.request(http.MethodGet, "/insights/rejected/"+rejected+"/original", nil),
			s.request(http.MethodPost, "/insights/rejected/"+rejected+"/retry", nil),
		} {
			if message := read[receipts](t, s.send(r), http.StatusNotFound).Message; !strings.Contains(message, "has been deleted") {
				t.Errorf("%s %s: got %q, want it to say that the original is gone", r.Method, r.URL.Path, message)
			}
		}
		if got := read[page[struct{ Size int }]](t, s.get("/insights/rejected"), http.StatusOK); got.Items[0].Size != 0 {
			t.Errorf("got size %d of what is gone, want 0", got.Items[0].Size)
		}
	})
}

// TestRejectedIsReadAgain retries a report that was rejected because of a limit, after the limit
// was raised.
func TestRejectedIsReadAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		opened := db.Open(t, store.Options{})
		s := newService(t, opened, func(o *options) { o.Acceptor.Limits.Aggregate.Records = 1 })
		s.add("example.com")
		body := aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 2}, row{"example.com", "none", "pass", 3})
		if got := s.upload(body); got.status != http.StatusUnprocessableEntity {
			t.Fatalf("got status %d, want 422: %s", got.status, got.body)
		}
		s.upload([]byte("hello"))
		list := read[page[listed]](t, s.get("/insights/rejected"), http.StatusOK).Items
		if len(list) != 2 || !strings.Contains(list[1].Reason, "record") {
			t.Fatalf("got %+v, want the text and the report", list)
		}
		retry := func(id string) answer {
			return s.send(s.request(http.MethodPost, "/insights/rejected/"+id+"/retry", nil))
		}
		read[receipts](t, retry(list[1].ID), http.StatusUnprocessableEntity)

		options := newOptions(t, opened, tokenOf(t, opened, s.id))
		var err error
		if s.api, err = api.New(options.Options); err != nil {
			t.Fatal(err)
		}
		if got := read[receipts](t, retry(list[1].ID), http.StatusCreated).Items; len(got) != 1 || got[0].Status != "stored" || got[0].Messages != 5 {
			t.Errorf("got %+v, want the report stored", got)
		}
		read[receipts](t, retry(list[1].ID), http.StatusNotFound)
		read[receipts](t, retry(list[0].ID), http.StatusUnprocessableEntity)
		left := read[page[listed]](t, s.get("/insights/rejected"), http.StatusOK).Items
		if len(left) != 1 || left[0].ID != list[0].ID {
			t.Errorf("got %+v, want the text alone", left)
		}
		if got, want := strings.TrimSpace(string(s.get("/reports").body)), `{"total":5,"compliant":5,"non_compliant":0}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestDailyClasses plants mail of one address that passes for both domains, and of one that never does.
func TestDailyClasses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		s.stored(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 5}, row{"example.com", "none", "fail", 20}))
		s.stored(aggregateXML("2", "example.org", firstDay+1, row{"example.org", "none", "pass", 7}))
		type classes struct {
			YoursPassing int `json:"yours_passing"`
			YoursFailing int `json:"yours_failing"`
			Forwarded    int
			Spoofed      int
			Unknown      int
		}
		type daily struct {
			Day     string
			Total   int
			Classes *classes
		}
		first, last := daily{"2024-10-04", 25, &classes{YoursPassing: 5, Spoofed: 20}}, daily{"2024-10-05", 7, &classes{YoursPassing: 7}}
		for query, want := range map[string][]daily{
			"classes=true":                     {first, last},
			"classes=true&domain=example.com":  {first},
			"classes=false&domain=example.org": {{"2024-10-05", 7, nil}},
			"classes=true&domain=no.example":   {},
		} {
			for _, limit := range []int{1, 100} {
				got := []daily{}
				for after := ""; ; {
					part := read[page[daily]](t, s.get("/insights/daily?from=2024-10-01&to=2024-10-30&limit="+itoa(limit)+"&"+query+after), http.StatusOK)
					got = append(got, part.Items...)
					if part.Next == nil {
						break
					}
					after = "&after=" + *part.Next
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %d a page (-want +got):\n%s", query, limit, diff)
				}
			}
		}
	})
}

func TestDailyCounters(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		s.stored(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 5}, row{"example.com", "reject", "fail", 2}, row{"example.com", "quarantine", "fail", 1}))
		s.stored(aggregateXML("2", "example.org", firstDay, row{"example.org", "none", "fail", 10}))
		s.stored(aggregateXML("3", "example.com", firstDay+2, row{"example.com", "none", "pass", 4}))
		type daily struct {
			Day                                                      string
			Domain                                                   *string
			Total, Compliant, Delivered, Quarantined, Rejected, DKIM int
			NonCompliant                                             int `json:"non_compliant"`
			SPF                                                      int
		}
		com, org := "example.com", "example.org"
		comFirst := daily{Day: "2024-10-04", Domain: &com, Total: 8, Compliant: 5, NonCompliant: 3, Delivered: 5, Quarantined: 1, Rejected: 2, DKIM: 5}
		comLast := daily{Day: "2024-10-06", Domain: &com, Total: 4, Compliant: 4, Delivered: 4, DKIM: 4}
		orgFirst := daily{Day: "2024-10-04", Domain: &org, Total: 10, NonCompliant: 10, Delivered: 10}
		teamFirst := daily{Day: "2024-10-04", Total: 18, Compliant: 5, NonCompliant: 13, Delivered: 15, Quarantined: 1, Rejected: 2, DKIM: 5}
		teamLast := comLast
		teamLast.Domain = nil
		for _, tt := range []struct {
			name, query string
			want        []daily
		}{
			{"of the team", "", []daily{teamFirst, teamLast}},
			{"of each domain", "&by=domain", []daily{comFirst, comLast, orgFirst}},
			{"of one domain", "&domain=example.com", []daily{comFirst, comLast}},
			{"of one domain, by domain", "&domain=example.com&by=domain", []daily{comFirst, comLast}},
			{"of an unknown domain", "&domain=unknown.example", []daily{}},
			{"from a day", "&from=2024-10-05", []daily{teamLast}},
			{"to a day", "&to=2024-10-05&by=domain", []daily{comFirst, orgFirst}},
			{"of days without messages", "&from=2024-10-05&to=2024-10-05", []daily{}},
		} {
			for _, limit := range []int{1, 100} {
				got := []daily{}
				query := "?limit=" + itoa(limit) + tt.query
				for after := ""; ; {
					part := read[page[daily]](t, s.get("/insights/daily"+query+after), http.StatusOK)
					got = append(got, part.Items...)
					if part.Next == nil {
						break
					}
					after = "&after=" + *part.Next
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s, %d a page (-want +got):\n%s", tt.name, limit, diff)
				}
			}
		}
		for _, query := range []string{
			"limit=0", "after=x", "after=OTk5OTk5OTk5OTku", "after=MS4A", "by=source", "domain=-", "from=x", "from=2024-10-05&to=2024-10-04",
			"classes=yes", "classes=true", "classes=true&from=2024-10-04", "classes=true&from=2022-10-04&to=2024-10-04", "classes=true&by=domain&from=2024-10-04&to=2024-10-05",
		} {
			if got := s.get("/insights/daily?" + query); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422: %s", query, got.status, got.body)
			}
		}
	})
}
