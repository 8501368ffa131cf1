package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) listAlerts(c *call) error {
	limit, after := c.query.cursor()
	events := readEventFilter(c.query)
	filter := dmarcd.AlertFilter{
		Domain: events.Domain, Kind: events.Kind,
		State: word(c.query, "state", dmarcd.AlertSent, dmarcd.AlertSuppressed, dmarcd.AlertWaiting, dmarcd.AlertGrouped),
		Open:  word(c.query, "open", "true", "false") == "true",
	}
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	alerts, err := c.service.Alerts(c.r.Context(), filter, after.ID, limit+1)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(alerts, limit, func(alert dmarcd.Alert) string { return wire.FormatCursor(alert.Event.At, alert.Event.Seq) },
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
		return &dmarcd.InvalidError{Field: "min_level", Message: "The rules have an unknown member, or one of another type than the documentation says."}
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
