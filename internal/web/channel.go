package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const deliveriesPerPage = 50

type channelView struct {
	Tabs []ui.Tab
	// Name is the kind of the channel, Target its address.
	Name, Target string
	// State is whether the channel is on, and what became of the last delivery.
	State ui.Cell
	// LastAt is when the last delivery was attempted, zero for none; NextAt is when it is retried.
	LastAt, NextAt time.Time
	// IsTest means that the last delivery was a test.
	IsTest  bool
	Actions []ui.Action
	// Secret is a new secret, shown only once; "" for none.
	Secret string
	Form   ui.Form
	Table  ui.Table
	Pager  ui.Pager
}

// channel shows what became of the deliveries of a channel, and what is sent to it.
func (s *Web) channel(c *site.Call, id dmarcd.WebhookID) error {
	return s.showChannel(c, http.StatusOK, id, "", nil)
}

// showChannel shows a channel, with a form that has an error, or nil.
func (s *Web) showChannel(c *site.Call, status int, id dmarcd.WebhookID, secret string, form *ui.Form) error {
	channels, err := c.Team.Webhooks(c.R.Context())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(channels, func(w dmarcd.Webhook) bool { return w.ID == id })
	if at < 0 {
		return dmarcd.ErrNotFound
	}
	w := channels[at]
	found, err := requested(c, "deliveries", pages(deliveriesPerPage, func(before service.Cursor, limit int) ([]dmarcd.WebhookDelivery, error) {
		return c.Team.Deliveries(c.R.Context(), id, before.ID, limit)
	}, func(d dmarcd.WebhookDelivery) (time.Time, int64) { return d.CreatedAt, d.Event.Seq }))
	if err != nil {
		return err
	}
	path := notificationsPath + "/" + id.String()
	view := channelView{
		Tabs: settingsTabs(c.Viewer, "Notifications"), Name: channelName(w), Target: channelTarget(w), State: channelState(w, dmarcd.WebhookDelivery{}), Secret: secret,
		Form: selectionForm(w), Table: deliveryTable(found.Items, c.Viewer.MayOwn()), Pager: ui.CursorPager(path, withoutDone(c.R.URL.Query()), next(found)),
	}
	if form != nil {
		view.Form = *form
	}
	if newest, err := c.Team.Deliveries(c.R.Context(), id, 0, 1); err != nil {
		return err
	} else if len(newest) > 0 {
		last := newest[0]
		view.State, view.LastAt, view.IsTest = channelState(w, last), last.At, last.Event.Kind == dmarcd.WebhookTest
		if last.State == dmarcd.DeliveryRetrying && w.Enabled() {
			view.NextAt = last.NextAt
		}
	}
	if c.Viewer.MayOwn() {
		view.Actions = channelActions(w)
	}
	view.Table.CSV = path + "?csv=deliveries"
	frame := settingsFrame("channel", view.Name)
	frame.Trail = []ui.Link{{Text: "Notifications", Href: notificationsPath}}
	return c.Render(status, frame, view, view.Table)
}

// channelActions are the buttons of a channel.
func channelActions(w dmarcd.Webhook) []ui.Action {
	path := notificationsPath + "/" + w.ID.String()
	remove := ui.Action{Label: "Remove", Path: path + "/remove", Danger: true, Question: "Remove the channel with the list of its deliveries?"}
	switch {
	case service.AwaitsConfirmation(w):
		return []ui.Action{{Label: "Send the link again", Path: path, Name: "enabled", Value: "true"}, remove}
	case !w.Enabled():
		return []ui.Action{{Label: "Turn on", Path: path, Name: "enabled", Value: "true"}, remove}
	}
	actions := []ui.Action{{Label: "Send test", Path: path + "/test"}, {Label: "Turn off", Path: path, Name: "enabled", Value: "false"}}
	if w.Format.Signed() {
		actions = append(actions, ui.Action{
			Label: "Rotate secret", Path: path + "/rotate", Danger: true,
			Question: "Rotate the secret? Deliveries are signed with both secrets for 24 hours, then with the new one only.",
		})
	}
	return append(actions, remove)
}

// selectionForm is the form for what is sent to a channel.
func selectionForm(w dmarcd.Webhook) ui.Form {
	fields := kindFields(w.Format, func(kind dmarcd.EventKind) bool {
		return w.Kinds == nil && !kind.IsDigest() || slices.Contains(w.Kinds, kind)
	})
	return ui.Form{Path: notificationsPath + "/" + w.ID.String() + "/selection", Method: "post", Submit: "Save", Fields: append(fields, domainsField(w.Domains))}
}

// setSelection changes what is sent to a channel.
func (s *Web) setSelection(c *site.Call, id dmarcd.WebhookID, written url.Values) error {
	kinds, err := readKinds(written)
	var changed dmarcd.Webhook
	if err == nil {
		domains := splitList[string](written.Get("domains"))
		changed, err = c.Team.UpdateWebhook(c.R.Context(), id, service.WebhookChange{Kinds: &kinds, Domains: &domains})
	}
	path := notificationsPath + "/" + id.String()
	if err != nil {
		return site.Again(selectionForm(dmarcd.Webhook{ID: id}), written, renamedField(err, map[string]string{"domain": "domains"}), func(form ui.Form) error {
			return s.showChannel(c, http.StatusUnprocessableEntity, id, "", &form)
		})
	}
	if service.AwaitsConfirmation(changed) {
		return c.Done(path, "channel-asked")
	}
	return c.Done(path, "channel-saved")
}

// enableChannel turns a channel on or off.
func (s *Web) enableChannel(c *site.Call, id dmarcd.WebhookID, written url.Values) error {
	enabled := written.Get("enabled") == "true"
	changed, err := c.Team.UpdateWebhook(c.R.Context(), id, service.WebhookChange{Enabled: &enabled})
	path := notificationsPath + "/" + id.String()
	switch {
	case err != nil:
		return err
	case !enabled:
		return c.Done(path, "channel-off")
	case !changed.Enabled():
		return c.Done(path, "channel-asked")
	}
	return c.Done(path, "channel-on")
}

func (s *Web) rotateChannel(c *site.Call, id dmarcd.WebhookID) error {
	_, secret, err := c.Team.RotateWebhook(c.R.Context(), id)
	if err != nil {
		return err
	}
	return s.showChannel(c, http.StatusOK, id, secret, nil)
}

// testChannel sends a test, and shows the channel, whose state is the result.
func (s *Web) testChannel(c *site.Call, id dmarcd.WebhookID) error {
	if _, err := c.Team.TestWebhook(c.R.Context(), id); err != nil {
		return err
	}
	return c.Redirect(notificationsPath + "/" + id.String())
}

// throttled reports whether an error means that there were too many tests.
func throttled(err error) bool {
	var throttled *service.ThrottledError
	return errors.As(err, &throttled)
}

// deliveryTones are the colors of the states.
var deliveryTones = map[dmarcd.DeliveryState]string{dmarcd.DeliveryDelivered: "good", dmarcd.DeliveryNotSent: "bad", dmarcd.DeliveryRetrying: "warning"}

// deliveryState is the state of a delivery, with the reason for a failure.
func deliveryState(d dmarcd.WebhookDelivery) ui.Cell {
	return ui.Cell{Kind: ui.CellBadge, Text: phrase.State(d.State), Tone: deliveryTones[d.State]}.Noted(d.Problem)
}

func deliveryTable(deliveries []dmarcd.WebhookDelivery, mayRetry bool) ui.Table {
	t := ui.Table{
		ID: "deliveries", Caption: "Deliveries",
		Columns: []ui.Column{
			{Title: "Created"},
			{Title: "Event", Wide: true, Note: "Kind"},
			{Title: "State", Wide: true, Note: "Reason"},
			{Title: "Status", Numeric: true},
			{Title: "Attempts", Numeric: true},
			{Title: "Next attempt"},
			{Title: "Actions"},
		},
		Empty: ui.Empty{Title: "No deliveries yet", Advice: "What is sent is listed here for 30 days.", Action: ui.Link{}},
	}
	for _, d := range deliveries {
		status, again, retry := ui.Text(""), ui.Text(""), ui.Actions()
		if d.Status != 0 {
			status = ui.Count(int64(d.Status))
		}
		if d.State.Pending() {
			again = ui.At(d.NextAt)
		} else if mayRetry {
			retry = ui.Actions(ui.Action{Label: "Retry", Path: notificationsPath + "/" + d.Webhook.String() + "/deliveries/" + d.ID.String() + "/retry"})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.At(d.CreatedAt), ui.Text(phrase.Event(d.Event)).Noted(phrase.Kind(d.Event.Kind)), deliveryState(d), status, ui.Count(int64(d.Attempts)), again, retry,
		})
	}
	return t
}

func (s *Web) retryDelivery(c *site.Call, id dmarcd.WebhookID) error {
	delivery, err := dmarcd.ParseDeliveryID(c.Params.Get("delivery"))
	if err != nil {
		return dmarcd.ErrNotFound
	}
	_, err = c.Team.RetryDelivery(c.R.Context(), id, delivery)
	return c.Finish(err, notificationsPath+"/"+id.String(), "delivery-retried")
}
