package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const (
	groupsPerPage  = 25
	alertsPerGroup = 5
	// maxOpen limits how far open alerts are counted.
	maxOpen = 1000
	// kindQuestion selects questions among what needs the user.
	kindQuestion = "question"
)

type openView struct {
	Tabs []ui.Tab
	// Title says how much needs the user.
	Title     string
	Filter    ui.Form
	Questions []questionView
	Groups    []groupView
	// All acknowledges all alerts that match the filter; it has no Path if there is none, or if
	// the viewer may not.
	All bulkAction
	// Unsent is true if no channel selects some of the alerts.
	Unsent bool
	Empty  ui.Empty
	Pager  ui.Pager
}

// questionView is what a user has to answer: a question about a sender, or what to do about forwarded
// mail.
type questionView struct {
	Domain, Href, Text string
	Evidence           []string
	Step               stepView
}

// groupView are the open alerts of a kind about a domain.
type groupView struct {
	dmarcd.AlertGroup
	Name, Href string
	Badge      ui.Cell
	First      alertView
	Others     []alertView
	// More is the number of alerts that are not shown.
	More int
	All  bulkAction
}

// alertView is an open alert with its delivery.
type alertView struct {
	At       time.Time
	Text     string
	Delivery ui.Cell
	Buttons  []ui.Action
}

// bulkAction acknowledges several alerts.
type bulkAction struct {
	Path, Label string
	Fields      []ui.Choice
}

// needsYou shows open alerts and questions.
func (s *Web) needsYou(c *site.Call) error {
	query := c.R.URL.Query()
	filter, kind := openFilter(query)
	found, err := requested(c, "", pages(groupsPerPage, func(before service.Cursor, limit int) ([]dmarcd.AlertGroup, error) {
		if kind == kindQuestion {
			return nil, nil
		}
		return c.Team.AlertGroups(c.R.Context(), filter, before.ID, limit, alertsPerGroup)
	}, func(g dmarcd.AlertGroup) (time.Time, int64) { return g.Alerts[0].Event.At, g.Last }))
	if err != nil {
		return err
	}
	view := openView{Tabs: activityTabs(c, activityPath), Pager: ui.CursorPager(activityPath, withoutDone(query), next(found))}
	if query.Get("after") == "" && (kind == "" || kind == kindQuestion) {
		if view.Questions, err = s.questions(c, filter.Domain); err != nil {
			return err
		}
	}
	open := 0
	if kind != kindQuestion {
		if open, err = c.Team.OpenAlerts(c.R.Context(), filter, maxOpen); err != nil {
			return err
		}
	}
	for _, group := range found.Items {
		view.Groups = append(view.Groups, s.newGroupView(c, group))
		view.Unsent = view.Unsent || slices.ContainsFunc(group.Alerts, isUnselected)
	}
	if last := newestAlert(found.Items); open > 0 && query.Get("after") == "" && c.Viewer.MayEdit() {
		view.All = newBulkAction(c, "Acknowledge all "+countOpen(open), filter, last)
	}
	if view.Filter, err = openForm(c, query.Get("domain"), kind); err != nil {
		return err
	}
	view.Title = openTitle(open, len(view.Questions))
	view.Empty = ui.Empty{Title: "Nothing needs you", Advice: "Alerts and questions that wait for someone are listed here, until they are acknowledged, answered or resolved."}
	if filter.Domain != "" || kind != "" || c.Tag != "" {
		view.Empty = ui.Empty{Title: "Nothing matches", Advice: "No open alert or question matches the filter.", Action: ui.Link{Text: "Show all", Href: activityPath}}
	}
	return c.Render(http.StatusOK, site.Page{Template: "activity_open", Title: "Needs you · Activity", Section: "Activity"}, view)
}

// openFilter returns the filter of open alerts in a query or a form, and the kind that it names.
func openFilter(values url.Values) (dmarcd.AlertFilter, string) {
	filter := dmarcd.AlertFilter{Domain: normalDomain(values.Get("domain")), NoDomain: values.Get("about") == "team", Open: true}
	kind := values.Get("kind")
	switch {
	case kind == kindQuestion:
	case slices.Contains(openKinds, dmarcd.EventKind(kind)):
		filter.Kind = dmarcd.EventKind(kind)
	default:
		kind = ""
	}
	return filter, kind
}

// openKinds are the kinds of alerts that stay open.
var openKinds = kindsWithout(func(kind dmarcd.EventKind) bool { return !kind.NeedsReaction() })

func openForm(c *site.Call, domain, kind string) (ui.Form, error) {
	tags, err := newTagChoice(c)
	choices := []ui.Choice{{Value: "", Label: "any"}, {Value: kindQuestion, Label: "Question"}}
	for _, k := range openKinds {
		choices = append(choices, ui.Choice{Value: string(k), Label: phrase.Kind(k)})
	}
	return c.Carrying(ui.Form{Path: activityPath, Method: "get", Submit: "Filter", Inline: true, Fields: append([]ui.Field{
		{Name: "domain", Label: "Domain", Type: "search", Value: domain, Placeholder: "example.com"},
		{Name: "kind", Label: "Kind", Type: "select", Value: kind, Choices: choices},
	}, tags.fields()...)}), err
}

// openTitle says how much needs the user.
func openTitle(alerts, questions int) string {
	text := ""
	switch {
	case alerts == 0 && questions == 0:
		return "Nothing needs you"
	case questions == 0:
		text = countOpen(alerts)
	case alerts == 0:
		text = phrase.Count(int64(questions), "question")
	default:
		text = countOpen(alerts) + " and " + phrase.Count(int64(questions), "question")
	}
	if alerts+questions == 1 {
		return text + " needs you"
	}
	return text + " need you"
}

func countOpen(alerts int) string {
	if alerts >= maxOpen {
		return phrase.Number(maxOpen) + " or more alerts"
	}
	return phrase.Count(int64(alerts), "alert")
}

// newestAlert is the number of the newest alert of groups.
func newestAlert(groups []dmarcd.AlertGroup) (last int64) {
	for _, g := range groups {
		last = max(last, g.Last)
	}
	return last
}

// newBulkAction returns the button that acknowledges the open alerts that match the filter, up to one.
func newBulkAction(c *site.Call, label string, filter dmarcd.AlertFilter, through int64) bulkAction {
	action := bulkAction{Path: c.Link(activityPath + "/acknowledge"), Label: label}
	for _, field := range []ui.Choice{
		{Value: "domain", Label: filter.Domain}, {Value: "kind", Label: string(filter.Kind)}, {Value: "through", Label: strconv.FormatInt(through, 10)},
	} {
		if field.Label != "" {
			action.Fields = append(action.Fields, field)
		}
	}
	if filter.NoDomain {
		action.Fields = append(action.Fields, ui.Choice{Value: "about", Label: "team"})
	}
	return action
}

func (s *Web) newGroupView(c *site.Call, group dmarcd.AlertGroup) groupView {
	view := groupView{AlertGroup: group, Name: phrase.Kind(group.Kind), More: group.Count - len(group.Alerts)}
	view.Badge = ui.Cell{Kind: ui.CellBadge, Text: view.Name, Tone: levelTones[group.Alerts[0].Level]}
	if group.Domain != "" {
		view.Href = c.Link(domainPath(group.Domain))
	}
	for _, alert := range group.Alerts {
		view.Others = append(view.Others, s.newAlertView(c, alert))
	}
	view.First, view.Others = view.Others[0], view.Others[1:]
	if group.Count > 1 && c.Viewer.MayEdit() {
		filter := dmarcd.AlertFilter{Domain: group.Domain, NoDomain: group.Domain == "", Kind: group.Kind}
		view.All = newBulkAction(c, "Acknowledge all "+phrase.Number(int64(group.Count)), filter, group.Last)
	}
	return view
}

func (s *Web) newAlertView(c *site.Call, alert dmarcd.Alert) alertView {
	view := alertView{At: alert.Event.At, Text: phrase.Event(alert.Event), Delivery: deliveryCell(alert, s.options.Now())}
	if c.Viewer.MayEdit() {
		view.Buttons = []ui.Action{{
			Label: "Acknowledge", Path: ui.WithQuery(activityPath+"/"+strconv.FormatInt(alert.Event.Seq, 10)+"/acknowledge", withoutDone(c.R.URL.Query()), "after", ""),
		}}
	}
	return view
}

// isUnselected reports whether no channel selects an alert, which the page says once.
func isUnselected(alert dmarcd.Alert) bool {
	return alert.State == dmarcd.AlertNotSent && alert.Reason == dmarcd.NoChannel
}

// deliveryCell says whether an alert was delivered.
func deliveryCell(alert dmarcd.Alert, now time.Time) ui.Cell {
	if isUnselected(alert) {
		return ui.Cell{Kind: ui.CellBadge, Text: phrase.State(alert.State)}
	}
	tones := map[dmarcd.AlertState]string{dmarcd.AlertDelivered: "good", dmarcd.AlertRetrying: "warning", dmarcd.AlertNotSent: "bad"}
	cell := ui.Cell{Kind: ui.CellBadge, Text: phrase.State(alert.State), Tone: tones[alert.State]}
	switch alert.State {
	case dmarcd.AlertRetrying, dmarcd.AlertNotSent, dmarcd.AlertSuppressed:
		return cell.Noted(alert.Reason)
	case dmarcd.AlertWaiting:
		if alert.SendAt.After(now) {
			return cell.Noted("until " + ui.Moment(alert.SendAt))
		}
	}
	return cell
}

// questions returns the open questions of the most urgent domains, or of one. Questions about senders can
// be answered before the steps that come first are done.
func (s *Web) questions(c *site.Call, domain string) ([]questionView, error) {
	all, err := c.Team.TopAdvice(c.R.Context())
	if err != nil {
		return nil, err
	}
	var open []questionView
	for i := range all {
		advice := &all[i]
		if domain != "" && advice.Domain != domain {
			continue
		}
		for _, step := range advice.Steps {
			view := questionView{Domain: advice.Domain, Href: c.Link(domainPath(advice.Domain)), Text: step.Title}
			switch q := step.Question; {
			case q != nil && step.State != dmarcd.StepDone:
				step.State, view.Evidence = dmarcd.StepNow, q.Evidence
			case step.ID == dmarcd.ActionAccept && step.State == dmarcd.StepNow:
				view.Evidence = []string{step.Reason}
			default:
				continue
			}
			view.Step = s.newStepView(c, advice, step)
			open = append(open, view)
		}
	}
	return open, nil
}

// acknowledgeAlerts acknowledges the open alerts that match the form, up to the newest one that was shown.
func (s *Web) acknowledgeAlerts(c *site.Call, written url.Values) error {
	filter, _ := openFilter(written)
	var err error
	if filter.Through, err = strconv.ParseInt(written.Get("through"), 10, 64); err != nil || filter.Through < 1 {
		return site.ErrBadForm
	}
	if domain := written.Get("domain"); domain != "" && filter.Domain == "" || written.Get("kind") != string(filter.Kind) {
		return site.ErrBadForm // never more than the button says
	}
	if _, err := c.Team.AcknowledgeAlerts(c.R.Context(), filter); err != nil {
		return err
	}
	return c.Redirect(ui.WithQuery(activityPath, withoutDone(c.R.URL.Query()), "done", "alerts-acknowledged"))
}

func (s *Web) acknowledgeAlert(c *site.Call) error {
	seq, err := strconv.ParseInt(c.Params.Get("id"), 10, 64)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	if _, err := c.Team.AcknowledgeAlert(c.R.Context(), seq); err != nil {
		return err
	}
	return c.Redirect(ui.WithQuery(activityPath, withoutDone(c.R.URL.Query()), "done", "alert-acknowledged"))
}
