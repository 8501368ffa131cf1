package web

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const domainsPerPage = 50

// Overview is the data of the first page.
type Overview struct {
	// Mail counts all domains of the team.
	Mail service.ClassSeries
	// Marks are changes of policies in the period.
	Marks []ui.Mark
	// Recent are the latest events, newest first: one for each check of a domain.
	Recent []dmarcd.Event
	todo
}

const (
	// maxRecent limits the events that the overview names, of maxSearched ones.
	maxRecent, maxSearched = 3, 20
	// maxMarkEvents is the number of events searched for policy changes.
	maxMarkEvents = 200
)

func (s *Web) loadOverview(c *site.Call, period ui.Period) (Overview, error) {
	var found Overview
	var errTodo error
	var group recovered.Group
	group.Go(func() { found.todo, errTodo = s.newTodo(c) })
	err := mailAndRecent(c, &found, period)
	group.Wait()
	return found, cmp.Or(err, errTodo)
}

// mailAndRecent reads all of the overview except what is to do.
func mailAndRecent(c *site.Call, found *Overview, period ui.Period) (err error) {
	ctx := c.R.Context()
	if found.Mail, err = teamClasses(c, period); err != nil {
		return err
	}
	latest, err := c.Team.Events(ctx, service.EventFilter{}, service.Cursor{}, maxSearched)
	if err != nil {
		return err
	}
	for _, e := range latest {
		switch n := len(found.Recent); {
		case e.Domain == "": // a test
		case n > 0 && found.Recent[n-1].Domain == e.Domain && found.Recent[n-1].At.Equal(e.At):
			if slices.Contains(policyKinds, e.Kind) { // says more than the problems that it ends or causes
				found.Recent[n-1] = e
			}
		case n < maxRecent:
			found.Recent = append(found.Recent, e)
		}
	}
	changed, err := c.Team.Events(ctx, service.EventFilter{Kinds: policyKinds, Times: service.TimesOf(period.Days())}, service.Cursor{}, maxMarkEvents)
	found.Marks = policyMarks(c, changed)
	return err
}

type overviewView struct {
	Overview
	// Title is the answer: how many domains are protected, and how many need the user.
	Title string
	// Tag chooses a tag, with the parameters that it keeps in Hidden.
	Tag     tagChoice
	Hidden  []ui.Choice
	Period  ui.PeriodChoice
	Figures []figure
	Chart   ui.Chart
	// Start is the getting-started guide, nil if the team has received a report.
	Start *startView
	// Activity is the list of all events.
	Activity string
}

func (s *Web) overview(c *site.Call) error {
	const path = Prefix + "/"
	if c.WantsCSV(recordsCSV) {
		return exportRecords(c)
	}
	query := c.R.URL.Query()
	period := ui.PeriodOf(query, s.options.Now())
	found, err := s.loadOverview(c, period)
	if err != nil {
		return err
	}
	view := overviewView{
		Overview: found, Title: found.title(c.Tag),
		Hidden:   ui.HiddenFields(query, "tag"),
		Period:   ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Figures:  classFigures(found.Mail, period.Len()),
		Chart:    classChart(found.Mail, found.Marks),
		Activity: c.Link(everythingPath),
	}
	if view.Tag, err = newTagChoice(c); err != nil {
		return err
	}
	if view.Start, err = newStartView(c); err != nil {
		return err
	}
	view.Chart.LinkDays(Prefix+"/reports", site.Carried(query), "kind", string(dmarcd.KindAggregate))
	view.Chart.CSV = ui.WithQuery(path, query, "csv", view.Chart.ID)
	return c.Render(http.StatusOK, site.Page{Template: "overview", Title: view.Title, Section: "Overview", Charts: true}, view, view.Chart.Table())
}

// startView is the getting-started guide of a team.
type startView struct {
	service.Start
	MayEdit bool
	// Setup is the setup guide of a domain whose records are not published, "" if there
	// is none.
	Setup string
}

// newStartView returns the getting-started guide, nil if the team has received a report.
func newStartView(c *site.Call) (*startView, error) {
	start, err := c.Team.Start(c.R.Context())
	if err != nil || start.Domains > 0 && start.Reported {
		return nil, err
	}
	view := &startView{Start: start, MayEdit: c.Viewer.MayEdit()}
	if start.Open != "" {
		view.Setup = domainPath(start.Open) + "/setup"
	}
	return view, nil
}

func (s *Web) addSample(c *site.Call) error {
	return c.Finish(c.Team.AddSample(c.R.Context()), Prefix+"/", "sample-added")
}

func (s *Web) deleteSample(c *site.Call) error {
	return c.Finish(c.Team.DeleteSample(c.R.Context()), Prefix+"/", "sample-deleted")
}
