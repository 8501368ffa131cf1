package service_test

import (
	"context"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSelfTestSaysWhetherTheMessageIsAuthenticated stores a report with each verdict.
func TestSelfTestSaysWhetherTheMessageIsAuthenticated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, test := range []struct {
		intake  dmarcd.Intake
		genuine dmarcd.Genuine
		want    string
		passed  bool
	}{
		{dmarcd.IntakeSMTP, dmarcd.GenuineYes, "The message is authenticated. Because.", true},
		{dmarcd.IntakeSMTP, dmarcd.GenuineNo, "The message is not authenticated, which is no problem: the daemon does not sign its self-test. Because.", true},
		{dmarcd.IntakeSMTP, dmarcd.GenuineUnknown, "It is unknown whether the message is authenticated. Because.", false},
		{dmarcd.IntakeIMAP, dmarcd.GenuineUnknown, "It is unknown whether the message is authenticated. Because.", true},
	} {
		team := w.with(w.asOwner(), func(o *service.Options) {
			o.ReportDomain = "reports.example"
			o.SelfTests = selfTests(func(_ context.Context, _, _, id string) ([]dmarcd.SelfTestStage, bool) {
				delivery := storetest.Delivery(storetest.Aggregate(id, ours, 20000))
				delivery.Intake = test.intake
				delivery.SetVerdict(dmarcd.Verdict{Genuine: test.genuine, Reason: "Because."})
				musttest.Get(w.store.Team(w.team.ID).Receive(ctx, []*dmarcd.Delivery{delivery}))(t)
				return nil, true
			})
		})
		got := musttest.Get(team.SelfTest(ctx, ours))(t)
		if stage := got.Stages[0]; stage.Name != dmarcd.StageVerification || stage.Detail != test.want || stage.Passed != test.passed {
			t.Errorf("%s, %s: got %+v, want %q, passed: %t", test.intake, test.genuine, stage, test.want, test.passed)
		}
	}
}
