package proposal_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/proposal"
)

// TestDemo proposes a record for the domain of the scenario whose SPF record lost the network of the
// office when it got too many lookups. Without the network, fewer lookups would help nothing.
func TestDemo(t *testing.T) {
	t.Parallel()
	const name = "tinwhistle.example"
	end := time.Date(2026, 11, 18, 0, 0, 0, 0, time.UTC)
	office := netip.MustParsePrefix("192.0.2.16/28")
	s := demo.New(demo.Options{Seed: 1, End: end})
	in := proposal.Input{Facts: stored(t, s.Zone(end), name)}
	for ago := 30; ago < 120; ago += 30 {
		in.History = append(in.History, stored(t, s.Zone(end.AddDate(0, 0, -ago)), name))
	}
	var failing int64
	for ago := 30; ago > 0; ago-- {
		for document := range s.DocumentsAbout(end.AddDate(0, 0, -ago)) {
			if document.Domain != name || document.Kind != dmarcd.KindAggregate {
				continue
			}
			for record, err := range aggregate.NewReader(bytes.NewReader(document.Content), aggregate.DefaultLimits()).All() {
				if err != nil {
					t.Fatal(err)
				}
				m := proposal.Mail{Addr: record.Addr, Messages: record.Count, Domain: record.SPFResults[0].Domain, Passes: record.SPF == aggregate.ResultPass}
				if !m.Passes && !office.Contains(m.Addr) {
					continue // not legitimate, or with another envelope domain
				}
				if !m.Passes {
					failing += m.Messages
				}
				in.Mail = append(in.Mail, m)
			}
		}
	}
	fix, ok := proposal.SPF(t.Context(), in)
	want := "Restore ip4:192.0.2.16/28 and remove three includes that never pass SPF for your domain: 12 → 5 lookups; " +
		dmarcd.FormatNumber(failing) + " failing messages pass, none breaks"
	if !ok || fix.Sentence != want || failing == 0 || fix.Fixed != failing || fix.Missing != "" {
		t.Errorf("got %+v\nwant %s", fix, want)
	}
	t.Logf("%s\n%s\n%+v", in.Facts.SPF.Record, fix.Record, fix.Changes)
}
