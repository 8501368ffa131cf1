package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) addDomain(c *call) error {
	body := readObject(c, "domain", `{"domain": "example.com"}`)
	input := body.text("domain")
	if body.err != nil {
		return body.err
	}
	domain, err := c.service.AddDomain(c.r.Context(), input)
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		return errDomainExists
	case errors.As(err, new(*dmarcd.QuotaError)):
		return errQuota
	case err != nil:
		return err
	}
	c.w.Header().Set("Location", a.baseURL+"/domains/"+domain.Name)
	return c.writeJSON(http.StatusCreated, wire.NewDomain(domain))
}

func (a *API) getDomain(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewDomain(domain))
}

func (a *API) deleteDomain(c *call) error {
	return c.deleted(c.service.DeleteDomain(c.r.Context(), c.params.Get("domain")), errNoSuchDomain)
}

// verifyError is the only error body of the interface with a code.
type verifyError struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

func (a *API) verifyDomain(c *call) error {
	domain, check, err := c.service.Verify(c.r.Context(), c.params.Get("domain"))
	if errors.Is(err, dmarcd.ErrNotFound) {
		c.w.Header().Set(errorHeader, errNoSuchDomain.code)
		return c.writeJSON(http.StatusNotFound, verifyError{Error: errNoSuchDomain.message, Code: errNoSuchDomain.code})
	}
	if err != nil {
		return err
	}
	outcome := "conclusive"
	if !check.Conclusive {
		outcome = "inconclusive"
		c.w.Header().Set("Dmarcd-Check-Reason", check.Reason)
	}
	c.w.Header().Set("Dmarcd-Check", outcome)
	return c.writeJSON(http.StatusOK, wire.NewDomain(domain))
}

const (
	// A list without a limit is read in parts, to limit memory. The first part is small, so that
	// the client gets it early.
	firstPart = 100
	nextPart  = 400
	// worthCompressing is the minimum number of items of a compressed list.
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

// namedDomain returns the domain of the path.
func namedDomain(c *call) (dmarcd.Domain, error) {
	domain, err := c.service.Domain(c.r.Context(), c.params.Get("domain"))
	return domain, missing(err, errNoSuchDomain)
}

func (a *API) latestCheck(c *call) error {
	file := c.query.file()
	if c.query.err != nil {
		return c.query.err
	}
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	latest, err := c.service.LatestCheck(c.r.Context(), domain)
	if errors.Is(err, dmarcd.ErrNotFound) && !domain.CheckedAt.IsZero() && domain.KnownAt.IsZero() {
		latest, err = facts.Unanswered(domain.Name, domain.CheckedAt), nil
	}
	if err != nil {
		return missing(err, errNotCheckedYet)
	}
	if file.asked {
		return c.writeFile(file, domain.Name, latest.Check.DNSRecords())
	}
	return c.writeCacheable(wire.NewStoredCheck(latest))
}

func (a *API) listChecks(c *call) error {
	limit, after := c.query.cursor()
	within := service.TimesOf(c.query.days())
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	checks, err := c.service.Checks(c.r.Context(), domain, within, after, limit+1)
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(checks, limit, func(check facts.StoredCheck) string {
		return wire.FormatCursor(check.FirstAt, int64(check.ID))
	}, wire.NewStoredCheck))
}

// readPart returns the part that the parameter kind names, "" if absent.
func readPart(q *query) facts.Part {
	return word(q, "kind", facts.Parts()...)
}

// listChanges lists the checks of all domains that found changes in DNS.
func (a *API) listChanges(c *call) error {
	limit, after := c.query.cursor()
	filter := service.ChangeFilter{Domain: c.query.domain(), Part: readPart(c.query), Times: service.TimesOf(c.query.days())}
	team := tagged(c)
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	changes, err := team.DomainChanges(c.r.Context(), filter, after, limit+1)
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(changes, limit, func(change facts.DomainChange) string {
		return wire.FormatCursor(change.At, int64(change.ID))
	}, wire.NewDomainChange))
}

// setup returns the records to publish and whether the latest check found them. It makes no
// DNS queries.
func (a *API) setup(c *call) error {
	file := c.query.file()
	if c.query.err != nil {
		return c.query.err
	}
	setup, err := c.service.Setup(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	if file.asked {
		return c.writeFile(file, setup.Domain.Name, setup.DNSRecords())
	}
	return c.writeCacheable(wire.NewSetup(setup))
}

func (a *API) selfTest(c *call) error {
	answer := a.bodyRead(c.w)
	test, err := c.service.SelfTest(c.r.Context(), c.params.Get("domain"))
	answer()
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeJSON(http.StatusOK, wire.NewSelfTest(test))
}

// tagged returns the use cases of the team, limited to the domains with the tag in the query, if
// any.
func tagged(c *call) *service.Team {
	if !c.query.Has("tag") {
		return c.service
	}
	tag, err := dmarcd.ParseTag(c.query.Get("tag"))
	if err != nil {
		c.query.reject("tag", "The parameter tag must be a tag: letters, digits, hyphens, underscores and dots.")
	}
	return c.service.Tagged(tag)
}

func (a *API) getTags(c *call) error {
	tags, err := c.service.DomainTags(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeCacheable(wire.NewTags(tags))
}

func (a *API) setTags(c *call) error {
	body := readObject(c, "tags", `{"tags": ["shop", "eu"]}`)
	tags := body.texts("tags")
	if body.err != nil {
		return body.err
	}
	tags, err := c.service.SetTags(c.r.Context(), c.params.Get("domain"), tags)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeJSON(http.StatusOK, wire.NewTags(tags))
}

// setPurpose declares what a domain is used for.
func (a *API) setPurpose(c *call) error {
	const member = "domain_usage_purpose"
	body := readObject(c, member, `{"domain_usage_purpose": "business"}`)
	var purpose dmarcd.Purpose
	if body.states(member) {
		purpose = dmarcd.Purpose(body.text(member))
	}
	if _, err := dmarcd.ParsePurpose(string(purpose)); !body.has(member) || purpose != "" && err != nil || purpose == "none" {
		body.reject(member, `The member "domain_usage_purpose" is required: business, personal, education, nonprofit or null.`)
	}
	return changeDomain(c, body, func(name string) (any, error) {
		if err := c.service.SetPurpose(c.r.Context(), name, purpose); err != nil {
			return nil, err
		}
		domain, err := c.service.Domain(c.r.Context(), name)
		return wire.NewDomain(domain), err
	})
}
