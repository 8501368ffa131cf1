package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/intake"
)

// ServeTLSReport answers a reporter who delivers a TLS report to an address below
// dmarcd.TLSReportPath, outside the prefix of the interface. Whoever knows the
// address may: there is no token.
func (a *API) ServeTLSReport(w http.ResponseWriter, r *http.Request) {
	note(w, "route", "POST "+dmarcd.TLSReportPath+"{mailbox}")
	if err := a.receiveTLSReport(w, r); err != nil {
		a.fail(w, r, err)
	}
}

// receiveTLSReport refuses in the order of the interface, and takes the body for
// what it is, whatever it calls itself. The answer tells a stranger nothing of the
// team: not even whether it has the domain that the report is about.
func (a *API) receiveTLSReport(w http.ResponseWriter, r *http.Request) error {
	if address := clientaddr.Of(r); a.reporters.take(w.Header(), address) {
		a.reporters.sayWhen(w.Header(), address)
		return errTooManyRequests
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return errMethodNotAllowed
	}
	mailbox, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), dmarcd.TLSReportPath))
	if err != nil || !storable(mailbox) {
		return errNoSuchMailbox
	}
	recipient, err := a.options.Store.RecipientOf(r.Context(), strings.ToLower(mailbox))
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errNoSuchMailbox
	}
	if err != nil {
		return err
	}
	note(w, "team", recipient.Team.String())
	body, err := a.receiveBody(w, r, recipient.Team)
	if err != nil {
		return err
	}
	defer body.Close()
	receipts, err := a.accept(w, r, a.options.Store.Team(recipient.Team),
		intake.Message{Team: recipient.Team, Outsider: true, Intake: dmarcd.IntakeUpload, Content: body, Size: body.Size()}, onlyTLS)
	if err != nil {
		return err
	}
	status := receiptsStatus(receipts)
	writeJSON(w, status, message{tlsReportAnswer(status, receipts)})
	return nil
}

// onlyTLS keeps all reports aside that are no TLS reports.
func onlyTLS(delivery *dmarcd.Delivery) {
	delivery.Reports = slices.DeleteFunc(delivery.Reports, func(report dmarcd.NewReport) bool {
		if report.Kind == dmarcd.KindTLS {
			return false
		}
		delivery.Refusals = append(delivery.Refusals, dmarcd.Refusal{
			Kind: report.Kind, Member: report.Member,
			Reason: fmt.Sprintf("only TLS reports are taken at this address, and this is a report of the kind %s", report.Kind),
		})
		return true
	})
}

func tlsReportAnswer(status int, receipts []dmarcd.Receipt) string {
	switch status {
	case http.StatusCreated:
		return "The report was stored."
	case http.StatusOK:
		return "The report was known already."
	default:
		return "The body holds no TLS report that can be used: " + strings.TrimSuffix(receipts[0].Reason, ".") + "."
	}
}
