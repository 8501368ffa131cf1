package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Team creates a team with access to the API.
func Team(t testing.TB, s *store.Store, name string) dmarcd.Team {
	t.Helper()
	return musttest.Get(s.CreateTeam(t.Context(), name, true))(t)
}

// All calls step until it reports that nothing more is to do, and returns the number of calls.
func All(t testing.TB, step func(ctx context.Context) (more bool, err error)) (steps int) {
	t.Helper()
	for more := true; more; steps++ {
		var err error
		if more, err = step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return steps
}

// Count stores one aggregate report about a domain for each count, with the messages of that
// day.
func Count(t testing.TB, team *store.Team, domain string, counts ...dmarcd.DayCount) {
	t.Helper()
	var deliveries []*dmarcd.Delivery
	for i, c := range counts {
		id := fmt.Sprintf("%s %d %d", domain, c.Day, i)
		deliveries = append(deliveries, Delivery(Aggregate(id, domain, c.Day,
			Passed(domain, c.Compliant), Failed(domain, c.NonCompliant))))
	}
	receipts := musttest.Get(team.Receive(t.Context(), deliveries))(t)
	for _, all := range receipts {
		for _, receipt := range all {
			if receipt.Status != dmarcd.Stored {
				t.Fatalf("a report for %s: got %s, want stored", domain, receipt.Status)
			}
		}
	}
}

// Delivery returns an upload of reports. Its original depends only on their contents.
func Delivery(reports ...dmarcd.NewReport) *dmarcd.Delivery {
	var content []byte
	for _, r := range reports {
		content = append(content, r.Content[:]...)
	}
	return &dmarcd.Delivery{
		Intake: dmarcd.IntakeUpload, Name: "report.xml", Reports: reports, Original: Original(content),
	}
}

// Original returns an uncompressed original.
func Original(content []byte) dmarcd.Original {
	return dmarcd.Original{
		Hash: sha256.Sum256(content), Size: int64(len(content)),
		Packed: func() io.Reader { return bytes.NewReader(content) }, PackedSize: int64(len(content)),
	}
}

// Passed returns a record of messages with that From domain that pass DMARC, signed with the
// selector s1.
func Passed(from string, count int64) aggregate.Record {
	return aggregate.Record{
		Addr: netip.MustParseAddr("192.0.2.1"), Source: "192.0.2.1", Count: count, HeaderFrom: from, EnvelopeFrom: from,
		Disposition: aggregate.PolicyNone, DKIM: aggregate.ResultPass, SPF: aggregate.ResultFail,
		DKIMResults: []aggregate.DKIMResult{{Domain: from, Selector: "s1", Result: aggregate.ResultPass}},
	}
}

// Failed returns a record of messages that failed DMARC and were rejected.
func Failed(from string, count int64) aggregate.Record {
	return aggregate.Record{
		Addr: netip.MustParseAddr("198.51.100.7"), Source: "198.51.100.7", Count: count, HeaderFrom: from,
		Disposition: aggregate.PolicyReject, DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
		Reasons:    []aggregate.Reason{{Type: "other", Comment: "a “comment”"}},
		SPFResults: []aggregate.SPFResult{{Domain: "spoofed.example", Scope: "mfrom", Result: aggregate.ResultFail}},
	}
}

// Aggregate returns an aggregate report about a domain and one day.
func Aggregate(id, domain string, day dmarcd.Day, records ...aggregate.Record) dmarcd.NewReport {
	begin := time.Unix(int64(day)*24*60*60, 0).UTC()
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Kind: dmarcd.KindAggregate, Organization: "receiver.example", ExternalID: id, Domain: domain,
			Begin: begin, End: begin.Add(24*time.Hour - time.Second), Records: len(records),
			Quirks: []dmarcd.Quirk{{Name: "version_missing", Count: 1}},
		},
		Document:   `{"v":1}`,
		Key:        sha256.Sum256([]byte(id + domain)),
		Content:    sha256.Sum256(fmt.Append(nil, id, domain, records)),
		EachRecord: each(records),
	}
	var sum dmarcd.Counts
	var largest int64
	shares := make(map[string]int) // index in report.Shares by From domain
	for _, r := range records {
		n, ok := shares[r.HeaderFrom]
		if !ok {
			n = len(report.Shares)
			shares[r.HeaderFrom] = n
			report.Shares = append(report.Shares, dmarcd.Share{From: r.HeaderFrom})
		}
		counts := dmarcd.CountsOf(r)
		report.Shares[n].Records++
		report.Shares[n].Add(counts)
		sum.Add(counts)
		largest = max(largest, r.Count)
	}
	report.Messages, report.Compliant = sum.Total(), sum.Compliant
	report.HeldReason = dmarcd.Implausible(largest, report.Messages)
	if len(report.Shares) == 0 {
		report.Shares = []dmarcd.Share{{}}
	}
	return report
}

func each(records []aggregate.Record) iter.Seq2[aggregate.Record, error] {
	return func(yield func(aggregate.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
