package web

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
)

type uploadView struct {
	// MaxUpload bounds a file, in bytes.
	MaxUpload int64
	receiptsView
}

// receiptsView is what became of something that was read.
type receiptsView struct {
	Receipts Table
	// Sent tells that something was read.
	Sent bool
}

// readFile is a file, and what came of reading it.
type readFile struct {
	name     string // "" where it is not told
	receipts []dmarcd.Receipt
}

// uploadPath is where reports are uploaded.
const uploadPath = Prefix + "/reports/upload"

func uploadFrame() Page {
	return Page{Template: "upload", Title: "Upload", Section: "Reports", Trail: []Link{{"Reports", Prefix + "/reports"}}}
}

func (s *Web) uploadPage(c *call) error {
	return c.render(http.StatusOK, uploadFrame(), uploadView{MaxUpload: s.options.MaxUpload})
}

// uploadTime is how long the files of an upload may take to be received, to wait for
// their turn and to be stored, in place of the server's limit for an answer.
const uploadTime = 10 * time.Minute

// upload takes the files of a form one after the other, without holding any of
// them in memory. A script asks for the receipts alone.
func (s *Web) upload(c *call) error {
	// Not every writer has deadlines; a server's has.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(uploadTime))
	body := s.options.Uploads.Body(c.w, c.r, c.viewer.Team.ID)
	defer body.Close()
	c.r.Body = http.MaxBytesReader(c.w, io.NopCloser(body), s.options.MaxUpload)
	parts, err := c.r.MultipartReader()
	if err != nil {
		return errBadForm
	}
	var read []readFile
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
		receipts, err := c.uploadFile(part)
		if err != nil {
			return err
		}
		read = append(read, readFile{part.FileName(), receipts})
	}
	if len(read) == 0 {
		return &dmarcd.InvalidError{Field: "file", Message: "No file was sent. Choose one or more files with reports."}
	}
	view := uploadView{s.options.MaxUpload, receiptsView{receiptTable(read...), true}}
	if c.wantsFragment() {
		return c.fragment(uploadFrame(), "receipts", view)
	}
	return c.render(http.StatusOK, uploadFrame(), view)
}

func (c *call) uploadFile(part *multipart.Part) ([]dmarcd.Receipt, error) {
	options := c.web.options
	content, err := options.Service.ReceiveUpload(part, options.MaxUpload)
	if err != nil {
		return nil, fmt.Errorf("receive an upload: %w", err)
	}
	defer content.Close()
	return c.team.Upload(c.r.Context(), part.FileName(), content)
}

// brokenUpload tells a body that is too large from one that is broken.
func brokenUpload(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge
	case errors.Is(err, dmarcd.ErrTemporary):
		return err
	}
	return errBadForm
}

func receiptTable(read ...readFile) Table {
	t := Table{
		ID: "receipts", Caption: "What became of it",
		Columns: []Column{
			{Title: "Result", Wide: true},
			{Title: "File", Wide: true},
			{Title: "Kind"},
			{Title: "Reporter", Wide: true},
			{Title: "Domain", Wide: true},
			{Title: "Records", Numeric: true},
			{Title: "Messages", Numeric: true},
		},
	}
	for _, file := range read {
		for _, r := range file.receipts {
			status := badge(string(r.Status)).noted(r.Reason)
			if r.Status == dmarcd.Unclaimed {
				status = status.noted("It counts once the team has the domain.")
			}
			if r.Status != dmarcd.Refused {
				status = status.linked(Prefix + "/reports/" + r.ID.String())
			}
			name := text(file.name).noted(r.Member)
			if file.name == "" {
				name = text(r.Member)
			}
			t.Rows = append(t.Rows, []Cell{
				status, name, text(string(r.Kind)), text(r.Organization).noted(r.ExternalID), text(r.Domain), count(int64(r.Records)), count(r.Messages),
			})
		}
	}
	return t
}
