package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// managedTitle is the title of the page of a managed record, and of its tab.
const managedTitle = "Managed records"

// managedView is the page of a record that is managed, or can be.
type managedView struct {
	domainView
	// Zone is "" if this server has none.
	Zone  string
	Kinds []ui.Tab
	// Conclusion says what receivers get, State is its badge.
	Conclusion string
	State      ui.Cell
	// Published is nil if the record is not managed.
	Published *service.ManagedRecord
	Publish   ui.Form
	// Undo publishes the version before again; nil for the first one.
	Undo     *ui.Action
	Stop     ui.Form
	Versions ui.Table
}

// kindTitles are the names of the kinds of managed records.
var kindTitles = map[dmarcd.RecordKind]string{
	dmarcd.RecordDMARC: "DMARC", dmarcd.RecordSPF: "SPF", dmarcd.RecordMTASTS: "MTA-STS", dmarcd.RecordTLSRPT: "TLS reports", dmarcd.RecordBIMI: "BIMI",
}

func managedPath(domain string, kind dmarcd.RecordKind) string {
	return domainPath(domain) + "/records/" + string(kind)
}

// publishForm is the form for the next version of a record; published is nil for the first one.
func publishForm(domain string, kind dmarcd.RecordKind, published *service.ManagedRecord) ui.Form {
	if published == nil {
		return ui.Form{Path: managedPath(domain, kind), Method: "post", Submit: "Manage this record", Fields: []ui.Field{
			{Name: "base", Type: "hidden", Value: "0"},
			{Name: "record", Label: "Record", Type: "textarea", Hint: "Empty: the one that the domain has now, so that the CNAME record changes nothing."},
		}}
	}
	return ui.Form{Path: managedPath(domain, kind), Method: "post", Submit: "Publish", Fields: []ui.Field{
		{Name: "base", Type: "hidden", Value: strconv.FormatInt(published.Version, 10)},
		{Name: "record", Label: "Record", Type: "textarea", Value: published.Content, Required: true, Hint: "With the CNAME record, receivers see a change within five minutes."},
		{Name: "reason", Label: "Reason", Type: "text", Autocomplete: "off", Hint: "For the history."},
	}}
}

// stopForm asks for the name of a record before it is no longer managed.
func stopForm(domain string, kind dmarcd.RecordKind) ui.Form {
	form := ui.Deletion(managedPath(domain, kind)+"/stop", "record", kind.Owner(domain))
	form.Submit = "Stop managing"
	return form
}

// recordKind returns the kind in the path.
func recordKind(c *site.Call) (dmarcd.RecordKind, error) {
	kind, err := dmarcd.ParseRecordKind(c.Params.Get("kind"))
	if err != nil {
		return "", dmarcd.ErrNotFound
	}
	return kind, nil
}

func (s *Web) managedRecord(c *site.Call) error {
	return s.showManaged(c, http.StatusOK, func(*managedView) {})
}

// showManaged renders the page after edit has added errors.
func (s *Web) showManaged(c *site.Call, status int, edit func(*managedView)) error {
	kind, err := recordKind(c)
	if err != nil {
		return err
	}
	page, head, err := s.domainPage(c, "domain_record", managedTitle)
	if err != nil {
		return err
	}
	name := head.Head.Name
	records, err := c.Team.ManagedRecords(c.R.Context(), name)
	if err != nil {
		return err
	}
	versions, err := c.Team.RecordVersions(c.R.Context(), name)
	if err != nil {
		return err
	}
	view := managedView{domainView: head, Zone: s.options.Zone, Stop: stopForm(name, kind)}
	for _, k := range dmarcd.RecordKinds() {
		view.Kinds = append(view.Kinds, ui.Tab{Link: ui.Link{Text: kindTitles[k], Href: c.Link(managedPath(name, k))}, Current: k == kind})
	}
	if i := slices.IndexFunc(records, func(r service.ManagedRecord) bool { return r.Kind == kind }); i >= 0 {
		view.Published = &records[i]
		if version := strconv.FormatInt(records[i].Version, 10); version != "1" {
			view.Undo = &ui.Action{
				Label: "Undo version " + version, Path: managedPath(name, kind) + "/undo", Name: "base", Value: version,
				Question: "Publish the version before it again?",
			}
		}
	}
	view.State, view.Conclusion = describeManaged(kind.Owner(name), view.Published)
	view.Publish = publishForm(name, kind, view.Published)
	view.Versions = versionTable(name, kind, versions)
	if c.R.URL.Query().Has("proposed") {
		if err := fillProposed(c, name, kind, &view.Publish); err != nil {
			return err
		}
	}
	edit(&view)
	return c.Render(status, page, view, view.Versions)
}

// describeManaged says what receivers get for the record with that name; published is nil if it is not
// managed.
func describeManaged(owner string, published *service.ManagedRecord) (state ui.Cell, conclusion string) {
	badge := func(text, tone string) ui.Cell { return ui.Cell{Kind: ui.CellBadge, Text: text, Tone: tone} }
	if published == nil {
		return badge("not managed", "quiet"), "The record is changed in the DNS of the domain."
	}
	switch published.State {
	case dmarcd.RecordManaged:
		return badge("managed", "good"), "The CNAME record is there, so receivers get the last version."
	case dmarcd.RecordNotYet:
		return badge("not yet", "warning"), owner + " has no record. Publish the CNAME record."
	case dmarcd.RecordElsewhere:
		return badge("elsewhere", "warning"), "Receivers get another record at " + owner + ". Replace it with the CNAME record."
	case dmarcd.RecordUnknown:
	}
	return badge("unknown", "quiet"), "The lookup of " + owner + " failed. Reload the page."
}

// versionTable is the history of a record.
func versionTable(domain string, kind dmarcd.RecordKind, versions []dmarcd.RecordVersion) ui.Table {
	t := ui.Table{
		ID: "versions", Caption: "Versions", CSV: managedPath(domain, kind) + "?csv=versions",
		Columns: []ui.Column{{Title: "Version", Numeric: true}, {Title: "Published"}, {Title: "By", Wide: true}, {Title: "Record", Wide: true}, {Title: "Reason", Wide: true}},
	}
	for _, v := range versions {
		if v.Kind == kind {
			t.Rows = append(t.Rows, []ui.Cell{ui.Count(v.Version), {Kind: ui.CellTime, Time: v.CreatedAt}, ui.Text(v.Author), ui.Code(v.Content), ui.Text(v.Reason)})
		}
	}
	return t
}

// changeRecord makes a change that is based on the version in a form. Its errors are shown at the form.
func (s *Web) changeRecord(c *site.Call, domain dmarcd.Domain, written url.Values, change func(ctx context.Context, kind dmarcd.RecordKind, base int64) error) error {
	kind, err := recordKind(c)
	if err != nil {
		return err
	}
	base, err := strconv.ParseInt(written.Get("base"), 10, 64)
	if err != nil {
		err = &dmarcd.InvalidError{Message: "The form has no version. Try again."}
	} else {
		err = change(c.R.Context(), kind, base)
	}
	if errors.Is(err, dmarcd.ErrConflict) {
		err = &dmarcd.InvalidError{Message: "Another version was published meanwhile. Read it below, and decide again."}
	}
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return c.Finish(err, managedPath(domain.Name, kind), "record-published")
	}
	return s.showManaged(c, http.StatusUnprocessableEntity, func(v *managedView) {
		published := v.Publish.Fields[0].Value
		v.Publish, _ = v.Publish.Filled(written, err)
		v.Publish.Fields[0].Value = published // what is written is based on what is read now
	})
}

func (s *Web) publishRecord(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	return s.changeRecord(c, domain, written, func(ctx context.Context, kind dmarcd.RecordKind, base int64) error {
		_, err := c.Team.PublishRecord(ctx, domain.Name, base, dmarcd.RecordVersion{Kind: kind, Content: written.Get("record"), Reason: written.Get("reason")})
		return err
	})
}

func (s *Web) undoRecord(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	return s.changeRecord(c, domain, written, func(ctx context.Context, kind dmarcd.RecordKind, base int64) error {
		_, err := c.Team.UndoRecord(ctx, domain.Name, kind, base)
		return err
	})
}

func (s *Web) stopRecord(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	kind, err := recordKind(c)
	if err != nil {
		return err
	}
	if written.Get("confirm") != kind.Owner(domain.Name) {
		err := &dmarcd.InvalidError{Field: "confirm", Message: "The name does not match. Enter the name of the record to stop managing it."}
		return site.Again(stopForm(domain.Name, kind), written, err, func(form ui.Form) error {
			return s.showManaged(c, http.StatusUnprocessableEntity, func(v *managedView) { v.Stop = form })
		})
	}
	return c.Finish(c.Team.StopRecord(c.R.Context(), domain.Name, kind), managedPath(domain.Name, kind), "record-stopped")
}
