package service

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/store"
)

// ReceiveUpload copies up to limit bytes for repeated reads. More is dmarcd.ErrLimit; with little
// disk space left nothing is read, see intake.ErrLowDisk. Close the copy after use.
func (s *Service) ReceiveUpload(body io.Reader, limit int64) (*intake.Copy, error) {
	if err := s.options.Acceptor.Ready(); err != nil {
		return nil, err
	}
	return intake.CopyOf(body, s.options.Acceptor.Limits.Containers.Folder, limit)
}

// Upload stores the reports of a file. name is the file name, or "".
func (t *Team) Upload(ctx context.Context, name string, content *intake.Copy) ([]dmarcd.Receipt, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return nil, err
	}
	message := intake.Message{
		Team: t.team.ID(), Intake: dmarcd.IntakeUpload, Name: name, Content: content, Size: content.Size(),
		Audit: []dmarcd.AuditEntry{t.actor.to("report.upload", name, "")},
	}
	if verifier := t.service.options.Verifier; verifier != nil {
		message.Authentication = verifier.Mail(ctx, content.Reader())
	}
	return t.service.options.Acceptor.Accept(ctx, t.team, message)
}

// Retry reads a rejected item again. It returns the receipts of everything in the same
// original; settled means that the item itself was accepted.
func (t *Team) Retry(ctx context.Context, id dmarcd.RejectedID) (settled bool, receipts []dmarcd.Receipt, err error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return false, nil, err
	}
	return t.service.options.Acceptor.Retry(ctx, t.team.ID(), t.team, id, t.actor.to("report.retry", id.String(), ""))
}

// SetCounted includes a report in the counters or excludes it, and returns the updated report.
// Including releases a held report, and replaces another counted version of it.
func (t *Team) SetCounted(ctx context.Context, id dmarcd.ReportID, counted bool) (dmarcd.Report, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Report{}, err
	}
	if _, err := t.team.SetReportCounted(ctx, id, counted, t.actor.to(countedAction(counted), id.String(), "")); err != nil {
		return dmarcd.Report{}, err
	}
	return t.team.Report(ctx, id)
}

func countedAction(counted bool) string {
	if counted {
		return "report.include"
	}
	return "report.exclude"
}

// DeleteReport deletes a report, and its original unless it is still used.
func (t *Team) DeleteReport(ctx context.Context, id dmarcd.ReportID) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	return t.team.DeleteReport(ctx, id, t.actor.to("report.delete", id.String(), ""))
}

// DeleteRejected deletes a rejected item, and its original unless it is still used.
func (t *Team) DeleteRejected(ctx context.Context, id dmarcd.RejectedID) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	return t.team.DeleteRejected(ctx, id, t.actor.to("rejected.delete", id.String(), ""))
}

// Selection selects reports. At least one field must be set.
type Selection struct {
	// Reporter is matched case-insensitively; "" is any.
	Reporter string
	// Days limits the begin of the reports.
	Days dmarcd.Days
}

// SetCountedAll is SetCounted for a selection. It returns the number of changed reports, and
// skips held and replaced ones.
func (t *Team) SetCountedAll(ctx context.Context, selected Selection, counted bool) (int, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return 0, err
	}
	if selected == (Selection{}) {
		return 0, &dmarcd.InvalidError{Field: "reporter", Message: "Select the reports: give a reporter, the first day, the last day, or several of these."}
	}
	if days := selected.Days; days.From != nil && days.To != nil && *days.From > *days.To {
		return 0, &dmarcd.InvalidError{Field: "from", Message: "The first day must not be later than the last."}
	}
	return t.team.SetReportsCounted(ctx, store.ReportFilter{Organization: selected.Reporter, Days: selected.Days}, counted,
		t.actor.to(countedAction(counted), selected.Reporter, selected.String()))
}

// String is the selection for the audit log.
func (s Selection) String() string {
	text := "all reports"
	if s.Days.From != nil {
		text += " from " + s.Days.From.String()
	}
	if s.Days.To != nil {
		text += " to " + s.Days.To.String()
	}
	return text
}

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

// Import stores reports from files. It is an intake.DeliveryStore for one goroutine.
type Import struct {
	team  *Team
	entry dmarcd.AuditEntry
	// noted means that the audit entry is written.
	noted bool
}

// Import starts an import from a source, such as a folder. It writes one audit entry, with the
// first stored reports.
func (t *Team) Import(source string) (*Import, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return nil, err
	}
	return &Import{team: t, entry: t.actor.to("report.import", source, "")}, nil
}

// Receive stores deliveries, all or none.
func (i *Import) Receive(ctx context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	if !i.noted && len(deliveries) > 0 {
		first := *deliveries[0]
		first.Audit = append(slices.Clone(first.Audit), i.entry)
		deliveries = append([]*dmarcd.Delivery{&first}, deliveries[1:]...)
	}
	receipts, err := i.team.team.Receive(ctx, deliveries)
	i.noted = i.noted || err == nil && len(deliveries) > 0
	return receipts, err
}
