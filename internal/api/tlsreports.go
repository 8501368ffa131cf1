package api

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
)

// ServeTLSReport receives a TLS report at an address below dmarcd.TLSReportPath, outside the
// API prefix. It needs no token: every client that knows the address may send.
func (a *API) ServeTLSReport(w http.ResponseWriter, r *http.Request) {
	httproute.Note(w, "route", "POST "+dmarcd.TLSReportPath+"{mailbox}")
	if err := a.receiveTLSReport(w, r); err != nil {
		a.fail(w, r, true, err)
	}
}

// receiveTLSReport checks errors in the order of the interface, and ignores the media type of
// the body. The response reveals nothing about the team, not even whether it has the domain of
// the report.
func (a *API) receiveTLSReport(w http.ResponseWriter, r *http.Request) error {
	if address := clientaddr.Of(r); a.reporters.take(w.Header(), address) {
		a.reporters.setRetryAfter(w.Header(), address)
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
	recipient, err := a.options.Service.Recipient(r.Context(), strings.ToLower(mailbox))
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errNoSuchMailbox
	}
	if err != nil {
		return err
	}
	httproute.Note(w, "team", recipient.Team.String())
	if err := recipient.Admit(r.Context()); err != nil {
		return anonymousQuota(w, err)
	}
	body, err := a.receiveBody(w, r, recipient.Team)
	if err != nil {
		return err
	}
	defer body.Close()
	answer := a.bodyRead(w)
	receipts, err := recipient.ReceiveTLS(r.Context(), body.Copy)
	answer()
	var none *service.NoReportError
	if errors.As(err, &none) {
		return &failure{http.StatusUnprocessableEntity, "no_report", "The body contains no valid TLS report: " + strings.TrimSuffix(none.Reason, ".") + "."}
	}
	if err != nil {
		return anonymousQuota(w, err)
	}
	status := receiptsStatus(receipts)
	writeJSON(w, status, message{Message: tlsReportAnswer(status)})
	return nil
}

// anonymousQuota hides from outsiders which quota is exhausted.
func anonymousQuota(w http.ResponseWriter, err error) error {
	var full *dmarcd.QuotaError
	if !errors.As(err, &full) {
		return err
	}
	w.Header().Set("Retry-After", quotaRetryAfter)
	return errMailboxFull
}

// quotaRetryAfter is for an exhausted quota, in seconds.
const quotaRetryAfter = "3600"

func tlsReportAnswer(status int) string {
	if status == http.StatusCreated {
		return "The report was stored."
	}
	return "The report is a duplicate."
}
