package web

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listView is a list, with the form that adds to it or filters it.
type listView struct {
	// Heading is the heading of a page that shares its template.
	Heading string
	Tabs    []ui.Tab
	Table   ui.Table
	Pager   ui.Pager
	Form    ui.Form
	// Secret is a new secret, shown only once; "" for none.
	Secret string
}

// maxCSVRows limits a downloaded table.
const maxCSVRows = 100_000

// next returns the cursor of the next page of a list, "" at the end.
func next[T any](page wire.Page[T]) string {
	if page.Next == nil {
		return ""
	}
	return *page.Next
}

// pages returns a function that reads a page of a list, newest first, after a cursor.
func pages[T any](perPage int, read func(before service.Cursor, limit int) ([]T, error), position func(T) (at time.Time, id int64)) func(after string) (wire.Page[T], error) {
	return func(after string) (page wire.Page[T], err error) {
		before, err := parseCursor(after)
		if err != nil {
			return page, err
		}
		found, err := read(before, perPage+1)
		if err != nil {
			return page, err
		}
		return wire.NewPage(found, perPage, func(item T) string { return wire.FormatCursor(position(item)) }, asItIs), nil
	}
}

// requested returns the page of a list that the request asks for, or all of it for a CSV file.
func requested[T any](c *site.Call, table string, part func(after string) (wire.Page[T], error)) (wire.Page[T], error) {
	if !c.WantsCSV(table) {
		return part(c.R.URL.Query().Get("after"))
	}
	all, err := wholeList(part)
	return wire.Page[T]{Items: all}, err
}

// wholeList reads all pages of a list, for a download.
func wholeList[T any](part func(after string) (wire.Page[T], error)) ([]T, error) {
	var whole []T
	for after := ""; ; {
		page, err := part(after)
		if err != nil {
			return nil, err
		}
		whole = append(whole, page.Items...)
		if after = next(page); after == "" || len(whole) >= maxCSVRows {
			return whole, nil
		}
	}
}

// parseCursor parses a position in a list ordered by time; "" is the start.
func parseCursor(after string) (service.Cursor, error) {
	if after == "" {
		return service.Cursor{}, nil
	}
	at, id, err := wire.ParseCursor(after)
	return service.Cursor{At: at, ID: id}, err
}

// asItIs is the identity, for lists that pages show unchanged.
func asItIs[T any](item T) T { return item }

// withoutDone returns the query without the message of the last form.
func withoutDone(query url.Values) url.Values {
	query.Del("done")
	return query
}

// orAll joins a list; all is the text for an empty one.
func orAll[S ~string](list []S, all string) string {
	if list == nil {
		return all
	}
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// splitList splits at commas; nil for an empty list.
func splitList[S ~string](text string) (list []S) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, S(item))
		}
	}
	return list
}

// renamedField replaces the field of an InvalidError with the form's name for it.
func renamedField(err error, fields map[string]string) error {
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	if field, ok := fields[invalid.Field]; ok {
		return &dmarcd.InvalidError{Field: field, Message: invalid.Message}
	}
	return err
}

// tagChoice is the selected tag and all available tags.
type tagChoice struct {
	Value   string
	Choices []ui.Choice // empty if no domain of the team has a tag
}

// newTagChoice returns the available tags for the filter of a page.
func newTagChoice(c *site.Call) (tagChoice, error) {
	all, err := c.Team.Tags(c.R.Context())
	if err != nil || len(all) == 0 && c.Tag == "" {
		return tagChoice{}, err
	}
	choice := tagChoice{Value: c.Tag, Choices: []ui.Choice{{Value: "", Label: "any tag"}}}
	known := false
	for _, tag := range all {
		choice.Choices = append(choice.Choices, ui.Choice{Value: tag.Tag, Label: tag.Tag})
		known = known || tag.Tag == c.Tag
	}
	if c.Tag != "" && !known {
		choice.Choices = append(choice.Choices, ui.Choice{Value: c.Tag, Label: c.Tag})
	}
	return choice, nil
}

// fields returns a select field, or none if there is nothing to choose.
func (t tagChoice) fields() []ui.Field {
	if len(t.Choices) == 0 {
		return nil
	}
	return []ui.Field{{Name: "tag", Label: "Tag", Type: "select", Value: t.Value, Choices: t.Choices}}
}

// tagLinks are links to the lists of the domains with each tag.
func tagLinks(c *site.Call, tags []string) []ui.Link {
	links := make([]ui.Link, len(tags))
	for i, tag := range tags {
		links[i] = ui.Link{Text: tag, Href: c.Link(domainsPath, "tag", tag)}
	}
	return links
}
