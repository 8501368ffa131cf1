package api

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/upload"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// uploadReport stores the reports of the body, in any container and with any media type. Each
// file of a form is read separately.
func (a *API) uploadReport(c *call) error {
	if c.r.Header.Get("Content-Encoding") != "" {
		return errContentEncoding
	}
	if media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err == nil && media == "multipart/form-data" {
		return a.uploadForm(c)
	}
	body, err := a.receiveBody(c.w, c.r, c.teamID)
	if err != nil {
		return err
	}
	defer body.Close()
	receipts, err := a.acceptUpload(c, "", body.Copy)
	if err != nil {
		return err
	}
	writeReceipts(c.w, receipts)
	return nil
}

func (a *API) acceptUpload(c *call, name string, content *intake.Copy) ([]dmarcd.Receipt, error) {
	defer a.bodyRead(c.w)()
	return c.service.Upload(c.r.Context(), name, content)
}

// maxParts limits the parts of a form.
const maxParts = 100

// uploadForm stores the reports in the files of a form. Together they may be as large as one
// upload.
func (a *API) uploadForm(c *call) error {
	maxBytes := a.options.MaxUpload
	if c.r.ContentLength > maxBytes {
		return errUploadTooLarge(maxBytes)
	}
	body := a.options.Uploads.Body(c.w, c.r, c.teamID)
	defer body.Close()
	c.r.Body = http.MaxBytesReader(c.w, io.NopCloser(body), maxBytes)
	form, err := c.r.MultipartReader()
	if err != nil {
		return errBadForm
	}
	var all []dmarcd.Receipt
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n == maxParts {
			return formError(err, maxBytes)
		}
		if part.FileName() == "" {
			continue
		}
		receipts, err := a.acceptPart(c, part)
		if err != nil {
			return err
		}
		all = append(all, receipts...)
	}
	if len(all) == 0 {
		return errEmptyBody
	}
	writeReceipts(c.w, all)
	return nil
}

// acceptPart stores the reports of one file of a form. It skips an empty one, which browsers
// send if no file was chosen.
func (a *API) acceptPart(c *call, part *multipart.Part) ([]dmarcd.Receipt, error) {
	content, err := a.options.Service.ReceiveUpload(part, a.options.MaxUpload)
	if err != nil {
		return nil, formError(err, a.options.MaxUpload)
	}
	defer content.Close()
	if content.Size() == 0 {
		return nil, nil
	}
	return a.acceptUpload(c, part.FileName(), content)
}

// formError maps an error from reading a form; nil means too many parts.
func formError(err error, maxBytes int64) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errUploadTooLarge(maxBytes)
	case errors.Is(err, dmarcd.ErrTemporary), errors.Is(err, dmarcd.ErrLimit), errors.Is(err, upload.ErrSlow):
		return bodyError(err, maxBytes)
	default:
		return errBadForm
	}
}

// receiveBody copies the body for repeated reads. The copy counts as one of the team's uploads
// until it is closed.
func (a *API) receiveBody(w http.ResponseWriter, r *http.Request, team dmarcd.TeamID) (*received, error) {
	maxBytes := a.options.MaxUpload
	if r.ContentLength > maxBytes {
		return nil, errUploadTooLarge(maxBytes)
	}
	body := a.options.Uploads.Body(w, r, team)
	content, err := a.options.Service.ReceiveUpload(body, maxBytes)
	a.beginAnswer(w)
	if err != nil {
		body.Close()
		return nil, bodyError(err, maxBytes)
	}
	if content.Size() == 0 {
		body.Close()
		content.Close()
		return nil, errEmptyBody
	}
	return &received{content, body}, nil
}

// bodyError maps an error from reading a body.
func bodyError(err error, maxBytes int64) error {
	switch {
	case errors.Is(err, dmarcd.ErrLimit):
		return errUploadTooLarge(maxBytes)
	case errors.Is(err, dmarcd.ErrTemporary):
		return err
	default:
		return errBodyCut
	}
}

type received struct {
	*intake.Copy
	body *upload.Body
}

func (r *received) Close() {
	r.Copy.Close()
	r.body.Close()
}

// beginAnswer sets the write deadline. The server's own deadline started with the request, which
// may be long ago.
func (a *API) beginAnswer(w http.ResponseWriter) {
	// Writers in tests have no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.options.WriteTimeout))
}

// bodyRead removes the time limit of a request whose body was read, because processing may
// wait for a slot. The returned function sets the limit of the response.
func (a *API) bodyRead(w http.ResponseWriter) (answer func()) {
	// The deadline would cancel the context as if the client had disconnected.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return func() { a.beginAnswer(w) }
}

// rejectedReceipts is the error body if nothing was accepted.
type rejectedReceipts struct {
	invalidRequest
	wire.Receipts
}

func writeReceipts(w http.ResponseWriter, receipts []dmarcd.Receipt) {
	status := receiptsStatus(receipts)
	items := wire.NewReceipts(receipts)
	if status == http.StatusUnprocessableEntity {
		w.Header().Set(errorHeader, codeNoReport)
		writeJSON(w, status, rejectedReceipts{
			newInvalidRequest(nil, codeNoReport, "The upload contains no valid report. It is stored as rejected; GET /insights/rejected lists the reasons."), items,
		})
		return
	}
	writeJSON(w, status, items)
}

// receiptsStatus is 201 if something is new, 200 if something is a duplicate, and 422 if
// nothing was accepted.
func receiptsStatus(receipts []dmarcd.Receipt) int {
	status := http.StatusUnprocessableEntity
	for _, receipt := range receipts {
		switch receipt.Status {
		case dmarcd.Stored, dmarcd.Replaced, dmarcd.Unclaimed, dmarcd.Held:
			return http.StatusCreated
		case dmarcd.Duplicate:
			status = http.StatusOK
		case dmarcd.StatusRejected:
		}
	}
	return status
}

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
		return &failure{http.StatusUnprocessableEntity, codeNoReport, "The body contains no valid TLS report: " + strings.TrimSuffix(none.Reason, ".") + "."}
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
