package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) listAlerts(c *call) error {
	limit, after := c.query.cursor()
	filter := dmarcd.AlertFilter{
		Domain: c.query.domain(), Kind: readKind(c.query),
		State: word(c.query, "state", dmarcd.AlertDelivered, dmarcd.AlertRetrying, dmarcd.AlertNotSent, dmarcd.AlertWaiting, dmarcd.AlertGrouped, dmarcd.AlertSuppressed),
		Open:  c.query.flag("open"), Days: c.query.days(),
	}
	team := tagged(c)
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	alerts, err := team.Alerts(c.r.Context(), filter, after.ID, limit+1)
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(alerts, limit, func(alert dmarcd.Alert) string { return wire.FormatCursor(alert.Event.At, alert.Event.Seq) },
		func(alert dmarcd.Alert) wire.Alert { return wire.NewAlert(alert, a.baseURL) }))
}

func (a *API) acknowledgeAlert(c *call) error {
	seq, err := strconv.ParseInt(c.params.Get("id"), 10, 64)
	if err != nil {
		return errNoSuchAlert
	}
	alert, err := c.service.AcknowledgeAlert(c.r.Context(), seq)
	if err != nil {
		return missing(err, errNoSuchAlert)
	}
	return c.writeJSON(http.StatusOK, wire.NewAlert(alert, a.baseURL))
}

// acknowledgeAlerts acknowledges the open alerts that the body selects, up to one.
func (a *API) acknowledgeAlerts(c *call) error {
	body := readObject(c, "through", `{"through": 4711, "domain": "example.com"}`)
	filter := dmarcd.AlertFilter{Through: body.number("through")}
	if body.states("domain") {
		name, err := dmarcd.ParseName(body.text("domain"))
		if err != nil {
			body.reject("domain", "The member domain must be a domain name.")
		}
		filter.Domain = name
	}
	if body.states("kind") {
		filter.Kind = dmarcd.EventKind(body.text("kind"))
		body.accept("kind", filter.Kind.Validate("kind"))
	}
	if filter.Through < 1 {
		body.reject("through", "The member through must be the seq of the newest alert that you have seen.")
	}
	if body.err != nil {
		return body.err
	}
	n, err := c.service.AcknowledgeAlerts(c.r.Context(), filter)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, wire.Acknowledged{Acknowledged: n})
}

func (a *API) testAlert(c *call) error {
	alert, err := c.service.TestAlert(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, wire.NewAlert(alert, a.baseURL))
}

func (a *API) getAlertRules(c *call) error {
	rules, err := c.service.AlertRules(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewAlertRules(rules))
}

func (a *API) setAlertRules(c *call) error {
	given := readObject(c, "min_level", `{"min_level": "warning"}`)
	if given.err != nil {
		return given.err
	}
	body, err := json.Marshal(given.members)
	if err != nil {
		return err
	}
	var shape wire.AlertRules
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&shape); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return &dmarcd.InvalidError{Field: wrong.Field, Message: "The rules have a member of another type than the documentation says."}
		}
		return &dmarcd.InvalidError{Code: codeUnknownMember, Message: "The quiet hours or a mute have an unknown member."}
	}
	rules, err := shape.Rules()
	if err != nil {
		return err
	}
	if err := c.service.SetAlertRules(c.r.Context(), rules); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, wire.NewAlertRules(rules))
}
