package api

import "github.com/dmarcd/dmarcd"

// maxPage limits the page size.
const maxPage = 1000

// page is the requested part of a list.
type page struct {
	limit int    // 0: all
	after string // "": from the start
}

func readPage(c *call) (p page, err error) {
	if p.limit, err = readLimit(c, 0); err != nil {
		return p, err
	}
	if after := c.query.Get("after"); after != "" {
		if p.after, err = dmarcd.ParseName(after); err != nil {
			return p, &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the last domain name of the previous page."}
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

func readCounts[Group ~string](c *call, groups ...Group) (asked counts[Group], err error) {
	if asked.days, err = readDays(c); err != nil {
		return asked, err
	}
	if asked.by, err = readWord(c, "by", groups...); err != nil {
		return asked, err
	}
	asked.domain, err = readDomain(c)
	return asked, err
}

// readDomain returns the parameter domain, "" if absent.
func readDomain(c *call) (string, error) {
	if !c.query.Has("domain") {
		return "", nil
	}
	return dmarcd.ParseName(c.query.Get("domain"))
}

func readDays(c *call) (dmarcd.Days, error) {
	var days dmarcd.Days
	for _, end := range []struct {
		name string
		day  **dmarcd.Day
	}{{"from", &days.From}, {"to", &days.To}} {
		if !c.query.Has(end.name) {
			continue
		}
		day, err := dmarcd.ParseDay(c.query.Get(end.name))
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
