package web

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const alertsPath = Prefix + "/alerts"

type alertsView struct {
	Table ui.Table
	Pager ui.Pager
	// Rules is the form for the rules. Mutes is the number of mutes, which only the API
	// changes.
	Rules ui.Form
	Mutes int
	// Digest is the form with which users choose their digest; it has no fields where no mail
	// is sent. Address is where it goes.
	Digest  ui.Form
	Address string
	// Unsent means that no webhook is enabled.
	Unsent bool
}

const alertsPerPage = 50

// alerts shows the rules, and their decision on each event.
func (s *Web) alerts(c *call) error {
	rules, err := c.team.AlertRules(c.r.Context())
	if err != nil {
		return err
	}
	return s.showAlerts(c, http.StatusOK, rulesForm(rules), len(rules.Mutes))
}

func (s *Web) showAlerts(c *call, status int, rules ui.Form, mutes int) error {
	found, err := requested(c, "alerts", pages(alertsPerPage, func(before service.Cursor, limit int) ([]dmarcd.Alert, error) {
		return c.team.Alerts(c.r.Context(), dmarcd.AlertFilter{}, before.ID, limit)
	}, func(a dmarcd.Alert) (time.Time, int64) { return a.Event.At, a.Event.Seq }))
	if err != nil {
		return err
	}
	if c.wantsCSV("alerts") {
		return c.csv(alertTable(found.Items, false))
	}
	own, err := c.team.OwnDigest(c.r.Context())
	if err != nil {
		return err
	}
	view := alertsView{
		Digest: digestForm(own.Kind), Address: own.Address,
		Table: alertTable(found.Items, c.viewer.may(AccessEdit)), Pager: ui.CursorPager(alertsPath, withoutDone(c.r.URL.Query()), next(found)),
		Rules: rules, Mutes: mutes,
	}
	enabled, err := c.team.EnabledWebhooks(c.r.Context())
	if err != nil {
		return err
	}
	view.Unsent = enabled == 0
	view.Table.CSV = alertsPath + "?csv=alerts"
	for i, a := range found.Items {
		if a.State == dmarcd.AlertSent { // as usual: only the file has the reason
			view.Table.Rows[i][3].Note = ""
		}
	}
	return c.render(status, Page{Template: "alerts", Title: "Alerts", Section: "Alerts"}, view)
}

func digestForm(kind dmarcd.EventKind) ui.Form {
	return ui.Form{Path: alertsPath + "/digest", Method: "post", Submit: "Save digest", Fields: []ui.Field{{
		Name: "digest", Label: "Digest by email", Type: "select", Value: string(kind), Choices: []ui.Choice{
			{Value: "", Label: "off"},
			{Value: string(dmarcd.DigestDaily), Label: "daily"},
			{Value: string(dmarcd.DigestWeekly), Label: "weekly, on Monday"},
			{Value: string(dmarcd.DigestMonthly), Label: "monthly, on the first day"},
		},
	}}}
}

// setDigest chooses which digest the user gets.
func (s *Web) setDigest(c *call, written url.Values) error {
	return c.finish(c.team.SetOwnDigest(c.r.Context(), dmarcd.EventKind(written.Get("digest"))), alertsPath, "digest-set")
}

func alertTable(alerts []dmarcd.Alert, mayAcknowledge bool) ui.Table {
	t := ui.Table{
		ID: "alerts", Caption: "Alerts",
		Columns: []ui.Column{{Title: "When"}, {Title: "Event", Wide: true, Note: "Kind"}, {Title: "Level"}, {Title: "State", Wide: true, Note: "Reason"}, {Title: "Acknowledged", Wide: true}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No alerts", Advice: "Changes of DNS records and incidents in mail and reports are listed here.", Action: ui.Link{}},
	}
	states := map[dmarcd.AlertState]string{dmarcd.AlertSent: "good", dmarcd.AlertSuppressed: "info", dmarcd.AlertWaiting: "info", dmarcd.AlertGrouped: "good"}
	for _, a := range alerts {
		button := ui.Actions()
		if mayAcknowledge && a.AcknowledgedAt.IsZero() && !a.Event.Kind.IsDigest() {
			button = ui.Actions(ui.Action{Label: "Acknowledge", Path: alertsPath + "/" + strconv.FormatInt(a.Event.Seq, 10) + "/acknowledge"})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.At(a.Event.At), ui.Text(a.Event.Summary()).Noted(string(a.Event.Kind)),
			{Kind: ui.CellBadge, Text: string(a.Level), Tone: levelTones[a.Level]},
			ui.Cell{Kind: ui.CellBadge, Text: string(a.State), Tone: states[a.State]}.Noted(a.Reason),
			ui.Text(a.AcknowledgedBy), button,
		})
	}
	return t
}

func (s *Web) acknowledgeAlert(c *call) error {
	seq, err := strconv.ParseInt(c.params.Get("id"), 10, 64)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	_, err = c.team.AcknowledgeAlert(c.r.Context(), seq)
	return c.finish(err, alertsPath, "alert-acknowledged")
}
