package api

import (
	"net/url"

	"github.com/dmarcd/dmarcd"
)

// maxPage limits the page size.
const maxPage = 1000

func query(c *call) (url.Values, error) {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, &dmarcd.InvalidError{Message: "The query is malformed. Percent-encode its values."}
	}
	return values, nil
}

// page is the requested part of a list.
type page struct {
	limit int    // 0: all
	after string // "": from the start
}

func readPage(c *call) (page, error) {
	values, err := query(c)
	if err != nil {
		return page{}, err
	}
	var p page
	if values.Has("limit") {
		if p.limit, err = readLimit(values.Get("limit")); err != nil {
			return page{}, err
		}
	}
	if after := values.Get("after"); after != "" {
		if p.after, err = dmarcd.ParseName(after); err != nil {
			return page{}, &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the last domain name of the previous page."}
		}
	}
	return p, nil
}

// counts is the query of a list of counts.
type counts[Group ~string] struct {
	days   dmarcd.Days
	domain string // "": all of the team
	by     Group  // the grouping, "" if absent
}

func readCounts[Group ~string](c *call, groups ...Group) (counts[Group], error) {
	days, err := readDays(c)
	if err != nil {
		return counts[Group]{}, err
	}
	values, err := query(c)
	if err != nil {
		return counts[Group]{}, err
	}
	asked := counts[Group]{days: days}
	if asked.by, err = readWord(values, "by", groups...); err != nil {
		return counts[Group]{}, err
	}
	if values.Has("domain") {
		asked.domain, err = dmarcd.ParseName(values.Get("domain"))
	}
	return asked, err
}

func readDays(c *call) (dmarcd.Days, error) {
	values, err := query(c)
	if err != nil {
		return dmarcd.Days{}, err
	}
	var days dmarcd.Days
	for _, end := range []struct {
		name string
		day  **dmarcd.Day
	}{{"from", &days.From}, {"to", &days.To}} {
		if !values.Has(end.name) {
			continue
		}
		day, err := dmarcd.ParseDay(values.Get(end.name))
		if err != nil {
			return dmarcd.Days{}, &dmarcd.InvalidError{Field: end.name, Message: "The parameter " + end.name + " must be a day in the form YYYY-MM-DD."}
		}
		*end.day = &day
	}
	if days.From != nil && days.To != nil && *days.From > *days.To {
		return dmarcd.Days{}, &dmarcd.InvalidError{Field: "from", Message: "The parameter from must not be later than to."}
	}
	return days, nil
}
