package api

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/upload"
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

// formError maps an error of reading a form; nil is for too many parts.
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

// bodyError maps an error of reading a body.
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

// beginAnswer sets the write deadline. The server's own one counts from the start of the
// request, which may be long ago.
func (a *API) beginAnswer(w http.ResponseWriter) {
	// Writers in tests have no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.options.WriteTimeout))
}
