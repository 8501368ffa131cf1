package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// The first part of a list is small, so that the client sees it soon.
	firstPart = 100
	nextPart  = 1000
	// worthCompressing is how many domains a list has before it is.
	worthCompressing = 10
)

// listDomains writes the team's domains, all of them or a page. It reads the
// list in parts, each by a query of its own: neither memory nor a connection of
// the database is held for as long as a slow client reads.
func (a *API) listDomains(c *call) error {
	p, err := readPage(c)
	if err != nil {
		return err
	}
	want := firstPart
	if p.limit > 0 {
		want = p.limit + 1 // one more tells whether there is a next page
	}
	part, err := c.service.Domains(c.r.Context(), p.after, want)
	if err != nil {
		return err
	}
	more := len(part) == want
	if p.limit > 0 && more {
		part = part[:p.limit]
		next := url.Values{"limit": {strconv.Itoa(p.limit)}, "after": {part[len(part)-1].Name}}
		c.w.Header().Set("Link", "<"+a.baseURL+"/domains?"+next.Encode()+`>; rel="next"`)
		more = false
	}
	list := a.newList(c, len(part) >= worthCompressing)
	for err = list.add(part); err == nil && more; err = list.add(part) {
		part, err = c.service.Domains(c.r.Context(), part[len(part)-1].Name, nextPart)
		if err != nil {
			break
		}
		more = len(part) == nextPart
	}
	if err == nil {
		err = list.close()
	}
	if err != nil {
		// The status is out. A broken connection is the only way left to say
		// that the list is not complete.
		a.options.Log.WarnContext(c.r.Context(), "sending the list of domains failed", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// list writes a JSON array of domains, part by part.
type list struct {
	out      io.Writer
	zip      *gzip.Writer // nil: not compressed
	control  *http.ResponseController
	deadline func() time.Time
	begun    bool
}

func (a *API) newList(c *call, long bool) *list {
	header := c.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "private, no-cache")
	header.Add("Vary", "Accept-Encoding")
	l := &list{out: c.w, control: http.NewResponseController(c.w), deadline: a.partDeadline()}
	if long && httproute.AcceptsGzip(c.r) {
		header.Set("Content-Encoding", "gzip")
		l.zip, _ = gzip.NewWriterLevel(c.w, gzip.BestSpeed) // the level exists
		l.out = l.zip
	}
	return l
}

func (l *list) add(domains []dmarcd.Domain) error {
	var buffer bytes.Buffer
	for _, d := range domains {
		separator := byte(',')
		if !l.begun {
			separator, l.begun = '[', true
		}
		buffer.WriteByte(separator)
		buffer.Write(bytes.TrimSuffix(encode(wire.NewDomain(d)), []byte("\n")))
	}
	return l.send(buffer.Bytes())
}

// send writes and lets the client have it, within a time that begins anew.
func (l *list) send(data []byte) error {
	// Not every writer has deadlines; a server's has.
	_ = l.control.SetWriteDeadline(l.deadline())
	if _, err := l.out.Write(data); err != nil {
		return err
	}
	if l.zip != nil {
		if err := l.zip.Flush(); err != nil {
			return err
		}
	}
	return l.control.Flush()
}

func (l *list) close() error {
	end := "]\n"
	if !l.begun {
		end = "[]\n"
	}
	if _, err := io.WriteString(l.out, end); err != nil {
		return err
	}
	if l.zip != nil {
		return l.zip.Close()
	}
	return nil
}
