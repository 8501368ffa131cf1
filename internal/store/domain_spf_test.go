package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// TestDueSPF claims, saves and stops a managed SPF record.
func TestDueSPF(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		in.openZone("a")
		text := func(data string) []store.ZoneRecord { return []store.ZoneRecord{{Type: dns.TXT, Data: data}} }
		in.publish(in.team, ours, 0, "v=DMARC1; p=none")
		if _, err := in.team.ServedSPF(ctx, ours); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("without a record: got %v, want ErrNotFound", err)
		}
		v := musttest.Get(in.team.PublishRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: "v=spf1 a:b.example -all"}, func(string) []store.ZoneRecord { return text("v=spf1 -all") }))(in)
		claim := func(want int) {
			in.Helper()
			teams := musttest.Get(in.store.DueSPFTeams(ctx))(in)
			due := musttest.Get(in.store.ClaimDueSPF(ctx, time.Minute, map[dmarcd.TeamID]int{in.team.ID(): 5}))(in)
			if len(teams) != want || len(due) != want || want > 0 && (due[0].Name != ours || due[0].Team != in.team.ID() || teams[0] != in.team.ID()) {
				in.Errorf("got %v, %v due, want %d", teams, due, want)
			}
		}
		pass := func() {
			in.Helper()
			_, err := in.sql().ExecContext(ctx, `UPDATE domains SET spf_due_at = 1 WHERE spf_due_at > 0`)
			in.must(err)
		}
		claim(0)
		pass()
		claim(1)
		claim(0)
		save := func(v dmarcd.RecordVersion, records []store.ZoneRecord, problem string) error {
			return in.team.SaveSPF(ctx, ours, v, records, time.Hour, problem)
		}
		events := func(want int) {
			in.Helper()
			found := musttest.Get(in.team.Events(ctx, store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.SPFOutdated}}, store.Cursor{}, 10))(in)
			if len(found) != want || want > 0 && (found[0].Domain != ours || found[0].Reason == "") {
				in.Errorf("got %+v, want %d events", found, want)
			}
		}
		in.must(save(v, text("v=spf1 ip4:192.0.2.1 -all"), ""))
		events(0)
		in.must(save(v, nil, "a failure: first"))
		in.must(save(v, nil, "a failure: second"))
		events(1)
		in.must(save(v, nil, "growth: a lot"))
		events(2)
		served := musttest.Get(in.team.ServedSPF(ctx, ours))(in)
		if served.Problem != "growth: a lot" || served.RecordVersion != v || len(served.Records) != 1 || served.Records[0].Data != "v=spf1 ip4:192.0.2.1 -all" {
			in.Errorf("got %+v", served)
		}
		claim(0)
		second := musttest.Get(in.team.PublishRecord(ctx, ours, 1, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: "v=spf1 -all"}, nil))(in)
		if err := save(v, nil, ""); !errors.Is(err, dmarcd.ErrConflict) {
			in.Errorf("an old version: got %v, want ErrConflict", err)
		}
		if served := musttest.Get(in.team.ServedSPF(ctx, ours))(in); served.Problem != "" || served.RecordVersion != second {
			in.Errorf("after publishing: got %+v", served)
		}
		pass()
		in.must(in.team.StopRecord(ctx, ours, dmarcd.RecordSPF))
		claim(0)
		if err := save(second, nil, ""); !errors.Is(err, dmarcd.ErrConflict) {
			in.Errorf("after the stop: got %v, want ErrConflict", err)
		}
		_, err := in.sql().ExecContext(ctx, `UPDATE zone_names SET expires_at = 1 WHERE expires_at > 0`)
		in.must(err)
		musttest.Get(in.store.ExpireZoneNames(ctx))(in)
		if names := musttest.Get(in.store.RetiredNames(ctx, dmarcd.RecordSPF, "", 10))(in); len(names) != 0 || !strings.Contains(in.zone(), v.Label+" v=spf1 ?all") {
			in.Errorf("after its time: got %+v and\n%s, want a neutral record", names, in.zone())
		}
	})
}
