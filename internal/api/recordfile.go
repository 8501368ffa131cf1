package api

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recordfile"
)

// fileQuery is the file of records that a query asks for.
type fileQuery struct {
	// asked is false if the answer is JSON.
	asked  bool
	format recordfile.Format
	// zone is "" for the zone of the domain.
	zone string
}

// file returns the parameters format and zone.
func (q *query) file() (file fileQuery) {
	var err error
	if file.asked = q.Has("format"); file.asked {
		file.format, err = recordfile.Parse(q.Get("format"))
		q.fail("format", err)
	}
	if q.Has("zone") {
		if file.zone, err = dmarcd.ParseName(q.Get("zone")); err != nil || !file.asked {
			q.reject("zone", "The parameter zone must be the name of a zone, such as example.com, together with format.")
		}
	}
	return file
}

// writeFile answers with the records of a zone as a file.
func (c *call) writeFile(file fileQuery, domain string, records []dmarcd.DNSRecord) error {
	if file.zone == "" {
		var err error
		if file.zone, err = c.service.Zone(c.r.Context(), domain); err != nil {
			return err
		}
	}
	text, err := file.format.File(file.zone, records)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Disposition", `attachment; filename="`+file.format.FileName(file.zone)+`"`)
	return c.writeCacheableBody("text/plain; charset=utf-8", []byte(text))
}
