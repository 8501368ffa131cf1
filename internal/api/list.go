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
	// A list without limit is read in parts, so that few domains are in memory at once. The first
	// part is small, so that the client gets it early.
	firstPart = 100
	nextPart  = 400
	// worthCompressing is the number of items from which a list is compressed.
	worthCompressing = 10
)

// listDomains writes all domains or a page. It reads the list in parts with separate queries,
// so that a slow client holds neither memory nor a connection.
func (a *API) listDomains(c *call) error {
	limit, after := c.query.limit(0), c.query.Get("after") // 0: all
	if after != "" {
		var err error
		if after, err = dmarcd.ParseName(after); err != nil {
			c.query.reject("after", "The parameter after must be the last domain name of the previous page.")
		}
	}
	want := firstPart
	if limit > 0 {
		want = limit + 1 // one more shows whether there is a next page
	}
	team := tagged(c)
	if err := c.reserveRows(want); err != nil {
		return err
	}
	part, err := team.Domains(c.r.Context(), after, want)
	if err != nil {
		return err
	}
	more := len(part) == want
	if limit > 0 && more {
		part = part[:limit]
		next := url.Values{"limit": {strconv.Itoa(limit)}, "after": {part[len(part)-1].Name}}
		if tag := c.query.Get("tag"); tag != "" {
			next.Set("tag", tag)
		}
		c.w.Header().Set("Link", "<"+a.baseURL+"/domains?"+next.Encode()+`>; rel="next"`)
		more = false
	}
	list := a.newList(c, len(part) >= worthCompressing)
	list.addDomains(part)
	c.encoded()
	for err = list.send(); err == nil && more; err = list.send() {
		if err = c.awaitTurn(nextPart); err != nil {
			break
		}
		part, err = team.Domains(c.r.Context(), part[len(part)-1].Name, nextPart)
		if err == nil {
			err = a.stillAllowed(c)
		}
		if err != nil {
			break
		}
		list.addDomains(part)
		c.encoded()
		more = len(part) == nextPart
	}
	if err == nil {
		err = list.close()
	}
	if err != nil {
		// The status is sent. Only a broken connection can show that the list is incomplete.
		a.options.Log.WarnContext(c.r.Context(), "sending the list of domains failed", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// list writes a response in parts: with addDomains a JSON array of domains.
type list struct {
	out      io.Writer
	part     bytes.Buffer // what is to be sent
	zip      *gzip.Writer // into part; nil: not compressed
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
		l.zip, _ = gzip.NewWriterLevel(&l.part, gzip.BestSpeed) // the level exists
	}
	return l
}

func (l *list) addDomains(domains []dmarcd.Domain) {
	var buffer bytes.Buffer
	for _, d := range domains {
		separator := byte(',')
		if !l.begun {
			separator, l.begun = '[', true
		}
		buffer.WriteByte(separator)
		buffer.Write(bytes.TrimSuffix(encode(wire.NewDomain(d)), []byte("\n")))
	}
	l.add(buffer.Bytes())
}

// add adds data to the next part, without waiting for the client.
func (l *list) add(data []byte) {
	if l.zip == nil {
		l.part.Write(data)
		return
	}
	_, _ = l.zip.Write(data) // a buffer has no errors
	_ = l.zip.Flush()
}

// send writes and flushes the part with a new deadline.
func (l *list) send() error {
	// Writers in tests have no deadlines.
	_ = l.control.SetWriteDeadline(l.deadline())
	_, err := l.part.WriteTo(l.out)
	if err != nil {
		return err
	}
	return l.control.Flush()
}

func (l *list) close() error {
	end := "]\n"
	if !l.begun {
		end = "[]\n"
	}
	l.add([]byte(end))
	return l.finish()
}

// finish sends the rest and the end of the compressed data.
func (l *list) finish() error {
	if l.zip != nil {
		_ = l.zip.Close() // a buffer has no errors
	}
	_, err := l.part.WriteTo(l.out)
	return err
}
