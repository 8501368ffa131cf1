package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// storeTime is how long a self-test waits until the report is stored.
	storeTime = 30 * time.Second
	// storePoll is the time between two queries for it.
	storePoll = 250 * time.Millisecond
	// maxSelfTests is how many self-tests of a team are under way at once: all of them share
	// the connections that one client may have.
	maxSelfTests = 2
)

// SelfTest sends a synthetic report to the reporting address of a domain, as a receiver
// would, and follows it until it is stored. The report has no messages, so it counts
// nowhere, and is deleted. It is a *ThrottledError while several of the team are under way.
func (t *Team) SelfTest(ctx context.Context, name string) (dmarcd.SelfTest, error) {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return dmarcd.SelfTest{}, err
	}
	address := domain.ReportAddress(t.service.options.ReportDomain)
	if address == "" {
		return dmarcd.SelfTest{}, &dmarcd.InvalidError{Field: "domain", Message: "This server does not receive reports by mail, so there is nothing to test. An operator can set DMARCD_REPORT_DOMAIN and DMARCD_SMTP_LISTEN."}
	}
	leave, ok := t.service.selfTests.Try(t.team.ID())
	if !ok {
		return dmarcd.SelfTest{}, &ThrottledError{RetryAfter: storeTime}
	}
	defer leave()
	// It goes on when the client leaves: the report is deleted in any case.
	ctx = context.WithoutCancel(ctx)
	id := "selftest-" + strings.ToLower(rand.Text())
	test := dmarcd.SelfTest{Domain: domain.Name}
	var acknowledged bool
	if test.Stages, acknowledged = t.service.options.SelfTests.Send(ctx, address, domain.Name, id); !acknowledged {
		return test, nil
	}
	began := time.Now()
	report, err := t.awaitReport(ctx, id)
	if err != nil {
		return test, err
	}
	took := time.Since(began)
	if report.ID == 0 {
		test.Stages = append(test.Stages, dmarcd.SelfTestStage{
			Name: dmarcd.StageStore, Took: took,
			Detail: fmt.Sprintf("The report was not stored within %d seconds. See the rejected reports and the log of the daemon.", int(storeTime.Seconds())),
		})
		return test, nil
	}
	test.Stages = append(test.Stages,
		verification(report),
		dmarcd.SelfTestStage{Name: dmarcd.StageStore, Passed: true, Detail: "The report was stored, not counted, and deleted.", Took: took},
	)
	if err = t.team.DeleteReport(ctx, report.ID, t.actor.to("domain.selftest", domain.Name, "")); err != nil {
		// The actor has lost the right meanwhile, but the report must not stay.
		err = errors.Join(err, t.service.store.Team(t.team.ID()).DeleteReport(ctx, report.ID))
	}
	return test, err
}

// verification returns the stage for the authentication of the message. Over SMTP it must
// have a result. Nothing signs a self-test, so that no is a result like yes.
func verification(report dmarcd.Report) dmarcd.SelfTestStage {
	stage := dmarcd.SelfTestStage{Name: dmarcd.StageVerification, Passed: true}
	authentication := report.Authentication
	switch authentication.Genuine {
	case dmarcd.GenuineYes:
		stage.Detail = "The message is authenticated. " + authentication.Reason
	case dmarcd.GenuineNo:
		stage.Detail = "The message is not authenticated, which is no problem: the daemon does not sign its self-test. " + authentication.Reason
	default:
		stage.Detail = "It is unknown whether the message is authenticated. " + authentication.Reason
		stage.Passed = report.Intake != dmarcd.IntakeSMTP
	}
	stage.Detail = strings.TrimSpace(stage.Detail)
	return stage
}

// awaitReport returns the report with that id of its reporter, or the zero value if it is
// not stored in time.
func (t *Team) awaitReport(ctx context.Context, externalID string) (dmarcd.Report, error) {
	for began := time.Now(); time.Since(began) < storeTime && !t.service.stopping(); t.service.pause(storePoll) {
		reports, err := t.team.Reports(ctx, ReportFilter{ExternalID: externalID}, 0, 1)
		if err != nil {
			return dmarcd.Report{}, err
		}
		if len(reports) > 0 {
			return reports[0], nil
		}
	}
	return dmarcd.Report{}, nil
}
