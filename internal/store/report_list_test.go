package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// listed stores reports for the tests of lists.
func listed(in *inbox) {
	in.add("a.example", "b.example")
	mixed := storetest.Aggregate("mixed", "a.example", 100, storetest.Passed("a.example", 1), storetest.Passed("b.example", 2))
	plain := storetest.Aggregate("plain", "a.example", 101, storetest.Passed("a.example", 1))
	plain.Organization = "Big Mail Inc."
	waiting := storetest.Aggregate("waiting", "strange.example", 102, storetest.Passed("strange.example", 4))
	waiting.Quirks = []dmarcd.Quirk{{Name: "version-missing-too", Count: 2}, {Name: "range_long", Count: 1}}
	half := storetest.Aggregate("half", "strange.example", 103, storetest.Passed("strange.example", 4), storetest.Passed("b.example", 8))
	half.Quirks, half.Organization = nil, "ÖPOST"
	tls := storetest.Aggregate("tls", "b.example", 103)
	tls.Kind, tls.EachRecord, tls.Shares = dmarcd.KindTLS, nil, []dmarcd.Share{{From: "b.example", Records: 1}}
	gone := storetest.Aggregate("gone", "gone.example", 100, storetest.Passed("gone.example", 1))
	in.add("gone.example")
	in.deliver(genuinely(dmarcd.GenuineYes, mixed), genuinely(dmarcd.GenuineNo, plain), genuinely("", waiting),
		genuinely(dmarcd.GenuineUnknown, half), genuinely(dmarcd.GenuineYes, tls), genuinely(dmarcd.GenuineYes, gone))
	in.delete("gone.example")
}

func TestReportFilters(t *testing.T) {
	day := func(d dmarcd.Day) *dmarcd.Day { return &d }
	rows := []struct {
		name   string
		filter store.ReportFilter
		want   string
	}{
		{"none", store.ReportFilter{}, "tls half waiting plain mixed"},
		{"a domain", store.ReportFilter{Domain: "a.example"}, "plain mixed"},
		{"a domain of some records", store.ReportFilter{Domain: "b.example"}, "tls half mixed"},
		{"a domain that is deleted", store.ReportFilter{Domain: "gone.example"}, ""},
		{"a domain that is not the team's", store.ReportFilter{Domain: "strange.example"}, ""},
		{"an organization in any case", store.ReportFilter{Organization: "BIG mail inc."}, "plain"},
		{"half of an organization", store.ReportFilter{Organization: "Big Mail"}, ""},
		{"a part of an organization", store.ReportFilter{OrganizationPart: "g MAIL"}, "plain"},
		{"a part of an organization that is not ASCII", store.ReportFilter{OrganizationPart: "Öp"}, "half"},
		{"the reporter's id", store.ReportFilter{ExternalID: "half"}, "half"},
		{"the reporter's id in another case", store.ReportFilter{ExternalID: "Half"}, ""},
		{"a kind", store.ReportFilter{Kind: dmarcd.KindTLS}, "tls"},
		{"another kind", store.ReportFilter{Kind: dmarcd.KindAggregate}, "half waiting plain mixed"},
		{"a kind of which there is none", store.ReportFilter{Kind: dmarcd.KindFailure}, ""},
		{"a quirk", store.ReportFilter{Quirk: "version_missing"}, "tls plain mixed"},
		{"a quirk whose name begins alike", store.ReportFilter{Quirk: "version-missing-too"}, "waiting"},
		{"half of a quirk's name", store.ReportFilter{Quirk: "long"}, ""},
		{"genuine", store.ReportFilter{Genuine: dmarcd.GenuineYes}, "tls mixed"},
		{"not genuine", store.ReportFilter{Genuine: dmarcd.GenuineNo}, "plain"},
		{"unknown", store.ReportFilter{Genuine: dmarcd.GenuineUnknown}, "half waiting"},
		{"from a day", store.ReportFilter{Days: dmarcd.Days{From: day(102)}}, "tls half waiting"},
		{"until a day", store.ReportFilter{Days: dmarcd.Days{To: day(101)}}, "plain mixed"},
		{"one day", store.ReportFilter{Days: dmarcd.Days{From: day(101), To: day(101)}}, "plain"},
		{"unclaimed", store.ReportFilter{Unclaimed: true}, "half waiting"},
		{"unclaimed beside a domain", store.ReportFilter{Unclaimed: true, Domain: "b.example"}, "half"},
		{"a domain in some days", store.ReportFilter{Domain: "b.example", Days: dmarcd.Days{To: day(102)}}, "mixed"},
		{"all of them", store.ReportFilter{
			Domain: "b.example", Organization: "receiver.example", ExternalID: "mixed", Kind: dmarcd.KindAggregate, Quirk: "version_missing",
			Genuine: dmarcd.GenuineYes, Days: dmarcd.Days{From: day(100), To: day(100)},
		}, "mixed"},
		{"all of them, and unclaimed", store.ReportFilter{
			Domain: "b.example", Organization: "receiver.example", ExternalID: "mixed", Kind: dmarcd.KindAggregate, Quirk: "version_missing",
			Genuine: dmarcd.GenuineYes, Days: dmarcd.Days{From: day(100), To: day(100)}, Unclaimed: true,
		}, ""},
	}
	eachInbox(t, func(in *inbox) {
		listed(in)
		for _, row := range rows {
			for limit := 1; limit < 7; limit++ {
				var got []string
				var before dmarcd.ReportID
				for {
					page := musttest.Get(in.team.Reports(in.Context(), row.filter, before, limit))(in)
					if len(page) == 0 {
						break
					}
					for _, r := range page {
						got = append(got, r.ExternalID)
					}
					before = page[len(page)-1].ID
				}
				if got := strings.Join(got, " "); got != row.want {
					in.Errorf("%s, %d a page: got %q, want %q", row.name, limit, got, row.want)
				}
			}
		}
	})
}

func TestReportIsStoredAsItCame(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		passing, failing := storetest.Passed(ours, 5), storetest.Failed("sub."+ours, 2)
		failing.EnvelopeTo, failing.Disagrees = "there.example", true
		sent := report("1", ours, passing, failing, storetest.Passed(ours, 0))
		sent.Detail.Aggregate = &dmarcd.AggregateDetail{Bytes: 7, Report: aggregate.Report{Version: "1.0"}}
		sent.Document = shape.EncodeDetail(sent.Detail)
		sent.Damage, sent.Member = "The archive is cut off.", "a.zip/1.xml"
		sent.Quirks = []dmarcd.Quirk{{Name: "one", Count: 1}, {Name: "two", Count: 1 << 40}}
		delivery := storetest.Delivery(sent)
		delivery.Intake = dmarcd.IntakeIMAP
		delivery.Authentication = dmarcd.Authentication{Genuine: dmarcd.GenuineNo, From: "f.example", Domain: "d.example", DKIM: "fail", SPF: "none", DMARC: "fail", Reason: "The signature is wrong."}
		receipt := in.deliver(delivery)[0]

		got := musttest.Get(in.team.Report(in.Context(), receipt.ID))(in)
		want := sent.Report
		want.ID, want.Intake, want.Authentication, want.ReceivedAt = receipt.ID, delivery.Intake, delivery.Authentication, in.clock.Now()
		want.State = dmarcd.ReportCounted
		if diff := cmp.Diff(want, got); diff != "" {
			in.Errorf("the report (-want +got):\n%s", diff)
		}
		records, _, err := in.team.Records(in.Context(), receipt.ID, store.RecordCursor{}, 10)
		in.must(err)
		wantRecords := []store.Record{
			{Cursor: store.RecordCursor{Share: 0, N: 0, Begun: true}, Domain: ours, Record: passing},
			{Cursor: store.RecordCursor{Share: 0, N: 2, Begun: true}, Domain: ours, Record: storetest.Passed(ours, 0)},
			{Cursor: store.RecordCursor{Share: 1, N: 1, Begun: true}, Domain: ours, Record: failing},
		}
		if diff := cmp.Diff(wantRecords, records, cmpopts.IgnoreFields(aggregate.Record{}, "Addr")); diff != "" {
			in.Errorf("the records (-want +got):\n%s", diff)
		}
		for _, id := range []dmarcd.ReportID{0, -1, receipt.ID + 1} {
			if _, err := in.team.Report(in.Context(), id); !errors.Is(err, dmarcd.ErrNotFound) {
				in.Errorf("the report %d: got %v, want ErrNotFound", id, err)
			}
		}
	})
}

func TestReportOfADeletedDomainIsGone(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		whole := in.receive(report("1", ours, storetest.Passed(ours, 5)))[0].ID
		mixed := in.receive(report("2", ours, storetest.Passed(ours, 5), storetest.Passed("other.example", 1)))[0].ID
		in.delete(ours)
		if _, err := in.team.Report(in.Context(), whole); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("the report: got %v, want ErrNotFound", err)
		}
		if _, err := in.team.ReportOriginal(in.Context(), whole); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("its original: got %v, want ErrNotFound", err)
		}
		for id, want := range map[dmarcd.ReportID]int{whole: 0, mixed: 1} {
			records, _, err := in.team.Records(in.Context(), id, store.RecordCursor{}, 10)
			in.must(err)
			if len(records) != want {
				in.Errorf("got %d records, want %d", len(records), want)
			}
		}
	})
}

func TestRecordsByPage(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		var records []aggregate.Record
		for i := range 50 {
			record := storetest.Passed([]string{ours, "sub." + ours, "other.example", "", "strange.example"}[i*i%5], int64(i))
			records = append(records, record)
		}
		id := in.receive(report("1", ours, records...))[0].ID
		for _, limit := range []int{1, 2, 7, 49, 50, 51} {
			var got []int64
			var last store.RecordCursor
			for {
				page, _, err := in.team.Records(in.Context(), id, last, limit)
				in.must(err)
				if len(page) == 0 {
					break
				}
				for _, record := range page {
					if c := record.Cursor; last.Begun && (c.Share < last.Share || c.Share == last.Share && c.N <= last.N) {
						in.Errorf("%d a page: %+v comes after %+v", limit, c, last)
					}
					last = record.Cursor
					got = append(got, record.Count)
				}
			}
			slices.Sort(got)
			if len(got) != 50 || len(slices.Compact(got)) != 50 {
				in.Errorf("%d a page: got %d records, want 50 different ones", limit, len(got))
			}
		}
	})
}

func TestRejectedByPage(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		var want []string
		for i := range 5 {
			delivery := storetest.Delivery()
			delivery.Name, delivery.Original = fmt.Sprint("file ", i), storetest.Original([]byte{byte(i)})
			delivery.Rejections = []dmarcd.Rejection{{Kind: dmarcd.KindAggregate, Member: "m", Reason: fmt.Sprint("reason ", i)}}
			in.deliver(delivery)
			in.clock.advance(time.Second)
			want = append(want, fmt.Sprint("reason ", i))
		}
		slices.Reverse(want)
		var got []string
		var before dmarcd.RejectedID
		for {
			page := musttest.Get(in.team.Rejected(in.Context(), before, 2))(in)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				got = append(got, r.Reason)
				one := musttest.Get(in.team.RejectedByID(in.Context(), r.ID))(in)
				if diff := cmp.Diff(r, one); diff != "" {
					in.Errorf("alone (-listed +read):\n%s", diff)
				}
			}
			before = page[len(page)-1].ID
		}
		if diff := cmp.Diff(want, got); diff != "" {
			in.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestHugeReport stores a report of 20,000 records in little memory.
func TestHugeReport(t *testing.T) {
	if testing.Short() {
		return
	}
	const records, mostMemory = 20_000, 64 << 20
	huge := report("1", ours)
	huge.Records, huge.Messages = records, records
	huge.Shares = []dmarcd.Share{{From: ours, Records: records}}
	huge.Shares[0].Compliant, huge.Shares[0].DKIM = records, records
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		before, peak := heap(), uint64(0)
		measured := huge
		measured.EachRecord = func(yield func(aggregate.Record, error) bool) {
			for i := range records {
				if i%20_000 == 0 {
					peak = max(peak, heap())
				}
				record := storetest.Passed(ours, 1)
				record.Source = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
				if !yield(record, nil) {
					return
				}
			}
		}
		in.wantReceived("stored", measured)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(records)})
		if peak > before+mostMemory { // other tests use some of it

			in.Errorf("the heap grew by %d MiB", (peak-before)>>20)
		}
		got := 0
		var last store.RecordCursor
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 1))(in)
		for {
			page, _, err := in.team.Records(in.Context(), reports[0].ID, last, 1000)
			in.must(err)
			if len(page) == 0 {
				break
			}
			got, last = got+len(page), page[len(page)-1].Cursor
		}
		if got != records {
			in.Errorf("read %d records, want %d", got, records)
		}
	})
}

// heap returns the used heap in bytes.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestReportsFromEndsBeforeWhatIsUnfinished checks that a list of settled reports ends before those
// that are too recent, and before one that is still being written.
func TestReportsFromEndsBeforeWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		created := musttest.Get(s.CreateTeam(t.Context(), "acme", false))(t)
		team := s.Team(created.ID)
		var ids []dmarcd.ReportID
		for _, id := range []string{"1", "2", "3"} {
			receipts := musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(storetest.Aggregate(id, "example.com", 20000, storetest.Passed("example.com", 1)))}))(t)
			ids = append(ids, receipts[0][0].ID)
		}
		list := func(from dmarcd.ReportID, settled time.Time) []dmarcd.ReportID {
			t.Helper()
			reports := musttest.Get(team.ReportsFrom(t.Context(), store.ReportFilter{}, from, settled, 10))(t)
			listed := []dmarcd.ReportID{}
			for _, r := range reports {
				if r.Detail.Aggregate == nil {
					t.Errorf("report %s has no detail", r.ID)
				}
				listed = append(listed, r.ID)
			}
			return listed
		}
		later := time.Now().Add(time.Hour)
		for _, tt := range []struct {
			name      string
			got, want []dmarcd.ReportID
		}{
			{"all", list(0, time.Time{}), ids},
			{"from the second", list(ids[1], later), ids[1:]},
			{"before the third is settled", list(0, time.UnixMicro(int64(ids[2])>>11)), ids[:2]},
		} {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `UPDATE reports SET state = 'deleted', pending_until = $1 WHERE id = $2`, later.Unix(), ids[1]))(t)
		if diff := cmp.Diff(ids[:1], list(0, later)); diff != "" {
			t.Errorf("while the second is written (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]dmarcd.ReportID{ids[0], ids[2]}, list(0, time.Time{})); diff != "" {
			t.Errorf("all that is there (-want +got):\n%s", diff)
		}
	})
}

// TestLongTextsByPage reads records with long texts, hot and cold. A page has some megabytes.
func TestLongTextsByPage(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		const records, size = 10, 1 << 20
		var long []aggregate.Record
		for i := range records {
			r := storetest.Passed(ours, int64(i+1))
			r.Reasons = []aggregate.Reason{{Type: "other", Comment: strings.Repeat("x", size)}}
			long = append(long, r)
		}
		id := in.receive(storetest.Aggregate("long", ours, today, long...))[0].ID
		for _, state := range []string{"hot", "cold"} {
			read, pages := 0, 0
			for after, more := (store.RecordCursor{}), true; more; pages++ {
				var page []store.Record
				var err error
				page, more, err = in.team.Records(in.Context(), id, after, 1000)
				in.must(err)
				if len(page) == 0 || len(page) > 6 {
					in.Fatalf("%s: got a page of %d records of 1 MiB, want a few", state, len(page))
				}
				read, after = read+len(page), page[len(page)-1].Cursor
			}
			if read != records || pages < 2 {
				in.Errorf("%s: got %d records on %d pages, want %d", state, read, pages, records)
			}
			in.freeze()
		}
	})
}
