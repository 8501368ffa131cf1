package web

import (
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recordfile"
	"github.com/dmarcd/dmarcd/internal/web/site"
)

// newRecord returns a record for the form recordfile.
func newRecord(name, kind, value string) dmarcd.DNSRecord {
	return dmarcd.DNSRecord{Name: name, Type: kind, Data: value}
}

// recordFile sends the record in the query as a file for the tool that manages its zone.
func (s *Web) recordFile(c *site.Call) error {
	query := c.R.URL.Query()
	format, err := recordfile.Parse(query.Get("format"))
	if err != nil {
		return err
	}
	record := newRecord(query.Get("name"), query.Get("type"), query.Get("value"))
	zone, err := c.Team.Zone(c.R.Context(), record.Name)
	if err != nil {
		return err
	}
	text, err := format.File(zone, []dmarcd.DNSRecord{record})
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": format.FileName(zone)}))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if c.R.Method != http.MethodHead {
		_, _ = io.WriteString(c.W, text) // the client notices a short file by its length
	}
	return nil
}
