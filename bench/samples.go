package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// sample is a generated aggregate report about a domain.
type sample struct {
	number  int
	domain  string
	records int
	later   int64 // days after those of other samples
	day     int64 // that it is about; 0 for one by its number
}

// The days of samples.
const (
	sampleDay  = 20_000
	sampleDays = 300
)

// begin spreads the reports of a domain over 300 days, unless day is set.
func (s sample) begin() int64 {
	if s.day != 0 {
		return s.day * 24 * 60 * 60
	}
	return (sampleDay + s.later + int64((s.number*7919+s.number/1000)%sampleDays)) * 24 * 60 * 60
}

func (s sample) id() string { return fmt.Sprintf("report-%d", s.number) }

// record returns the n-th record; about one in five fails DMARC.
func (s sample) record(n int) aggregate.Record {
	addr := netip.AddrFrom4([4]byte{192, 0, byte(n % 256), byte(s.number % 256)}) //nolint:gosec // both are below 256
	r := aggregate.Record{
		Addr: addr, Source: addr.String(), Count: int64(n%7 + 1),
		Disposition: aggregate.PolicyNone, DKIM: aggregate.ResultPass, SPF: aggregate.ResultPass,
		HeaderFrom: s.domain, EnvelopeFrom: s.domain,
		DKIMResults: []aggregate.DKIMResult{{Domain: s.domain, Selector: fmt.Sprintf("s%d", n%3), Result: aggregate.ResultPass}},
		SPFResults:  []aggregate.SPFResult{{Domain: s.domain, Scope: "mfrom", Result: aggregate.ResultPass}},
	}
	if n%5 == 0 {
		r.DKIM, r.SPF = aggregate.ResultFail, aggregate.ResultFail
		r.DKIMResults = nil
		r.SPFResults[0] = aggregate.SPFResult{Domain: "spoofed.example", Scope: "mfrom", Result: aggregate.ResultFail}
	}
	return r
}

func (s sample) all() iter.Seq[aggregate.Record] {
	return func(yield func(aggregate.Record) bool) {
		for n := range s.records {
			if !yield(s.record(n)) {
				return
			}
		}
	}
}

// file returns the report as a reporter sends it.
func (s sample) file() []byte {
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	s.render(packed, fmt.Sprintf("receiver%d.example", s.number%20), s.id(), s.all())
	must(packed.Close())
	return b.Bytes()
}

// render writes the report of an organization with an id and records.
func (s sample) render(w io.Writer, organization, id string, records iter.Seq[aggregate.Record]) {
	must(aggregate.Render(w, aggregate.Report{
		Version: "1.0",
		Metadata: aggregate.Metadata{
			OrgName: organization, Email: "dmarc@receiver.example", ReportID: id, Begin: s.begin(), End: s.begin() + 86_399,
		},
		Policy: aggregate.PublishedPolicy{Domain: s.domain, P: aggregate.PolicyNone, SP: aggregate.PolicyNone, ADKIM: "r", ASPF: "r"},
	}, records))
}

// delivery returns the report as the store receives it.
func (s sample) delivery() *dmarcd.Delivery {
	begin := time.Unix(s.begin(), 0)
	share := dmarcd.Share{From: s.domain, Records: s.records}
	for r := range s.all() {
		share.Add(dmarcd.CountsOf(r))
	}
	identity := fmt.Append(nil, s.id(), s.domain)
	return &dmarcd.Delivery{
		Intake: dmarcd.IntakeImport,
		Original: dmarcd.Original{
			Hash: sha256.Sum256(identity), Size: int64(len(identity)), Packed: func() io.Reader { return bytes.NewReader(identity) }, PackedSize: int64(len(identity)),
		},
		Reports: []dmarcd.NewReport{{
			Report: dmarcd.Report{
				Kind: dmarcd.KindAggregate, Organization: "receiver.example", ExternalID: s.id(), Domain: s.domain,
				Begin: begin, End: begin.Add(24*time.Hour - time.Second), Records: s.records,
				Messages: share.Total(), Compliant: share.Compliant,
			},
			Document: `{"v":1}`,
			Key:      sha256.Sum256(identity), Content: sha256.Sum256(slices.Concat(identity, []byte("content"))),
			Shares: []dmarcd.Share{share},
			EachRecord: func(yield func(aggregate.Record, error) bool) {
				for r := range s.all() {
					if !yield(r, nil) {
						return
					}
				}
			},
		}},
	}
}

// buildRollups builds all rollups, as the daemon would within a minute.
func buildRollups(ctx context.Context, d *daemon) {
	for get(d.store.BuildRollups(ctx)) {
		continue
	}
}
