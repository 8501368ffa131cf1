package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
)

func (a *API) getReportOriginal(c *call) error {
	report, err := namedReport(c)
	if err != nil {
		return err
	}
	original, err := c.service.ReportOriginal(c.r.Context(), report.ID)
	if err != nil {
		return missing(err, errOriginalGone)
	}
	return a.writeOriginal(c, report.ID.String(), original)
}

func (a *API) getRejectedOriginal(c *call) error {
	rejected, err := namedRejected(c)
	if err != nil {
		return err
	}
	original, err := c.service.RejectedOriginal(c.r.Context(), rejected.ID)
	if err != nil {
		return missing(err, errOriginalGone)
	}
	return a.writeOriginal(c, rejected.ID.String(), original)
}

// originalPart is the size of a part.
const originalPart = 64 << 10

// writeOriginal sends the original bytes. They are not trusted: browsers must not render them,
// and we choose the file name.
func (a *API) writeOriginal(c *call, name string, original dmarcd.StoredOriginal) error {
	content := intake.Unpack(original.Packed)
	part := make([]byte, originalPart)
	// Read the first part before the status, so that a database error can still be reported.
	n, err := io.ReadFull(content, part)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	header := c.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	header.Set("Content-Length", strconv.FormatInt(original.Size, 10))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "private, no-cache")
	if c.r.Method == http.MethodHead {
		return nil
	}
	control, deadline := http.NewResponseController(c.w), a.partDeadline()
	for n > 0 {
		// Writers in tests have no deadlines.
		_ = control.SetWriteDeadline(deadline())
		if _, failed := c.w.Write(part[:n]); failed != nil {
			return nil //nolint:nilerr // the client left
		}
		if err != nil {
			return nil //nolint:nilerr // this was the end
		}
		n, err = io.ReadFull(content, part)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			// The status is sent. Only a broken connection can show that the file is
			// incomplete.
			a.options.Log.WarnContext(c.r.Context(), "sending an original failed", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}
