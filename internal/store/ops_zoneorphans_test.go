package store_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// TestOrphanedNames continues a zone that was served with more names than the database has, and
// removes them.
func TestOrphanedNames(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		start := in.openZone("a")
		known := in.publish(in.team, ours, 0, "v=DMARC1; p=none")
		before := in.zone()
		served := []store.ZoneName{{Label: known.Label, Records: []store.ZoneRecord{{Type: dns.TXT, Data: "v=DMARC1; p=reject"}}}}
		state := musttest.Get(in.store.ZoneState(ctx))(in)
		serial, orphaned, err := in.store.ContinueZone(ctx, state.Serial, served)
		if err != nil || serial != state.Serial || len(orphaned) != 0 || in.zone() != before {
			in.Errorf("the same names: got %d, %v, %v and the zone %s, want no change of %d", serial, orphaned, err, in.zone(), state.Serial)
		}
		for i := range 250 { // more than a query has
			served = append(served, store.ZoneName{Label: fmt.Sprintf("lost%d", i), Records: []store.ZoneRecord{{Type: dns.TXT, Data: "v=DMARC1; p=none"}, {Sub: "sub", Type: dns.CNAME, Data: "example.com"}}})
		}
		ahead := start + 1_000_000 // of the clock
		serial, orphaned, err = in.store.ContinueZone(ctx, ahead, served)
		if err != nil || serial != ahead || len(orphaned) != 250 {
			in.Errorf("other names: got %d, %d names, %v, want %d and 250 names", serial, len(orphaned), err, ahead)
		}
		if again, orphaned, err := in.store.ContinueZone(ctx, ahead, served); err != nil || again != ahead || len(orphaned) != 0 {
			in.Errorf("a second time: got %d, %v, %v", again, orphaned, err)
		}
		_, changed, err := in.store.ZoneChanges(ctx, ahead-1)
		if err != nil || len(changed) != 250 || len(changed[0].Records) != 2 {
			in.Errorf("got %d changes, %v, want those of 250 names", len(changed), err)
		}
		if got := musttest.Get(in.store.ZoneState(ctx))(in); got != (store.ZoneState{Name: "dns.example.net", Serial: ahead, Names: 251, Orphaned: 250}) {
			in.Errorf("got %+v", got)
		}
		if v := in.publish(in.team, ours, 1, "v=DMARC1; p=reject"); v.Label != known.Label {
			in.Errorf("got the label %s", v.Label)
		}
		if got := musttest.Get(in.store.ZoneState(ctx))(in); got.Serial != ahead+1 {
			in.Errorf("got the serial %d after a change, want %d", got.Serial, ahead+1)
		}
		if dropped, err := in.store.DropOrphans(ctx, dmarcd.AuditEntry{Action: "zone.drop"}); err != nil || dropped != 250 {
			in.Errorf("got %d, %v", dropped, err)
		}
		if got := musttest.Get(in.store.ZoneState(ctx))(in); got != (store.ZoneState{Name: "dns.example.net", Serial: ahead + 2, Names: 1}) {
			in.Errorf("after that: got %+v", got)
		}
		if _, changed, err = in.store.ZoneChanges(ctx, ahead+1); err != nil || len(changed) != 250 || len(changed[0].Records) != 0 {
			in.Errorf("got %d changes, %v, want 250 removals", len(changed), err)
		}
		if _, orphaned, err = in.store.ContinueZone(ctx, 0, served); err != nil || len(orphaned) != 0 {
			in.Errorf("after that: got %v, %v, want tombstones to stay", orphaned, err)
		}
	})
}
