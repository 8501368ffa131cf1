package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func newDomainFrame() site.Page {
	return site.Page{
		Template: "domain_new", Title: "Add domains", Section: "Overview",
		Trail: []ui.Link{{Text: "Overview", Href: Prefix + "/"}},
	}
}

func domainForm() ui.Form {
	return ui.Form{Path: Prefix + "/domains/new", Method: "post", Submit: "Add domains", Fields: []ui.Field{{
		Name: "domain", Label: "Domains", Type: "textarea", Required: true, Autocomplete: "off",
		Placeholder: "example.com", Hint: "One domain, a list, or a zone file. URLs and email addresses are reduced to their domain.",
	}}}
}

func (s *Web) newDomainPage(c *site.Call) error {
	return c.Render(http.StatusOK, newDomainFrame(), domainForm())
}

func (s *Web) addDomain(c *site.Call, written url.Values) error {
	names, unreadable := dmarcd.NamesIn(written.Get("domain"))
	if len(names)+len(unreadable) == 0 {
		return rejectDomains(c, written, &dmarcd.InvalidError{Field: "domain", Message: "Enter at least one domain name, such as example.com."})
	}
	if len(unreadable) > 0 {
		return rejectDomains(c, written, &dmarcd.InvalidError{Field: "domain", Message: "Not a domain name: " + strings.Join(unreadable[:min(len(unreadable), maxUnreadable)], ", ") + ". Enter names such as example.com."})
	}
	if len(names) > 1 {
		if _, err := c.Team.AddDomains(c.R.Context(), names); err != nil {
			return rejectDomains(c, written, err)
		}
		return c.Done(Prefix+"/", "domains-added")
	}
	domain, err := c.Team.AddDomain(c.R.Context(), names[0])
	if err != nil {
		return rejectDomains(c, written, err)
	}
	return c.Done(domainPath(domain.Name)+"/setup", "domain-added")
}

// maxUnreadable is the number of invalid names that an error lists.
const maxUnreadable = 5

// rejectDomains shows the form again with an error.
func rejectDomains(c *site.Call, written url.Values, err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		err = &dmarcd.InvalidError{Field: "domain", Message: "The team already has this domain. You find it in the overview."}
	case errors.Is(err, dmarcd.ErrForbidden) && errors.As(err, new(*dmarcd.QuotaError)):
		err = &dmarcd.InvalidError{Field: "domain", Message: "The team has reached its limit of domains. Delete one, or ask the operator for a higher limit."}
	}
	return site.Again(domainForm(), written, err, func(form ui.Form) error {
		return c.Render(http.StatusUnprocessableEntity, newDomainFrame(), form)
	})
}

type setupView struct {
	domainView
	Setup wire.Setup
	// Records are those of the domain.
	Records []setupRecord
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
func (s *Web) setup(c *site.Call) error {
	page, view, err := s.loadSetup(c)
	if err != nil {
		return err
	}
	advice, err := c.Team.Advice(c.R.Context(), view.Head.Name)
	if err != nil {
		return err
	}
	view.Lead = advice.Conclusion
	return c.Render(http.StatusOK, page, view)
}

// setupSteps renders the part of the guide that a script updates.
func (s *Web) setupSteps(c *site.Call) error {
	if err := c.Team.Watch(c.R.Context(), c.Params.Get("domain")); err != nil {
		return err
	}
	page, view, err := s.loadSetup(c)
	if err != nil {
		return err
	}
	return c.Fragment(page, "steps", view)
}

func (s *Web) loadSetup(c *site.Call) (site.Page, setupView, error) {
	page, head, err := s.domainPage(c, "domain_setup", "Setup guide")
	if err != nil {
		return site.Page{}, setupView{}, err
	}
	found, err := c.Team.Setup(c.R.Context(), head.Head.Name)
	if err != nil {
		return site.Page{}, setupView{}, err
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
	if view.Records, err = s.withAliases(c, head.Head.Domain, own); err != nil {
		return site.Page{}, setupView{}, err
	}
	if setup.ReportAddress == nil {
		if view.Proposed, err = c.Team.ProposedRecord(c.R.Context(), head.Head.Name); err != nil {
			return site.Page{}, setupView{}, err
		}
		record, _ := dmarc.Parse(view.Proposed)
		view.Addressed = len(record.RUA) > 0
		view.RecordName = dmarc.QueryName(head.Head.Name)
	}
	reports, err := c.Team.Reports(c.R.Context(), service.ReportFilter{Domain: head.Head.Name}, 0, 1)
	if err != nil {
		return site.Page{}, setupView{}, err
	}
	view.Reported = len(reports) > 0
	return page, view, nil
}

type selfTestView struct {
	domainView
	Test  dmarcd.SelfTest
	Table ui.Table
}

// selfTest shows the progress of a synthetic report.
func (s *Web) selfTest(c *site.Call) error {
	page, head, err := s.domainPage(c, "domain_selftest", "Self-test")
	if err != nil {
		return err
	}
	test, err := c.Team.SelfTest(c.R.Context(), head.Head.Name)
	if err != nil {
		return err
	}
	t := ui.Table{
		ID: "stages", Caption: "Stages",
		Columns: []ui.Column{{Title: "Stage"}, {Title: "Result"}, {Title: "Detail", Wide: true}, {Title: "Milliseconds", Numeric: true}},
	}
	for _, stage := range test.Stages {
		result := ui.Cell{Kind: ui.CellBadge, Text: "failed", Tone: "bad"}
		if stage.Passed {
			result = ui.Cell{Kind: ui.CellBadge, Text: "passed", Tone: "good"}
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(stage.Name), result, ui.Text(stage.Detail), ui.Count(stage.Took.Milliseconds())})
	}
	return c.Render(http.StatusOK, page, selfTestView{head, test, t})
}
