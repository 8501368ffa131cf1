package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func digestForm(kind dmarcd.EventKind) ui.Form {
	return ui.Form{Path: notificationsPath + "/digest", Method: "post", Submit: "Save digest", Fields: []ui.Field{{
		Name: "digest", Label: "Your digest by email", Type: "select", Value: string(kind), Choices: []ui.Choice{
			{Value: "", Label: "off"},
			{Value: string(dmarcd.DigestDaily), Label: "daily"},
			{Value: string(dmarcd.DigestWeekly), Label: "weekly, on Monday"},
			{Value: string(dmarcd.DigestMonthly), Label: "monthly, on the first day"},
			{Value: string(dmarcd.DigestManagers), Label: "report for managers, monthly"},
		},
	}}}
}

// setDigest chooses which digest the user gets.
func (s *Web) setDigest(c *site.Call, written url.Values) error {
	return c.Finish(c.Team.SetOwnDigest(c.R.Context(), dmarcd.EventKind(written.Get("digest"))), notificationsPath, "digest-set")
}

// rulesForm is the form for the rules, without kinds, which channels select. If rules that were set by
// the API select kinds, a box keeps that.
func rulesForm(r dmarcd.AlertRules) ui.Form {
	shape := wire.NewAlertRules(r)
	quiet := wire.QuietHours{}
	if shape.QuietHours != nil {
		quiet = *shape.QuietHours
	}
	list := func(name, label, value, placeholder, hint string) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "text", Autocomplete: "off", Value: value, Placeholder: placeholder, Hint: hint}
	}
	minutes := func(name, label string, value int, hint string) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "number", Required: true, Value: strconv.Itoa(value), Hint: hint}
	}
	form := ui.Form{Path: notificationsPath + "/rules", Method: "post", Submit: "Save rules", Fields: []ui.Field{
		list("domains", "Only these domains", orAll(shape.Domains, ""), "example.com", "Separate with commas. Leave empty for all."),
		list("tags", "And domains with these tags", orAll(shape.Tags, ""), "shop", "Separate with commas."),
		{Name: "min_level", Label: "Minimum level", Type: "select", Value: shape.MinLevel, Choices: []ui.Choice{
			{Value: string(dmarcd.LevelInfo), Label: "info: everything"}, {Value: string(dmarcd.LevelWarning), Label: "warning: no good news"}, {Value: string(dmarcd.LevelError), Label: "error: only what harms your mail"},
		}},
		{Name: "quiet_hours", Label: "Quiet hours from", Type: "time", Value: quiet.From, Hint: "Notifications wait until the quiet hours end. Leave both times empty for none."},
		{Name: "quiet_to", Label: "Quiet hours until", Type: "time", Value: quiet.To},
		list("time_zone", "Time zone of the quiet hours", quiet.TimeZone, "Europe/Berlin", ""),
		minutes("group_minutes", "Collect for (minutes)", shape.GroupMinutes, "After a notification, more of the same kind are collected this long and sent as one. 0 sends each at once."),
		minutes("cool_down_minutes", "Do not repeat for (minutes)", shape.CoolDownMinutes, "A notification about the same thing is not sent again for this long. 0 repeats it."),
	}}
	if r.Kinds != nil {
		names := make([]string, len(r.Kinds))
		for i, kind := range r.Kinds {
			names[i] = phrase.Kind(kind)
		}
		form.Fields = append(form.Fields, ui.Field{Name: "kinds", Label: "Only these kinds, as set with the API: " + strings.Join(names, ", "), Type: "checkbox", Checked: true})
	}
	return form
}

// readRules parses the rules in a form, without kinds and mutes.
func readRules(written url.Values) (dmarcd.AlertRules, error) {
	r := dmarcd.AlertRules{Domains: splitList[string](written.Get("domains")), Tags: splitList[string](written.Get("tags")), MinLevel: dmarcd.Level(written.Get("min_level"))}
	for _, field := range []struct {
		name string
		to   *time.Duration
	}{{"group_minutes", &r.Group}, {"cool_down_minutes", &r.CoolDown}} {
		minutes, err := strconv.ParseUint(written.Get(field.name), 10, 16)
		if err != nil {
			return r, &dmarcd.InvalidError{Field: field.name, Message: "Enter a number of minutes from 0 to 10,080, which is 7 days."}
		}
		*field.to = time.Duration(minutes) * time.Minute
	}
	from, to := written.Get("quiet_hours"), written.Get("quiet_to")
	if from == "" && to == "" {
		return r, nil
	}
	r.Quiet = &dmarcd.QuietHours{Zone: written.Get("time_zone")}
	var err error
	if r.Quiet.From, err = wire.ParseMinutes(from); err != nil {
		return r, err
	}
	r.Quiet.To, err = wire.ParseMinutes(to)
	return r, renamedField(err, map[string]string{"quiet_hours": "quiet_to"})
}

// setAlertRules saves the rules of the form, and keeps the mutes and, if its box is ticked, the kinds.
func (s *Web) setAlertRules(c *site.Call, written url.Values) error {
	before, err := c.Team.AlertRules(c.R.Context())
	if err != nil {
		return err
	}
	rules, err := readRules(written)
	if err == nil {
		rules.Mutes = before.Mutes
		if written.Get("kinds") != "" {
			rules.Kinds = before.Kinds
		}
		err = c.Team.SetAlertRules(c.R.Context(), rules)
	}
	if err != nil {
		fields := map[string]string{"domain": "domains"}
		if q := rules.Quiet; q != nil && q.From != q.To { // the times are right
			fields["quiet_hours"] = "time_zone"
		}
		return site.Again(rulesForm(dmarcd.AlertRules{Kinds: before.Kinds}), written, renamedField(err, fields), func(form ui.Form) error {
			return s.showNotifications(c, http.StatusUnprocessableEntity, form, len(before.Mutes))
		})
	}
	return c.Done(notificationsPath, "alert-rules-set")
}

// testAlert sends a test to all channels.
func (s *Web) testAlert(c *site.Call) error {
	if _, err := c.Team.TestAlert(c.R.Context()); err != nil {
		return err
	}
	enabled, err := c.Team.EnabledWebhooks(c.R.Context())
	if enabled == 0 {
		return c.Finish(err, notificationsPath, "alert-not-sent")
	}
	return c.Finish(err, notificationsPath, "alert-tested")
}
