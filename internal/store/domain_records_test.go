package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// openZone opens the zone of tests and returns its serial.
func (in *inbox) openZone(configuration string) int64 {
	in.Helper()
	return musttest.Get(in.store.OpenZone(in.Context(), "dns.example.net", configuration))(in)
}

// publish publishes a version of the DMARC record of a domain.
func (in *inbox) publish(t *store.Team, domain string, base int64, content string) dmarcd.RecordVersion {
	in.Helper()
	return musttest.Get(t.PublishRecord(in.Context(), domain, base, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: content, Author: "ann", Reason: "a reason"}, nil))(in)
}

// zone returns what the zone answers, as lines.
func (in *inbox) zone() string {
	in.Helper()
	var lines []string
	for _, n := range musttest.Get(in.store.ZoneNames(in.Context(), "", 100))(in) {
		for _, r := range n.Records {
			lines = append(lines, n.Label+" "+r.Data)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestRecordVersions(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		record := dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}
		if _, err := in.team.PublishRecord(ctx, ours, 0, record, nil); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("without a zone: got %v, want ErrNotFound", err)
		}
		start := in.openZone("a")
		first := in.publish(in.team, ours, 0, "v=DMARC1; p=none")
		if first.Version != 1 || len(first.Label) != 24 {
			in.Errorf("got %+v, want version 1 with a label of 24 characters", first)
		}
		second := in.publish(in.team, ours, 1, "v=DMARC1; p=reject")
		if second.Version != 2 || second.Label != first.Label {
			in.Errorf("got %+v, want version 2 with the label %s", second, first.Label)
		}
		for _, base := range []int64{0, 1, 3} {
			if _, err := in.team.PublishRecord(ctx, ours, base, record, nil); !errors.Is(err, dmarcd.ErrConflict) {
				in.Errorf("based on %d: got %v, want ErrConflict", base, err)
			}
		}
		other := musttest.Get(in.team.PublishRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT, Content: "v=TLSRPTv1;rua=mailto:a@b.example"}, nil))(in)
		if _, err := in.team.PublishRecord(ctx, "missing.example", 0, record, nil); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("another domain: got %v, want ErrNotFound", err)
		}
		versions := musttest.Get(in.team.RecordVersions(ctx, ours))(in)
		if len(versions) != 3 || versions[0] != second || versions[1] != first || versions[2] != other {
			in.Errorf("got %+v, want %+v", versions, []dmarcd.RecordVersion{second, first, other})
		}
		lines := []string{first.Label + " v=DMARC1; p=reject", other.Label + " v=TLSRPTv1;rua=mailto:a@b.example"}
		slices.Sort(lines)
		if got, want := in.zone(), strings.Join(lines, "\n"); got != want {
			in.Errorf("zone: got\n%s\nwant\n%s", got, want)
		}
		serial, changed, err := in.store.ZoneChanges(ctx, start)
		if err != nil || serial <= start || len(changed) != 2 || changed[0].Records[0].Data != "v=DMARC1; p=reject" {
			in.Errorf("changes: got %d, %+v, %v", serial, changed, err)
		}
		if serial, changed, err = in.store.ZoneChanges(ctx, serial); err != nil || len(changed) != 0 {
			in.Errorf("no changes: got %d, %+v, %v", serial, changed, err)
		}

		in.must(in.team.StopRecord(ctx, ours, dmarcd.RecordDMARC))
		if err := in.team.StopRecord(ctx, ours, dmarcd.RecordDMARC); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("stop again: got %v, want ErrNotFound", err)
		}
		third := in.publish(in.team, ours, 0, "v=DMARC1; p=none")
		if third.Version != 1 || third.Label == first.Label {
			in.Errorf("after the stop: got %+v, want version 1 with another label", third)
		}
	})
}

// TestOldVersionsAreRemoved checks the limit of versions.
func TestOldVersionsAreRemoved(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.openZone("a")
		in.publish(in.team, ours, 0, "first")
		_, err := in.sql().ExecContext(in.Context(), `UPDATE record_versions SET version = 1001`)
		in.must(err)
		for base := int64(1001); base < 2001; base++ {
			if base == 1003 { // as if there were all
				_, err := in.sql().ExecContext(in.Context(), `UPDATE record_versions SET version = 2000 WHERE version = 1003`)
				in.must(err)
				base = 2000
			}
			in.publish(in.team, ours, base, "next")
		}
		versions := musttest.Get(in.team.RecordVersions(in.Context(), ours))(in)
		if len(versions) != 3 || versions[len(versions)-1].Version != 1002 {
			in.Errorf("got %+v, want the versions 2001, 2000 and 1002", versions)
		}
	})
}

// TestConcurrentPublishing has only one of many succeed with the same base.
func TestConcurrentPublishing(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.openZone("a")
		var all sync.WaitGroup
		results := make([]error, 8)
		for i := range results {
			all.Go(func() {
				_, results[i] = in.team.PublishRecord(in.Context(), ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: fmt.Sprint(i)}, nil)
			})
		}
		all.Wait()
		published := 0
		for _, err := range results {
			switch {
			case err == nil:
				published++
			case !errors.Is(err, dmarcd.ErrConflict):
				in.Errorf("got %v, want ErrConflict", err)
			}
		}
		if names := musttest.Get(in.store.ZoneNames(in.Context(), "", 10))(in); published != 1 || len(names) != 1 {
			in.Errorf("got %d versions and the names %+v, want one of each", published, names)
		}
	})
}

// TestRetiredNames checks that a name outlives its record by 90 days, and is a tombstone from then on.
func TestRetiredNames(t *testing.T) {
	for name, remove := range map[string]func(in *inbox){
		"stopped":        func(in *inbox) { in.must(in.team.StopRecord(in.Context(), ours, dmarcd.RecordDMARC)) },
		"domain deleted": func(in *inbox) { in.must(in.team.DeleteDomain(in.Context(), ours)) },
		"domains deleted": func(in *inbox) {
			musttest.Get(in.team.DeleteDomains(in.Context(), []string{ours}, func([]string) dmarcd.AuditEntry { return dmarcd.AuditEntry{} }))(in)
		},
		"team deleted": func(in *inbox) { in.must(in.team.Delete(in.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				ctx := in.Context()
				in.openZone("a")
				in.add(ours)
				v := in.publish(in.team, ours, 0, "v=DMARC1; p=none")
				beside := newTeam(in, in.store, "beside")
				addDomain(in, beside, ours)
				stays := in.publish(beside, ours, 0, "v=DMARC1; p=reject")
				if stays.Label == v.Label {
					in.Error("another team with the same domain has the same name")
				}
				remove(in)
				for musttest.Get(in.store.Purge(ctx))(in) {
				}
				in.clock.advance(89 * 24 * time.Hour)
				musttest.Get(in.store.ExpireZoneNames(ctx))(in)
				lines := []string{v.Label + " v=DMARC1; p=none", stays.Label + " v=DMARC1; p=reject"}
				slices.Sort(lines)
				if got, want := in.zone(), strings.Join(lines, "\n"); got != want {
					in.Errorf("after 89 days: got\n%s\nwant\n%s", got, want)
				}
				before, _, err := in.store.ZoneChanges(ctx, 0)
				in.must(err)
				in.clock.advance(48 * time.Hour)
				musttest.Get(in.store.ExpireZoneNames(ctx))(in)
				if got, want := in.zone(), stays.Label+" v=DMARC1; p=reject"; got != want {
					in.Errorf("after 91 days: got\n%s\nwant\n%s", got, want)
				}
				after, changed, err := in.store.ZoneChanges(ctx, before)
				if err != nil || after <= before || len(changed) != 1 || changed[0].Label != v.Label || len(changed[0].Records) != 0 {
					in.Errorf("changes: got %d, %+v, %v want the name without content", after, changed, err)
				}
				var tombstones int
				in.must(in.sql().QueryRowContext(ctx, `SELECT COUNT(*) FROM zone_names WHERE label = '`+v.Label+`' AND content = '' AND expires_at = 0`).Scan(&tombstones))
				if tombstones != 1 {
					in.Error("the name has no tombstone: it could be given again")
				}
				again := newTeam(in, in.store, "again")
				addDomain(in, again, ours)
				if next := in.publish(again, ours, 0, "v=DMARC1; p=none"); next.Label == v.Label || next.Label == stays.Label {
					in.Errorf("the next team has the name %s of another one", next.Label)
				}
			})
		})
	}
}

func TestOpenZone(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		if name := musttest.Get(in.store.Zone(ctx))(in); name != "" {
			in.Errorf("before: got the zone %q, want none", name)
		}
		first := in.openZone("a")
		if again := in.openZone("a"); again != first {
			in.Errorf("the same configuration: got the serial %d, want %d", again, first)
		}
		changed := in.openZone("b")
		if changed <= first {
			in.Errorf("another configuration: got the serial %d, want more than %d", changed, first)
		}
		moved := musttest.Get(in.store.OpenZone(ctx, "other.example.net", "b"))(in)
		if name := musttest.Get(in.store.Zone(ctx))(in); name != "other.example.net" || moved <= changed {
			in.Errorf("another name without records: got %s with the serial %d, want other.example.net with more than %d", name, moved, changed)
		}
		in.add(ours)
		in.publish(in.team, ours, 0, "v=DMARC1; p=none")
		in.must(in.team.StopRecord(ctx, ours, dmarcd.RecordDMARC)) // it answers for 90 days
		if _, err := in.store.OpenZone(ctx, "dns.example.net", "b"); !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), "DMARCD_ZONE=other.example.net") {
			in.Errorf("another name with records: got %v, want an error with the setting", err)
		}
		// The clock of a restored backup or of another replica is behind.
		latest, _, err := in.store.ZoneChanges(ctx, 0)
		in.must(err)
		in.clock.advance(-time.Hour)
		in.publish(in.team, ours, 0, "v=DMARC1; p=none")
		if serial, _, err := in.store.ZoneChanges(ctx, 0); err != nil || serial != latest+1 {
			in.Errorf("with a clock that is behind: got the serial %d, %v, want %d", serial, err, latest+1)
		}
	})
}

// TestServedRecords replaces what a name answers, while its record is managed and after that.
func TestServedRecords(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		in.openZone("a")
		written := dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: "v=spf1 include:mail.example -all"}
		v := musttest.Get(in.team.PublishRecord(ctx, ours, 0, written, func(label string) []store.ZoneRecord {
			return []store.ZoneRecord{{Type: dns.TXT, Data: "v=spf1 include:a." + label + ".dns.example.net -all"}, {Sub: "a", Type: dns.TXT, Data: "v=spf1 ip4:192.0.2.1"}}
		}))(in)
		served := func(want ...store.ZoneRecord) {
			in.Helper()
			if names := musttest.Get(in.store.ZoneNames(ctx, "", 10))(in); len(names) != 1 || !slices.Equal(names[0].Records, want) {
				in.Errorf("got %+v, want %+v", names, want)
			}
		}
		served(store.ZoneRecord{Type: dns.TXT, Data: "v=spf1 include:a." + v.Label + ".dns.example.net -all"}, store.ZoneRecord{Sub: "a", Type: dns.TXT, Data: "v=spf1 ip4:192.0.2.1"})
		refreshed := []store.ZoneRecord{{Type: dns.TXT, Data: "v=spf1 ip4:192.0.2.2 -all"}}
		in.must(in.team.SaveSPF(ctx, ours, v, refreshed, time.Hour, ""))
		served(refreshed...)
		before, _, err := in.store.ZoneChanges(ctx, 0)
		in.must(err)
		in.must(in.team.SaveSPF(ctx, ours, v, refreshed, time.Hour, ""))
		if after, _, err := in.store.ZoneChanges(ctx, 0); err != nil || after != before {
			in.Errorf("the same records: got the serial %d, %v, want %d", after, err, before)
		}
		other := v
		other.Version++
		if err := in.team.SaveSPF(ctx, ours, other, nil, time.Hour, ""); !errors.Is(err, dmarcd.ErrConflict) {
			in.Errorf("of another version: got %v, want ErrConflict", err)
		}
		if err := in.team.SaveSPF(ctx, ours, v, []store.ZoneRecord{{Type: dns.TXT, Data: "a\nb"}}, time.Hour, ""); err == nil {
			in.Error("a line break: got no error")
		}
		if err := in.store.ServeRetired(ctx, v.Label, nil); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("a name in use as a retired one: got %v, want ErrNotFound", err)
		}
		in.must(in.team.DeleteDomain(ctx, ours))
		retired := musttest.Get(in.store.RetiredNames(ctx, dmarcd.RecordSPF, "", 10))(in)
		if len(retired) != 1 || retired[0].Label != v.Label || retired[0].Source != written.Content || !slices.Equal(retired[0].Records, refreshed) {
			in.Fatalf("got %+v, want the name with its source", retired)
		}
		if others := musttest.Get(in.store.RetiredNames(ctx, dmarcd.RecordBIMI, "", 10))(in); len(others) != 0 {
			in.Errorf("of another kind: got %+v, want none", others)
		}
		last := []store.ZoneRecord{{Type: dns.TXT, Data: "v=spf1 ip4:192.0.2.3 -all"}}
		in.must(in.store.ServeRetired(ctx, v.Label, last))
		served(last...)
	})
}

// TestExpiredSPF has the name of an SPF record answer something neutral for ever, and another zone is
// possible then.
func TestExpiredSPF(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		in.openZone("a")
		musttest.Get(in.team.PublishRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: "v=spf1 -all"}, nil))(in)
		in.must(in.team.StopRecord(ctx, ours, dmarcd.RecordSPF))
		if events := musttest.Get(in.team.Events(ctx, store.EventFilter{}, store.Cursor{}, 10))(in); len(events) != 1 || events[0].Kind != dmarcd.RecordsRetired || events[0].Subject != ours {
			in.Errorf("got %+v, want the event", events)
		}
		in.clock.advance(91 * 24 * time.Hour)
		musttest.Get(in.store.ExpireZoneNames(ctx))(in)
		if got := in.zone(); !strings.HasSuffix(got, " v=spf1 ?all") {
			in.Errorf("got %q, want it neutral", got)
		}
		musttest.Get(in.store.OpenZone(ctx, "other.example.net", "a"))(in)
	})
}
