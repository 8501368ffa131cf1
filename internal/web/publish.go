package web

import (
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// offerPublish replaces the copy of the next action's record with a way to publish it here, if it is managed.
func (s *Web) offerPublish(c *site.Call, view *adviceView) error {
	i := slices.IndexFunc(view.Way, func(step stepView) bool {
		return step.State == dmarcd.StepNow && step.Record != nil && step.Record.Name == dmarcd.RecordDMARC.Owner(view.Domain)
	})
	if s.options.Zone == "" || i < 0 {
		return nil
	}
	versions, err := c.Team.RecordVersions(c.R.Context(), view.Domain)
	if err != nil {
		return err
	}
	step := &view.Way[i]
	step.Managed = slices.ContainsFunc(versions, func(v dmarcd.RecordVersion) bool { return v.Kind == dmarcd.RecordDMARC })
	if step.Managed && c.Viewer.MayEdit() {
		step.Publish = c.Link(managedPath(view.Domain, dmarcd.RecordDMARC), "proposed", "yes")
	}
	return nil
}

// fillProposed fills the form for the next version of a record with that of the next action. The text
// is not in the link: another site could offer one.
func fillProposed(c *site.Call, domain string, kind dmarcd.RecordKind, form *ui.Form) error {
	advice, err := c.Team.Advice(c.R.Context(), domain)
	if err != nil {
		return err
	}
	next := advice.Next()
	if next == nil || next.Record == nil || next.Record.Name != kind.Owner(domain) {
		return nil
	}
	for i := range form.Fields {
		switch form.Fields[i].Name {
		case "record":
			form.Fields[i].Value = next.Record.Value
		case "reason":
			form.Fields[i].Value = next.Title
		}
	}
	return nil
}

// setupRecord is a record of the setup guide. Managed is nil unless it is managed: then the guide has its
// CNAME record. Pending means that its next version has to be the record. Manage publishes the record here,
// nil if that is done, or is not for the viewer.
type setupRecord struct {
	wire.SetupRecord

	Managed *service.ManagedRecord
	Page    string
	Pending bool
	Manage  *ui.Form
}

// withAliases returns the records of the setup guide with the CNAME records that can replace them.
func (s *Web) withAliases(c *site.Call, domain dmarcd.Domain, records []wire.SetupRecord) ([]setupRecord, error) {
	var managed []service.ManagedRecord
	if s.options.Zone != "" {
		var err error
		if managed, err = c.Team.ManagedRecords(c.R.Context(), domain.Name); err != nil {
			return nil, err
		}
	}
	all := make([]setupRecord, len(records))
	for i, record := range records {
		all[i].SetupRecord = record
		kind := dmarcd.RecordKind(record.Purpose)
		if s.options.Zone == "" || record.Name != kind.Owner(domain.Name) || kind != dmarcd.RecordDMARC && kind != dmarcd.RecordTLSRPT {
			continue
		}
		all[i].Page = c.Link(managedPath(domain.Name, kind))
		base, submit, done := int64(0), "Get the CNAME record", record.Seen != nil && *record.Seen
		if at := slices.IndexFunc(managed, func(m service.ManagedRecord) bool { return m.Kind == kind }); at >= 0 {
			all[i].Managed = &managed[at]
			base, submit, done = managed[at].Version, "Publish it", managed[at].Content == record.Value
			all[i].Pending = !done
		}
		if !done && c.Viewer.MayEdit() && !domain.Sample {
			all[i].Manage = &ui.Form{Path: managedPath(domain.Name, kind), Method: "post", Submit: submit, Fields: []ui.Field{
				{Name: "base", Type: "hidden", Value: strconv.FormatInt(base, 10)},
				{Name: "record", Type: "hidden", Value: record.Value},
			}}
		}
	}
	return all, nil
}
