package web

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
)

type uploadView struct {
	// MaxUpload bounds a file, in bytes.
	MaxUpload int64
	// Receipts is what became of the last upload; Sent tells that there was one.
	Receipts Table
	Sent     bool
}

func uploadFrame() Page {
	return Page{Template: "upload", Title: "Upload", Section: "Reports", Trail: []Link{{"Reports", Prefix + "/reports"}}}
}

func newUploadView(maxUpload int64, receipts []dmarcd.Receipt) uploadView {
	return uploadView{MaxUpload: maxUpload, Receipts: receiptTable(receipts), Sent: true}
}

func (s *Web) uploadPage(c *call) error {
	return c.render(http.StatusOK, uploadFrame(), uploadView{MaxUpload: s.options.MaxUpload})
}

// uploadTime is how long an upload may take, in place of the server's limit for a
// request: whoever is signed in may have a slow line.
const uploadTime = 10 * time.Minute

// upload takes the files of a form one after the other, without holding any of
// them in memory. A script asks for the receipts alone.
func (s *Web) upload(c *call) error {
	// Not every writer has deadlines; a server's has.
	control, until := http.NewResponseController(c.w), time.Now().Add(uploadTime)
	_, _ = control.SetReadDeadline(until), control.SetWriteDeadline(until)
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, s.options.MaxUpload)
	parts, err := c.r.MultipartReader()
	if err != nil {
		return errBadForm
	}
	var receipts []dmarcd.Receipt
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return brokenUpload(err)
		}
		if part.FileName() == "" {
			continue
		}
		came, err := c.team.Reports.Upload(c.r.Context(), part.FileName(), part)
		if err != nil {
			return err
		}
		receipts = append(receipts, came...)
	}
	if len(receipts) == 0 {
		return &dmarcd.InvalidError{Field: "file", Message: "No file was sent. Choose one or more files with reports."}
	}
	view := newUploadView(s.options.MaxUpload, receipts)
	if c.wantsFragment() {
		return c.fragment(uploadFrame(), "receipts", view)
	}
	return c.render(http.StatusOK, uploadFrame(), view)
}

// brokenUpload tells a body that is too large from one that is broken.
func brokenUpload(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errTooLarge
	}
	return errBadForm
}

func receiptTable(receipts []dmarcd.Receipt) Table {
	t := Table{
		ID: "receipts", Caption: "What became of the upload",
		Columns: []Column{
			{Title: "Result"},
			{Title: "Kind"},
			{Title: "Reporter", Wide: true},
			{Title: "Domain"},
			{Title: "Records", Numeric: true},
			{Title: "Messages", Numeric: true},
			{Title: "Where", Wide: true},
		},
	}
	for _, r := range receipts {
		status := badge(string(r.Status)).noted(r.Reason)
		if r.Status != dmarcd.Refused {
			status = status.linked(Prefix + "/reports/" + r.ID.String())
		}
		t.Rows = append(t.Rows, []Cell{
			status, text(string(r.Kind)), text(r.Organization).noted(r.ExternalID), text(r.Domain), count(int64(r.Records)), count(r.Messages), text(r.Member),
		})
	}
	return t
}
