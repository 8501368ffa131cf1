package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Recipient is the domain of a reporting address, as seen by outsiders. They have no role:
// every client that knows the address may send reports.
type Recipient struct {
	Team    dmarcd.TeamID
	service *Service
	team    *store.Team
	domain  dmarcd.DomainID
}

// Recipient returns the domain of a reporting address by its local part in lower case, or
// dmarcd.ErrNotFound.
func (s *Service) Recipient(ctx context.Context, mailbox string) (*Recipient, error) {
	found, err := s.store.RecipientOf(ctx, mailbox)
	if err != nil {
		return nil, err
	}
	return &Recipient{Team: found.Team, service: s, team: s.store.Team(found.Team), domain: found.DomainID}, nil
}

// Admit returns a *dmarcd.QuotaError if the team may not receive more reports now.
func (r *Recipient) Admit(ctx context.Context) error { return r.team.Admit(ctx) }

// NoReportError means that a delivery contains no report. It is a dmarcd.ErrInvalid.
type NoReportError struct{ Reason string }

// Error returns the reason.
func (e *NoReportError) Error() string { return e.Reason }

// Is makes errors.Is(err, dmarcd.ErrInvalid) hold.
func (e *NoReportError) Is(target error) bool { return target == dmarcd.ErrInvalid }

// ReceiveTLS stores the TLS reports of an outsider. Without any it is a *NoReportError, and
// nothing is stored.
func (r *Recipient) ReceiveTLS(ctx context.Context, content *intake.Copy) ([]dmarcd.Receipt, error) {
	acceptor := r.service.options.Acceptor
	opened, err := acceptor.Read(ctx, intake.Message{
		Team: r.Team, Outsider: true, Domain: r.domain, Intake: dmarcd.IntakeUpload, Content: content, Size: content.Size(),
	})
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	if err := onlyTLS(opened.Delivery); err != nil {
		return nil, err
	}
	return acceptor.Store(ctx, r.team, opened.Delivery)
}

// onlyTLS removes everything except TLS reports.
func onlyTLS(delivery *dmarcd.Delivery) error {
	reason := "it contains no report"
	for _, rejection := range delivery.Rejections {
		reason = rejection.Reason
	}
	delivery.Rejections = nil
	delivery.Reports = slices.DeleteFunc(delivery.Reports, func(report dmarcd.NewReport) bool {
		if report.Kind == dmarcd.KindTLS {
			return false
		}
		reason = fmt.Sprintf("this address accepts only TLS reports, and this is a report of the kind %s", report.Kind)
		return true
	})
	if len(delivery.Reports) == 0 {
		return &NoReportError{reason}
	}
	return nil
}
