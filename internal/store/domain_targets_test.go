package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

func TestRecordTargets(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		target := dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "ns1.example:53", Zone: ours}
		for _, server := range []string{"ns1.example:53", "ns2.example:53"} { // the second replaces the first
			target.Server = server
			musttest.Get(in.team.SetRecordTarget(ctx, ours, target, func(t dmarcd.PublishTarget) ([]byte, error) {
				return []byte(t.SecretContext(in.team.ID())), nil
			}))(in)
		}
		got := musttest.Get(in.team.RecordTarget(ctx, ours))(in)
		if got.Server != "ns2.example:53" || string(got.Secret) != got.SecretContext(in.team.ID()) || got.CreatedAt.IsZero() {
			in.Errorf("got %+v", got)
		}
		musttest.Get(in.store.ReplaceSecrets(ctx, func(sealed []byte, context string) []byte {
			if string(sealed) != context || !strings.HasPrefix(context, "target ") {
				return nil
			}
			return []byte("sealed again")
		}, dmarcd.AuditEntry{Action: "secret.rotate"}))(in)
		if got := musttest.Get(in.team.RecordTarget(ctx, ours))(in); string(got.Secret) != "sealed again" {
			in.Errorf("after a rotation: got the secret %q", got.Secret)
		}

		// No zone is needed.
		v := dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none", Author: "ann"}
		begun := musttest.Get(in.team.BeginRecord(ctx, ours, 0, v))(in)
		if _, err := in.team.BeginRecord(ctx, ours, 0, v); !errors.Is(err, dmarcd.ErrConflict) {
			in.Errorf("a second attempt: got %v", err)
		}
		if versions := musttest.Get(in.team.RecordVersions(ctx, ours))(in); len(versions) != 0 {
			in.Errorf("got %+v, want nothing published", versions)
		}
		in.clock.advance(time.Minute)
		if all := musttest.Get(in.store.BegunRecords(ctx, time.Minute, time.Hour, 10))(in); len(all) != 1 || all[0].Domain != ours || all[0].Team != in.team.ID() {
			in.Errorf("got %+v", all)
		}
		stored := musttest.Get(in.team.BegunRecord(ctx, ours, dmarcd.RecordDMARC))(in)
		if stored.Attempt != begun.Attempt || stored.Content != v.Content || stored.Version != 1 {
			in.Errorf("got %+v, want %+v", stored, begun)
		}
		published := musttest.Get(in.team.PublishRecord(ctx, ours, 0, stored, nil))(in)
		if published.Version != 1 || published.Label != "" {
			in.Errorf("got %+v, want no name in the zone", published)
		}
		if _, err := in.team.PublishRecord(ctx, ours, 1, begun, nil); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("an attempt that ended: got %v", err)
		}
		second := musttest.Get(in.team.BeginRecord(ctx, ours, 1, v))(in)
		in.must(in.team.EndAttempt(ctx, ours, second))
		if err := in.team.EndAttempt(ctx, ours, second); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("got %v", err)
		}
		in.must(in.team.RemoveRecordTarget(ctx, ours))
		if err := in.team.RemoveRecordTarget(ctx, ours); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("got %v", err)
		}
		musttest.Get(in.team.BeginRecord(ctx, ours, 1, v))(in)
		in.must(in.team.StopRecord(ctx, ours, dmarcd.RecordDMARC))
		if _, err := in.team.BegunRecord(ctx, ours, dmarcd.RecordDMARC); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("after the stop: got %v, want no attempt", err)
		}
		if events := musttest.Get(in.team.Events(ctx, store.EventFilter{}, store.Cursor{}, 10))(in); len(events) != 0 {
			in.Errorf("got %+v, want none about names in the zone", events)
		}
	})
}
