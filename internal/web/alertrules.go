package web

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

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
	return ui.Form{Path: alertsPath + "/rules", Method: "post", Submit: "Save rules", Fields: []ui.Field{
		list("kinds", "Kinds of events", orAll(shape.Kinds, ""), "policy.weakened, spoofing.burst", "Separate with commas. Leave empty for all."),
		list("domains", "Domains", orAll(shape.Domains, ""), "example.com", "Separate with commas. Leave empty for all."),
		list("tags", "Tags", orAll(shape.Tags, ""), "shop", "Also include domains with one of these tags. Separate with commas."),
		{Name: "min_level", Label: "Minimum level", Type: "select", Value: shape.MinLevel, Choices: ui.Choices(dmarcd.LevelInfo, dmarcd.LevelWarning, dmarcd.LevelError)},
		{Name: "quiet_hours", Label: "Quiet hours from", Type: "time", Value: quiet.From, Hint: "Alerts wait until the quiet hours end. Leave both times empty for none."},
		{Name: "quiet_to", Label: "Quiet hours until", Type: "time", Value: quiet.To},
		list("time_zone", "Time zone of the quiet hours", quiet.TimeZone, "Europe/Berlin", ""),
		minutes("group_minutes", "Group for (minutes)", shape.GroupMinutes, "After an alert, further alerts of the same kind wait this long and are sent as one. 0 sends each at once."),
		minutes("cool_down_minutes", "Cool-down (minutes)", shape.CoolDownMinutes, "The same alert is not sent again for this long. 0 turns the cool-down off."),
	}}
}

// readRules parses the rules in a form.
func readRules(written url.Values) (dmarcd.AlertRules, error) {
	r := dmarcd.AlertRules{
		Kinds: splitList[dmarcd.EventKind](written.Get("kinds")), Domains: splitList[string](written.Get("domains")),
		Tags: splitList[string](written.Get("tags")), MinLevel: dmarcd.Level(written.Get("min_level")),
	}
	for name, to := range map[string]*time.Duration{"group_minutes": &r.Group, "cool_down_minutes": &r.CoolDown} {
		minutes, err := strconv.ParseUint(written.Get(name), 10, 16)
		if err != nil {
			return r, &dmarcd.InvalidError{Field: name, Message: "Enter a number of minutes from 0 to 10,080, which is 7 days."}
		}
		*to = time.Duration(minutes) * time.Minute
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
	return r, err
}

// setAlertRules saves the rules of the form, and keeps the mutes.
func (s *Web) setAlertRules(c *call, written url.Values) error {
	before, err := c.team.AlertRules(c.r.Context())
	if err != nil {
		return err
	}
	rules, err := readRules(written)
	if err == nil {
		rules.Mutes = before.Mutes
		err = c.team.SetAlertRules(c.r.Context(), rules)
	}
	if err != nil {
		return again(rulesForm(dmarcd.AlertRules{}), written, webhookField(err), func(form ui.Form) error {
			return s.showAlerts(c, http.StatusUnprocessableEntity, form, len(before.Mutes))
		})
	}
	return c.done(alertsPath, "alert-rules-set")
}

func (s *Web) testAlert(c *call) error {
	if _, err := c.team.TestAlert(c.r.Context()); err != nil {
		return err
	}
	enabled, err := c.team.EnabledWebhooks(c.r.Context())
	if enabled == 0 {
		return c.finish(err, alertsPath, "alert-not-sent")
	}
	return c.finish(err, alertsPath, "alert-tested")
}
