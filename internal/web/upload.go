package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type uploadView struct {
	// MaxUpload limits a file, in bytes.
	MaxUpload int64
	// Receipts is the result of an upload.
	Receipts ui.Table
}

// readFile is a file and its result.
type readFile struct {
	name     string // "" if unknown
	receipts []dmarcd.Receipt
}

const uploadPath = Prefix + "/reports/upload"

func uploadFrame() Page {
	return Page{Template: "upload", Title: "Upload", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}}}
}

func (s *Web) uploadPage(c *call) error {
	return c.render(http.StatusOK, uploadFrame(), uploadView{MaxUpload: s.options.MaxUpload})
}

// uploadTime limits receiving, queueing and storing all files of an upload, instead of
// the server's limit for a response.
const uploadTime = 10 * time.Minute

// maxFiles limits the files of an upload: all their receipts are in memory.
const maxFiles = 1000

// upload reads the files of a form one by one, as streams. A script only asks for the
// receipts.
func (s *Web) upload(c *call) error {
	// Some writers have no deadlines; that of the server does.
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
		if len(read) == maxFiles {
			return &dmarcd.InvalidError{Field: "file", Message: "The first 1,000 files are stored, which is the most at once. Send the others again, or all of them in one archive."}
		}
		receipts, err := c.uploadFile(part)
		if err != nil {
			return err
		}
		read = append(read, readFile{part.FileName(), receipts})
	}
	if len(read) == 0 {
		return &dmarcd.InvalidError{Field: "file", Message: "No file was sent. Choose one or more report files."}
	}
	view := uploadView{s.options.MaxUpload, receiptTable(read...)}
	if c.wantsFragment() {
		return c.fragment(uploadFrame(), "receipts", view)
	}
	return c.render(http.StatusOK, uploadFrame(), view)
}

func (c *call) uploadFile(part *multipart.Part) ([]dmarcd.Receipt, error) {
	options := c.web.options
	content, err := options.Service.ReceiveUpload(part, options.MaxUpload)
	if err != nil {
		return nil, brokenUpload(err)
	}
	defer content.Close()
	return c.team.Upload(c.r.Context(), part.FileName(), content)
}

// brokenUpload distinguishes a body that is too large, and problems of ours, from a broken body.
func brokenUpload(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge
	case errors.Is(err, dmarcd.ErrTemporary), errors.Is(err, dmarcd.ErrLimit):
		return err
	}
	return errBadForm
}

func receiptTable(read ...readFile) ui.Table {
	t := ui.Table{
		ID: "receipts", Caption: "Result",
		Columns: []ui.Column{
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
			status := ui.Badge(string(r.Status)).Noted(r.Reason)
			if r.Status == dmarcd.Unclaimed {
				status = status.Noted("It will be counted when the team adds the domain.")
			}
			if r.Status != dmarcd.StatusRejected {
				status = status.Linked(Prefix + "/reports/" + r.ID.String())
			}
			name := ui.Text(file.name).Noted(r.Member)
			if file.name == "" {
				name = ui.Text(r.Member)
			}
			t.Rows = append(t.Rows, []ui.Cell{
				status, name, ui.Text(string(r.Kind)), ui.Text(r.Organization).Noted(r.ExternalID), ui.Text(r.Domain), ui.Count(int64(r.Records)), ui.Count(r.Messages),
			})
		}
	}
	return t
}
