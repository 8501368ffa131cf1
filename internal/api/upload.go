package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/upload"
)

// uploadReport reads the body, whatever container it is and whatever it calls
// itself, and has the team keep what is in it.
func (a *API) uploadReport(c *call) error {
	if c.r.Header.Get("Content-Encoding") != "" {
		return errContentEncoding
	}
	body, err := a.receiveBody(c.w, c.r, c.teamID)
	if err != nil {
		return err
	}
	defer body.Close()
	message := intake.Message{Team: c.teamID, Intake: dmarcd.IntakeUpload, Content: body, Size: body.Size()}
	if a.options.Verify != nil {
		message.Verdict = a.options.Verify(c.r.Context(), body.Reader())
	}
	receipts, err := a.accept(c.w, c.r, c.team, message, asRead)
	if err != nil {
		return err
	}
	writeReceipts(c.w, receipts)
	return nil
}

// receiveBody copies the body of a request to where it can be read more than once. The
// copy must be closed, and counts as one of the uploads of the team until then.
func (a *API) receiveBody(w http.ResponseWriter, r *http.Request, team dmarcd.TeamID) (*received, error) {
	if err := a.options.Acceptor.Ready(); err != nil {
		return nil, err
	}
	maxBytes := a.options.MaxUpload
	if r.ContentLength > maxBytes {
		return nil, errUploadTooLarge(maxBytes)
	}
	body := a.options.Uploads.Body(w, r, team)
	content, err := intake.CopyOf(body, a.options.Acceptor.Limits.Containers.Folder, maxBytes)
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

// bodyError returns what to answer where a body could not be received.
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

// received is the copy of a body.
type received struct {
	*intake.Copy
	body *upload.Body
}

func (r *received) Close() {
	r.Copy.Close()
	r.body.Close()
}

// beginAnswer gives the answer its time. The server's own clock runs since the
// request began, which may have been long ago.
func (a *API) beginAnswer(w http.ResponseWriter) {
	// Not every writer has deadlines; a server's has.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.options.WriteTimeout))
}
