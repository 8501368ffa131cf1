package web

import (
	"net/url"

	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// mailQuery selects mail and its grouping.
type mailQuery struct {
	// Domain limits it to one domain of the team, "" for all. Tag is the tag of the page,
	// which links keep.
	Domain, Tag string
	Period      ui.Period
	// Carried are the parameters that links keep; see carried.
	Carried url.Values
	insight.Query
}

// mailReader reads the mail of a page. Several parts of a page share one read.
type mailReader struct {
	read   *insight.Mail // nil before the first read
	domain string
	period ui.Period
	// reserved releases the reserved memory, nil if none is reserved.
	reserved func()
}

// release releases the memory of the page.
func (m *mailReader) release() {
	if m.read != nil {
		m.read.Close()
		m.read = nil
	}
	if m.reserved != nil {
		m.reserved()
		m.reserved = nil
	}
}

// mailOf returns the mail of a query. An unknown domain is dmarcd.ErrNotFound.
func (c *call) mailOf(query mailQuery) (*insight.Mail, error) {
	m := &c.mail
	if m.read != nil && m.domain == query.Domain && m.period == query.Period {
		return m.read, nil
	}
	if m.read != nil {
		m.read.Close()
		m.read = nil
	}
	var name string
	if query.Domain != "" {
		domain, err := c.team.Domain(c.r.Context(), query.Domain)
		if err != nil {
			return nil, err
		}
		name = domain.Name
	}
	mail, err := c.team.Mail(c.r.Context(), name, query.Period.Days())
	if err != nil {
		return nil, err
	}
	m.read, m.domain, m.period = mail, query.Domain, query.Period
	return mail, nil
}
