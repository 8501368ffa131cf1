package demo_test

import (
	"bytes"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/demo"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	load := demo.Load{Seed: 1, End: end, Domains: 2, Reports: 400, Records: 3}
	today := dmarcd.DayOf(end)
	reports, keys := map[string]int{}, map[aggregate.Key]bool{}
	first, last := today, dmarcd.Day(0)
	for document := range load.Documents() {
		p := parse(t, document)
		if len(p.records) != load.Records || len(p.aggregate.Quirks) > 0 {
			t.Fatalf("%s: got %d records and the quirks %v, want %d and none", document.Name, len(p.records), p.aggregate.Quirks, load.Records)
		}
		reports[document.Domain]++
		keys[p.aggregate.Key()] = true
		about := dmarcd.DayOf(document.SentAt) - 1
		first, last = min(first, about), max(last, about)
	}
	for _, name := range load.DomainNames() {
		if reports[name] != load.Reports {
			t.Errorf("%s: got %d reports, want %d", name, reports[name], load.Reports)
		}
	}
	if want := load.Domains * load.Reports; len(keys) != want {
		t.Errorf("got %d different reports, want %d", len(keys), want)
	}
	if first != today-365 || last != today-1 {
		t.Errorf("got reports about %s to %s, want the year before %s", first, last, today)
	}
}

func BenchmarkStory(b *testing.B) {
	for b.Loop() {
		records, bytesMade := 0, 0
		for document := range story().Documents() {
			records += bytes.Count(document.Content, []byte("<record>"))
			bytesMade += len(document.Content)
		}
		b.ReportMetric(float64(records), "records/op")
		b.SetBytes(int64(bytesMade))
	}
}

func BenchmarkLoad(b *testing.B) {
	load := demo.Load{Seed: 1, End: end, Domains: 10, Reports: 10, Records: 100}
	for b.Loop() {
		for document := range load.Documents() {
			b.SetBytes(int64(len(document.Content)))
		}
	}
	b.ReportMetric(float64(load.Domains*load.Reports*load.Records), "records/op")
}
