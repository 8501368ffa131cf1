package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

type setupView struct {
	domainView
	Setup wire.Setup
	// Reported means that a report has arrived.
	Reported bool
	// Complete means that all records of the domain are published.
	Complete bool
	// Watch is the path that a script polls.
	Watch string
	// Operated are records that the operator of the service publishes.
	Operated []wire.SetupRecord
	// Proposed is the record to publish at RecordName if there is no report domain. Addressed
	// means that it asks for reports.
	Proposed, RecordName string
	Addressed            bool
}

// setup shows the records to publish, and which of them are published.
func (s *Web) setup(c *call) error {
	page, view, err := s.loadSetup(c)
	if err != nil {
		return err
	}
	advice, err := c.team.Advice(c.r.Context(), view.Head.Name)
	if err != nil {
		return err
	}
	view.Lead = advice.Conclusion
	return c.render(http.StatusOK, page, view)
}

// setupSteps renders the part of the guide that a script updates.
func (s *Web) setupSteps(c *call) error {
	if err := c.team.Watch(c.r.Context(), c.params.Get("domain")); err != nil {
		return err
	}
	page, view, err := s.loadSetup(c)
	if err != nil {
		return err
	}
	return c.fragment(page, "steps", view)
}

func (s *Web) loadSetup(c *call) (Page, setupView, error) {
	page, head, err := s.domainPage(c, "setup", "Setup guide")
	if err != nil {
		return Page{}, setupView{}, err
	}
	found, err := c.team.Setup(c.r.Context(), head.Head.Name)
	if err != nil {
		return Page{}, setupView{}, err
	}
	setup := wire.NewSetup(found)
	view := setupView{domainView: head, Setup: setup, Complete: len(setup.Records) > 0, Watch: domainPath(head.Head.Name) + "/setup/steps"}
	var own []wire.SetupRecord
	for _, record := range setup.Records {
		if record.Purpose == string(dmarcd.SetupConsent) {
			view.Operated = append(view.Operated, record)
			continue
		}
		own = append(own, record)
		if record.Seen == nil || !*record.Seen {
			view.Complete = false
		}
	}
	view.Setup.Records = own
	if setup.ReportAddress == nil {
		if view.Proposed, err = c.team.ProposedRecord(c.r.Context(), head.Head.Name); err != nil {
			return Page{}, setupView{}, err
		}
		record, _ := dmarc.Parse(view.Proposed)
		view.Addressed = len(record.RUA) > 0
		view.RecordName = dmarc.QueryName(head.Head.Name)
	}
	reports, err := c.team.Reports(c.r.Context(), service.ReportFilter{Domain: head.Head.Name}, 0, 1)
	if err != nil {
		return Page{}, setupView{}, err
	}
	view.Reported = len(reports) > 0
	return page, view, nil
}
