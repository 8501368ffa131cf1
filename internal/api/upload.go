package api

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
)

// uploadReport reads the body, whatever container it is and whatever it calls
// itself, and has the team keep what is in it.
func (a *API) uploadReport(c *call) error {
	if c.r.Header.Get("Content-Encoding") != "" {
		return errContentEncoding
	}
	body, err := a.receiveBody(c.w, c.r)
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

const (
	// An upload may take uploadGrace whatever its size, and must come with
	// uploadRate bytes a second after that: a slow line is waited for, somebody
	// who only wants to hold a connection is not.
	uploadGrace = 30 * time.Second
	uploadRate  = 8 << 10
)

// receiveBody copies the body of a request to where it can be read more than once.
// The copy must be closed.
func (a *API) receiveBody(w http.ResponseWriter, r *http.Request) (*intake.Copy, error) {
	maxBytes := a.options.MaxUpload
	if r.ContentLength > maxBytes {
		return nil, errUploadTooLarge(maxBytes)
	}
	patient := &patientBody{body: r.Body, control: http.NewResponseController(w), began: time.Now()}
	body, err := intake.CopyOf(patient, a.options.Acceptor.Limits.Containers.Folder, maxBytes)
	a.beginAnswer(w)
	switch {
	case errors.Is(err, dmarcd.ErrLimit):
		return nil, errUploadTooLarge(maxBytes)
	case errors.Is(err, dmarcd.ErrTemporary):
		return nil, err
	case err != nil:
		return nil, errBodyCut
	case body.Size() == 0:
		return nil, errEmptyBody
	}
	return body, nil
}

// beginAnswer gives the answer its time. The server's own clock runs since the
// request began, which may have been long ago.
func (a *API) beginAnswer(w http.ResponseWriter) {
	// Not every writer has deadlines; a server's has.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.options.WriteTimeout))
}

// patientBody is a body that must keep coming, in place of the server's time limit
// for the whole of a request.
type patientBody struct {
	body     io.Reader
	control  *http.ResponseController
	began    time.Time
	received int64
}

func (b *patientBody) Read(p []byte) (int, error) {
	earned := time.Duration(b.received/uploadRate) * time.Second
	// Not every writer has deadlines; a server's has.
	_ = b.control.SetReadDeadline(b.began.Add(uploadGrace + earned))
	n, err := b.body.Read(p)
	b.received += int64(n)
	return n, err
}
