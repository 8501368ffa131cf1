package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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
	Zone string
	// Elsewhere is true if records are published at the DNS server of the domain. TargetPath is the page
	// of that server, "" for a kind that is not published there.
	Elsewhere  bool
	TargetPath string
	Kinds      []ui.Tab
	// Conclusion says what receivers get, State is its badge.
	Conclusion string
	State      ui.Cell
	// Published is nil if the record is not managed.
	Published *service.ManagedRecord
	// Setup is what the domain publishes once. Overview says for each kind whether it is there.
	Setup    []dmarcd.DNSRecord
	Overview ui.Table
	Publish  ui.Form
	// Review is what was entered, nil before that; Confirm publishes it.
	Review  *service.RecordReview
	Confirm ui.Form
	// Proposal waits for the approval of another user, nil for none. Approve is nil for who proposed it.
	Proposal          *dmarcd.RecordProposal
	Approve, Withdraw *ui.Action
	// Ending says what happens to the name after a stop.
	Ending string
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
func publishForm(domain string, kind dmarcd.RecordKind, elsewhere bool, published *service.ManagedRecord) ui.Form {
	base, record := "0", ui.Field{Name: "record", Label: "Record", Type: "textarea", Hint: "Leave empty to use the one that the domain has now: the CNAME record then changes nothing."}
	reason := ui.Field{Name: "reason", Label: "Reason", Type: "text", Autocomplete: "off", Hint: "For the history."}
	switch {
	case published != nil:
		base = strconv.FormatInt(published.Version, 10)
		record.Value, record.Required, record.Hint = published.Content, true, "Receivers see a change within five minutes. You see what it changes before it is published."
	case kind == dmarcd.RecordSPF && !elsewhere:
		record.Hint = "A record with the term all replaces the SPF record of the domain; another is included there. Leave empty to use the one that the domain has now."
	case kind == dmarcd.RecordMTASTS || elsewhere:
		record.Hint = "Leave empty to use the one that the domain has now."
	}
	if kind == dmarcd.RecordMTASTS {
		record.Label = "Policy"
	}
	return ui.Form{Path: managedPath(domain, kind), Method: "post", Submit: "Review", Fields: []ui.Field{{Name: "base", Type: "hidden", Value: base}, record, reason}}
}

// confirmForm publishes what was reviewed.
func confirmForm(domain string, review *service.RecordReview, approval bool) ui.Form {
	form := ui.Form{Path: managedPath(domain, review.Kind), Method: "post", Submit: "Publish", Fields: []ui.Field{
		{Name: "base", Type: "hidden", Value: strconv.FormatInt(review.Version-1, 10)},
		{Name: "record", Type: "hidden", Value: review.Content},
		{Name: "reason", Type: "hidden", Value: review.Reason},
		{Name: "reviewed", Type: "hidden", Value: "yes"},
	}}
	if approval {
		form.Submit = "Propose"
	}
	return form
}

// overviewTable says for each kind of record whether it is managed, and what to publish.
func overviewTable(c *site.Call, domain string, records []service.ManagedRecord) ui.Table {
	t := ui.Table{ID: "kinds", Caption: "All kinds", Columns: []ui.Column{{Title: "Record"}, {Title: "State"}, {Title: "Publish once", Wide: true}}}
	for _, kind := range dmarcd.RecordKinds() {
		var published *service.ManagedRecord
		text := ""
		if i := slices.IndexFunc(records, func(r service.ManagedRecord) bool { return r.Kind == kind }); i >= 0 {
			published = &records[i]
			for _, r := range published.Setup(domain, published.Target) {
				text += r.String() + "\n"
			}
		}
		state, _ := describeManaged(kind.Owner(domain), published)
		t.Rows = append(t.Rows, []ui.Cell{ui.LinkTo(kindTitles[kind], c.Link(managedPath(domain, kind))), state, ui.Code(strings.TrimSpace(text))})
	}
	return t
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
	proposals, err := c.Team.RecordProposals(c.R.Context(), name)
	if err != nil {
		return err
	}
	view := managedView{domainView: head, Zone: s.options.Zone, Stop: stopForm(name, kind), Ending: kind.Ending(), Overview: overviewTable(c, name, records)}
	if i := slices.IndexFunc(proposals, func(p dmarcd.RecordProposal) bool { return p.Kind == kind }); i >= 0 {
		view.Proposal = &proposals[i]
		view.Withdraw = &ui.Action{Label: "Withdraw", Path: managedPath(name, kind) + "/withdraw", Danger: true, Question: "Withdraw this proposal?"}
		if view.Proposal.User != c.Account.User.ID {
			view.Approve = &ui.Action{Label: "Approve and publish", Path: managedPath(name, kind) + "/approve", Name: "hash", Value: view.Proposal.Hash()}
		}
	}
	_, err = c.Team.RecordTarget(c.R.Context(), name)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	view.Elsewhere = err == nil && kind != dmarcd.RecordMTASTS
	if kind != dmarcd.RecordMTASTS {
		view.TargetPath = c.Link(targetPath(name))
	}
	for _, k := range dmarcd.RecordKinds() {
		view.Kinds = append(view.Kinds, ui.Tab{Link: ui.Link{Text: kindTitles[k], Href: c.Link(managedPath(name, k))}, Current: k == kind})
	}
	if i := slices.IndexFunc(records, func(r service.ManagedRecord) bool { return r.Kind == kind }); i >= 0 {
		view.Published = &records[i]
		view.Setup = records[i].Setup(name, records[i].Target)
		if version := strconv.FormatInt(records[i].Version, 10); version != "1" {
			view.Undo = &ui.Action{
				Label: "Undo version " + version, Path: managedPath(name, kind) + "/undo", Name: "base", Value: version,
				Question: "Publish the version before it again?",
			}
		}
	}
	view.State, view.Conclusion = describeManaged(kind.Owner(name), view.Published)
	view.Publish = publishForm(name, kind, view.Elsewhere, view.Published)
	view.Versions = versionTable(name, kind, versions)
	if c.R.URL.Query().Has("proposed") {
		if err := fillProposed(c, name, kind, &view.Publish); err != nil {
			return err
		}
	}
	edit(&view)
	if view.Review != nil {
		view.Confirm = confirmForm(name, view.Review, c.Viewer.Team.Approval)
	}
	return c.Render(status, page, view, view.Versions, view.Overview)
}

// describeManaged says what receivers get for the record with that name; published is nil if it is not
// managed.
func describeManaged(owner string, published *service.ManagedRecord) (state ui.Cell, conclusion string) {
	badge := func(text, tone string) ui.Cell { return ui.Cell{Kind: ui.CellBadge, Text: text, Tone: tone} }
	if published == nil {
		return badge("not managed", "quiet"), "This record is kept in the DNS of the domain."
	}
	if published.Target == "" {
		return describeElsewhere(published.State, badge)
	}
	if published.Kind == dmarcd.RecordSPF {
		owner = "The SPF record of " + owner
		switch published.State {
		case dmarcd.RecordManaged:
			return badge("managed", "good"), owner + " leads here, so receivers get the addresses below."
		case dmarcd.RecordNotYet:
			return badge("not yet", "warning"), owner + " is missing. Publish this one."
		case dmarcd.RecordElsewhere:
			return badge("elsewhere", "warning"), owner + " does not lead here. Replace it with this one, or add the include: to it."
		case dmarcd.RecordUnknown:
		}
	}
	switch published.State {
	case dmarcd.RecordManaged:
		return badge("managed", "good"), "The CNAME record is there, so receivers get the last version."
	case dmarcd.RecordNotYet:
		return badge("not yet", "warning"), owner + " has no record. Publish the CNAME record."
	case dmarcd.RecordElsewhere:
		return badge("elsewhere", "warning"), "Receivers get another record at " + owner + ". Replace it with the CNAME record."
	case dmarcd.RecordUnknown, dmarcd.RecordProposed:
	}
	return badge("unknown", "quiet"), "The lookup of " + owner + " failed. Reload the page."
}

// describeElsewhere is describeManaged for a record at the DNS server of the domain.
func describeElsewhere(state dmarcd.RecordState, badge func(text, tone string) ui.Cell) (ui.Cell, string) {
	switch state {
	case dmarcd.RecordManaged:
		return badge("managed", "good"), "The last version is published at the DNS server of the domain."
	case dmarcd.RecordUnknown:
		return badge("unknown", "quiet"), "The lookup of the record failed. Reload the page."
	}
	return badge("elsewhere", "warning"), "Receivers get another record, or none yet: resolvers may still have the previous version. If this does not change, the record was changed at the DNS server."
}

// versionTable is the history of a record.
func versionTable(domain string, kind dmarcd.RecordKind, versions []dmarcd.RecordVersion) ui.Table {
	t := ui.Table{
		ID: "versions", Caption: "Versions", CSV: managedPath(domain, kind) + "?csv=versions",
		Columns: []ui.Column{{Title: "Version", Numeric: true}, {Title: "Published"}, {Title: "By", Wide: true}, {Title: "Record", Wide: true}, {Title: "Difference", Wide: true}, {Title: "Effect", Wide: true, Note: "Reason"}},
	}
	for _, v := range versions {
		if v.Kind == kind {
			t.Rows = append(t.Rows, []ui.Cell{ui.Count(v.Version), {Kind: ui.CellTime, Time: v.CreatedAt}, ui.Text(v.Author).Noted(approvedBy(v)), ui.Code(v.Content), ui.Code(v.Difference), ui.Text(v.Effect).Noted(v.Reason)})
		}
	}
	return t
}

func approvedBy(v dmarcd.RecordVersion) string {
	if v.Approver == "" {
		return ""
	}
	return "approved by " + v.Approver
}

// changeRecord makes a change that is based on the version in a form, and then answers. Errors of the
// change are shown at the form.
func (s *Web) changeRecord(c *site.Call, written url.Values, change func(ctx context.Context, kind dmarcd.RecordKind, base int64) (answer func() error, err error)) error {
	kind, err := recordKind(c)
	if err != nil {
		return err
	}
	base, err := strconv.ParseInt(written.Get("base"), 10, 64)
	var answer func() error
	if err != nil {
		err = &dmarcd.InvalidError{Message: "The form has no version. Try again."}
	} else {
		answer, err = change(c.R.Context(), kind, base)
	}
	if errors.Is(err, dmarcd.ErrConflict) {
		err = &dmarcd.InvalidError{Message: "Another version was published meanwhile. Read it below, and decide again."}
	}
	var invalid *dmarcd.InvalidError
	switch {
	case err == nil:
		return answer()
	case !errors.As(err, &invalid):
		return err
	}
	return s.showManaged(c, http.StatusUnprocessableEntity, func(v *managedView) { v.refill(written, err) })
}

// refill has the form show what was written, which is based on what is read now.
func (v *managedView) refill(written url.Values, err error) {
	published := v.Publish.Fields[0].Value
	v.Publish, _ = v.Publish.Filled(written, err)
	v.Publish.Fields[0].Value = published
}

// publishRecord shows what a version changes, and publishes it once that was read.
func (s *Web) publishRecord(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	return s.changeRecord(c, written, func(ctx context.Context, kind dmarcd.RecordKind, base int64) (func() error, error) {
		v := dmarcd.RecordVersion{Kind: kind, Content: written.Get("record"), Reason: written.Get("reason")}
		if written.Get("reviewed") != "" {
			record, err := c.Team.PublishRecord(ctx, domain.Name, base, v)
			return published(c, domain.Name, record), err
		}
		review, err := c.Team.ReviewRecord(ctx, domain.Name, base, v)
		return func() error {
			return s.showManaged(c, http.StatusOK, func(view *managedView) {
				view.refill(written, nil)
				view.Review = &review
			})
		}, err
	})
}

func (s *Web) undoRecord(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	return s.changeRecord(c, written, func(ctx context.Context, kind dmarcd.RecordKind, base int64) (func() error, error) {
		record, err := c.Team.UndoRecord(ctx, domain.Name, kind, base)
		return published(c, domain.Name, record), err
	})
}

// published says whether a version was published or proposed.
func published(c *site.Call, domain string, record service.ManagedRecord) func() error {
	done := "record-published"
	if record.State == dmarcd.RecordProposed {
		done = "record-proposed"
	}
	return func() error { return c.Done(managedPath(domain, record.Kind), done) }
}

func (s *Web) approveRecord(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	kind, err := recordKind(c)
	if err != nil {
		return err
	}
	_, err = c.Team.ApproveRecord(c.R.Context(), domain.Name, kind, written.Get("hash"))
	if errors.Is(err, dmarcd.ErrConflict) {
		err = &dmarcd.InvalidError{Message: "This is not proposed any more, or another version was published meanwhile. Read what is there now, and decide again."}
	}
	return c.Finish(err, managedPath(domain.Name, kind), "record-published")
}

func (s *Web) withdrawProposal(c *site.Call, domain dmarcd.Domain, _ url.Values) error {
	kind, err := recordKind(c)
	if err != nil {
		return err
	}
	return c.Finish(c.Team.WithdrawProposal(c.R.Context(), domain.Name, kind), managedPath(domain.Name, kind), "proposal-withdrawn")
}

func (s *Web) requireApproval(c *site.Call, written url.Values) error {
	return c.Finish(c.Team.RequireApproval(c.R.Context(), written.Get("required") == "yes"), Prefix+"/settings/members", "approval-saved")
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
