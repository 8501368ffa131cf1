package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type uploadView struct {
	// MaxUpload limits a file, in bytes.
	MaxUpload int64
	// Problem says why files were not read, "" if all were.
	Problem string
	// Receipts is the result of an upload.
	Receipts ui.Table
}

// readFile is a file and its result.
type readFile struct {
	name     string // "" if unknown
	receipts []dmarcd.Receipt
}

const uploadPath = Prefix + "/reports/upload"

func uploadFrame() site.Page {
	return site.Page{Template: "upload", Title: "Upload", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}}}
}

func (s *Web) uploadPage(c *site.Call) error {
	return c.Render(http.StatusOK, uploadFrame(), uploadView{MaxUpload: s.options.MaxUpload})
}

// uploadTime limits receiving, queueing and storing all files of an upload, instead of
// the server's limit for a response.
const uploadTime = 10 * time.Minute

// maxFiles limits the files of an upload: all their receipts are in memory.
const maxFiles = 1000

// upload stores the files of a form. A script gets only the receipts.
func (s *Web) upload(c *site.Call) error {
	read, err := s.readUpload(c)
	view := uploadView{MaxUpload: s.options.MaxUpload, Receipts: receiptTable(read...)}
	var invalid *dmarcd.InvalidError
	switch {
	case errors.As(err, &invalid):
		view.Problem = invalid.Message
		return c.Render(http.StatusUnprocessableEntity, uploadFrame(), view)
	case err != nil:
		return err
	case c.WantsFragment():
		return c.Fragment(uploadFrame(), "receipts", view)
	}
	return c.Render(http.StatusOK, uploadFrame(), view)
}

// readUpload streams the files of a form, one after another. It returns those that were read, also
// beside an InvalidError.
func (s *Web) readUpload(c *site.Call) (read []readFile, err error) {
	// The server's writer supports deadlines; writers in tests may not.
	_ = http.NewResponseController(c.W).SetWriteDeadline(time.Now().Add(uploadTime))
	body := s.options.Uploads.Body(c.W, c.R, c.Viewer.Team.ID)
	defer body.Close()
	c.R.Body = http.MaxBytesReader(c.W, io.NopCloser(body), s.options.MaxUpload)
	parts, err := c.R.MultipartReader()
	if err != nil {
		return nil, site.ErrBadForm
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, brokenUpload(err)
		}
		if part.FileName() == "" {
			continue
		}
		if len(read) == maxFiles {
			return read, &dmarcd.InvalidError{Field: "file", Message: "The first 1,000 files are stored, which is the most at once. Send the others again, or all of them in one archive."}
		}
		receipts, err := s.uploadFile(c, part)
		if err != nil {
			return nil, err
		}
		read = append(read, readFile{part.FileName(), receipts})
	}
	if len(read) == 0 {
		return nil, &dmarcd.InvalidError{Field: "file", Message: "No file was sent. Choose one or more report files."}
	}
	return read, nil
}

func (s *Web) uploadFile(c *site.Call, part *multipart.Part) ([]dmarcd.Receipt, error) {
	content, err := s.options.Service.ReceiveUpload(part, s.options.MaxUpload)
	if err != nil {
		return nil, brokenUpload(err)
	}
	defer content.Close()
	return c.Team.Upload(c.R.Context(), part.FileName(), content)
}

// brokenUpload returns ErrTooLarge for a body above the limit, temporary errors and limits
// unchanged, and ErrBadForm for anything else.
func brokenUpload(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return site.ErrTooLarge
	case errors.Is(err, dmarcd.ErrTemporary), errors.Is(err, dmarcd.ErrLimit):
		return err
	}
	return site.ErrBadForm
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
			status := ui.Badge(string(r.Status)).Noted(reasonSentence(r.Reason))
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
