package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// addRecord gives the victim a managed record.
func addRecord(t *testing.T, s *store.Store, mine *store.Team) {
	t.Helper()
	musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
	musttest.Get(mine.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}, nil))(t)
	musttest.Get(mine.ProposeRecord(t.Context(), "example.com", 1, dmarcd.RecordProposal{RecordVersion: dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject"}}, 0))(t)
	musttest.Get(mine.SetRecordTarget(t.Context(), "example.com", dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "ns.example:53"}, sealNothing))(t)
	musttest.Get(mine.BeginRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT}))(t)
}

func sealNothing(dmarcd.PublishTarget) ([]byte, error) { return []byte("x"), nil }

// recordState is what the victim reads of its managed record, and what the zone answers.
func recordState(t *testing.T, mine *store.Team, v victim) string {
	t.Helper()
	return fmt.Sprintf("%v %+v %+v %+v %+v %+v", musttest.Get(mine.RecordTarget(t.Context(), v.domain.Name))(t), musttest.Get(mine.BegunRecord(t.Context(), v.domain.Name, dmarcd.RecordTLSRPT))(t), musttest.Get(mine.ApprovalRequired(t.Context()))(t), musttest.Get(mine.RecordProposals(t.Context(), v.domain.Name))(t), musttest.Get(mine.RecordVersions(t.Context(), v.domain.Name))(t), musttest.Get(v.store.ZoneNames(t.Context(), "", 100))(t))
}

// recordAttacks are attacks on managed records.
var recordAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"RecordVersions": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.RecordVersions(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"PublishRecord": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.PublishRecord(ctx, v.domain.Name, 1, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "forged"}, nil)
		return wantNotFound(err)
	},
	"ProposeRecord": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.ProposeRecord(ctx, v.domain.Name, 1, dmarcd.RecordProposal{RecordVersion: dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "forged"}}, v.token.ID)
		return wantNotFound(err)
	},
	"RecordProposals": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.RecordProposals(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"WithdrawProposal": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.WithdrawProposal(ctx, v.domain.Name, dmarcd.RecordDMARC))
	},
	"RequireApproval": func(ctx context.Context, other *store.Team, _ victim) error {
		return other.RequireApproval(ctx, true) // of its own team
	},
	"ApprovalRequired": func(ctx context.Context, other *store.Team, _ victim) error {
		_, err := other.ApprovalRequired(ctx) // of its own team
		return err
	},
	"ServedSPF": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.ServedSPF(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"SaveSPF": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SaveSPF(ctx, v.domain.Name, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF}, []store.ZoneRecord{{Type: dns.TXT, Data: "forged"}}, 0, "forged"))
	},
	"RecordTarget": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.RecordTarget(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"SetRecordTarget": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.SetRecordTarget(ctx, v.domain.Name, dmarcd.PublishTarget{}, sealNothing)
		return wantNotFound(err)
	},
	"RemoveRecordTarget": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RemoveRecordTarget(ctx, v.domain.Name))
	},
	"BeginRecord": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.BeginRecord(ctx, v.domain.Name, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT})
		return wantNotFound(err)
	},
	"BegunRecord": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.BegunRecord(ctx, v.domain.Name, dmarcd.RecordTLSRPT)
		return wantNotFound(err)
	},
	"EndAttempt": func(ctx context.Context, other *store.Team, v victim) error {
		begun := dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT, Attempt: 1}
		return wantNotFound(other.EndAttempt(ctx, v.domain.Name, begun))
	},
	"StopRecord": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.StopRecord(ctx, v.domain.Name, dmarcd.RecordDMARC))
	},
}
