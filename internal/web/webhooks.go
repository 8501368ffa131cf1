package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const webhooksPath = Prefix + "/settings/webhooks"

// formatNames are the display names of formats.
var formatNames = map[dmarcd.WebhookFormat]string{
	dmarcd.FormatStandard: "Standard Webhooks", dmarcd.FormatJSON: "JSON", dmarcd.FormatSlack: "Slack", dmarcd.FormatTeams: "Microsoft Teams",
	dmarcd.FormatDiscord: "Discord", dmarcd.FormatPagerDuty: "PagerDuty", dmarcd.FormatEmail: "Email",
}

func webhookForm() ui.Form {
	var formats []ui.Choice
	for _, format := range dmarcd.WebhookFormats() {
		formats = append(formats, ui.Choice{Value: string(format), Label: formatNames[format]})
	}
	return ui.Form{Path: webhooksPath, Method: "post", Submit: "Add webhook", Fields: []ui.Field{
		{Name: "format", Label: "Format", Type: "select", Value: string(dmarcd.FormatStandard), Choices: formats},
		{
			Name: "url", Label: "URL or email address", Type: "text", Required: true, Autocomplete: "off", Placeholder: "https://example.com/hooks/dmarc",
			Hint: "The URL of a chat service is stored encrypted, and never shown again. For PagerDuty, add the integration key: https://events.pagerduty.com/v2/enqueue?routing_key=KEY.",
		},
		{Name: "kinds", Label: "Kinds of events", Type: "text", Autocomplete: "off", Placeholder: "policy.weakened, digest.weekly", Hint: "Separate with commas. Leave empty for all except digests: digest.daily, digest.weekly and digest.monthly."},
		{Name: "domains", Label: "Domains", Type: "text", Autocomplete: "off", Placeholder: "example.com", Hint: "Separate with commas. Leave empty for all."},
	}}
}

func (s *Web) webhooks(c *call) error { return s.showWebhooks(c, http.StatusOK, webhookForm(), "") }

func (s *Web) showWebhooks(c *call, status int, form ui.Form, secret string) error {
	webhooks, err := c.team.Webhooks(c.r.Context())
	if err != nil {
		return err
	}
	return c.settingsList(status, "Webhooks", webhookTable(webhooks, c.viewer.MayOwn()), form, secret)
}

func webhookTable(webhooks []dmarcd.Webhook, mayChange bool) ui.Table {
	t := ui.Table{
		ID: "webhooks", Caption: "Webhooks", CSV: webhooksPath + "?csv=webhooks",
		Columns: []ui.Column{{Title: "URL", Wide: true, Note: "Id"}, {Title: "Format"}, {Title: "Events", Wide: true, Note: "Domains"}, {Title: "State", Wide: true, Note: "Reason"}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No webhooks", Advice: "Events can be sent to a program of yours, to Slack, Microsoft Teams, Discord or PagerDuty, or by email. An owner of the team adds the endpoint here.", Action: ui.Link{}},
	}
	for _, w := range webhooks {
		state, enable := ui.Badge("active"), ui.Action{Label: "Disable", Name: "enabled", Value: "false"}
		switch {
		case !w.Enabled():
			state = ui.Cell{Kind: ui.CellBadge, Text: "disabled", Tone: ui.Tone("error")}.Noted(w.DisabledReason)
			enable = ui.Action{Label: "Enable", Name: "enabled", Value: "true"}
		case !w.FailingSince.IsZero():
			state = ui.Cell{Kind: ui.CellBadge, Text: "failing", Tone: ui.Tone("warning")}.Noted("since " + ui.Moment(w.FailingSince))
		}
		path := webhooksPath + "/" + w.ID.String()
		buttons := ui.Actions()
		if mayChange {
			enable.Path = path
			buttons.Actions = append(buttons.Actions, ui.Action{Label: "Test", Path: path + "/test"}, enable)
			if w.Format.Signed() {
				buttons.Actions = append(buttons.Actions, ui.Action{
					Label: "Rotate secret", Path: path + "/rotate", Danger: true,
					Question: "Rotate the secret? Deliveries are signed with both secrets for 24 hours, then with the new one only.",
				})
			}
			buttons.Actions = append(buttons.Actions, ui.Action{
				Label: "Remove", Path: path + "/remove", Danger: true, Question: "Remove the webhook with the log of its deliveries?",
			})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.LinkTo(w.URL, path).Noted(w.ID.String()), ui.Text(formatNames[w.Format]), ui.Text(orAll(w.Kinds, "all")).Noted(orAll(w.Domains, "")), state, buttons,
		})
	}
	return t
}

// orAll joins a list; all is the text for an empty one.
func orAll[S ~string](list []S, all string) string {
	if list == nil {
		return all
	}
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// splitList splits at commas; nil for an empty list.
func splitList[S ~string](text string) (list []S) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, S(item))
		}
	}
	return list
}

// addWebhook shows the secret in its response, because it is stored encrypted.
func (s *Web) addWebhook(c *call, written url.Values) error {
	added, secret, err := c.team.AddWebhook(c.r.Context(), dmarcd.Webhook{
		URL: endpointOf(written.Get("url"), dmarcd.WebhookFormat(written.Get("format"))), Format: dmarcd.WebhookFormat(written.Get("format")),
		Kinds: splitList[dmarcd.EventKind](written.Get("kinds")), Domains: splitList[string](written.Get("domains")),
	})
	if err != nil {
		return again(webhookForm(), written, webhookField(err), func(form ui.Form) error {
			return s.showWebhooks(c, http.StatusUnprocessableEntity, form, "")
		})
	}
	switch {
	case !added.Enabled():
		return c.done(webhooksPath, "webhook-asked")
	case secret == "":
		return c.done(webhooksPath, "webhook-added")
	}
	return s.showWebhooks(c, http.StatusOK, webhookForm(), secret)
}

// endpointOf returns the URL for the input; an email address becomes a mailto URL.
func endpointOf(text string, format dmarcd.WebhookFormat) string {
	text = strings.TrimSpace(text)
	if address, err := dmarcd.ParseEmail(text); err == nil && format == dmarcd.FormatEmail {
		return "mailto:" + address
	}
	return text
}

// webhookField moves an error about a domain name to the field of the form.
func webhookField(err error) error { return renamedField(err, map[string]string{"domain": "domains"}) }

func (s *Web) enableWebhook(c *call, id dmarcd.WebhookID, written url.Values) error {
	enabled := written.Get("enabled") == "true"
	changed, err := c.team.UpdateWebhook(c.r.Context(), id, service.WebhookChange{Enabled: &enabled})
	switch {
	case err != nil:
		return err
	case !enabled:
		return c.done(webhooksPath, "webhook-disabled")
	case !changed.Enabled():
		return c.done(webhooksPath, "webhook-asked")
	}
	return c.done(webhooksPath, "webhook-enabled")
}

func (s *Web) rotateWebhook(c *call, id dmarcd.WebhookID) error {
	_, secret, err := c.team.RotateWebhook(c.r.Context(), id)
	if err != nil {
		return err
	}
	return s.showWebhooks(c, http.StatusOK, webhookForm(), secret)
}

// testWebhook redirects to the delivery log, whose first line is the result.
func (s *Web) testWebhook(c *call, id dmarcd.WebhookID) error {
	delivery, err := c.team.TestWebhook(c.r.Context(), id)
	if err != nil {
		return err
	}
	if delivery.Problem != "" {
		return c.done(webhooksPath+"/"+id.String(), "webhook-test-failed")
	}
	return c.done(webhooksPath+"/"+id.String(), "webhook-tested")
}

const deliveriesPerPage = 50

// deliveries shows the delivery log of a webhook.
func (s *Web) deliveries(c *call, id dmarcd.WebhookID) error {
	found, err := requested(c, "deliveries", pages(deliveriesPerPage, func(before service.Cursor, limit int) ([]dmarcd.WebhookDelivery, error) {
		return c.team.Deliveries(c.r.Context(), id, before.ID, limit)
	}, func(d dmarcd.WebhookDelivery) (time.Time, int64) { return d.CreatedAt, d.Event.Seq }))
	if err != nil {
		return err
	}
	path, query := c.r.URL.Path, c.r.URL.Query()
	view := listView{
		Tabs: settingsTabs(c.viewer, "Webhooks"), Table: deliveryTable(found.Items, c.viewer.MayOwn()),
		Pager: ui.CursorPager(path, withoutDone(query), next(found)),
	}
	view.Table.CSV = path + "?csv=deliveries"
	frame := settingsFrame("deliveries", "Deliveries")
	frame.Trail = []ui.Link{{Text: "Webhooks", Href: webhooksPath}}
	return c.render(http.StatusOK, frame, view, view.Table)
}

// withoutDone returns the query without the message of the last form.
func withoutDone(query url.Values) url.Values {
	query.Del("done")
	return query
}

func deliveryTable(deliveries []dmarcd.WebhookDelivery, mayRetry bool) ui.Table {
	t := ui.Table{
		ID: "deliveries", Caption: "Deliveries",
		Columns: []ui.Column{
			{Title: "Created"},
			{Title: "Event", Wide: true, Note: "Kind"},
			{Title: "State", Wide: true, Note: "Reason"},
			{Title: "Status", Numeric: true},
			{Title: "Milliseconds", Numeric: true},
			{Title: "Attempts", Numeric: true},
			{Title: "Next attempt"},
			{Title: "Actions"},
		},
		Empty: ui.Empty{Title: "No deliveries yet", Advice: "A delivery is listed here for 30 days. Use Test on the list of webhooks to send one now.", Action: ui.Link{Text: "Webhooks", Href: webhooksPath}},
	}
	tones := map[dmarcd.DeliveryState]string{dmarcd.DeliveryDelivered: "good", dmarcd.DeliveryFailed: "bad", dmarcd.DeliveryPending: "info"}
	for _, d := range deliveries {
		status, took, again, retry := ui.Text(""), ui.Text(""), ui.Text(""), ui.Actions()
		if d.Status != 0 {
			status, took = ui.Count(int64(d.Status)), ui.Count(d.Took.Milliseconds())
		}
		if d.State == dmarcd.DeliveryPending {
			again = ui.At(d.NextAt)
		} else if mayRetry {
			retry = ui.Actions(ui.Action{Label: "Retry", Path: webhooksPath + "/" + d.Webhook.String() + "/deliveries/" + d.ID.String() + "/retry"})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.At(d.CreatedAt), ui.Text(d.Event.Summary()).Noted(string(d.Event.Kind)),
			ui.Cell{Kind: ui.CellBadge, Text: string(d.State), Tone: tones[d.State]}.Noted(d.Problem),
			status, took, ui.Count(int64(d.Attempts)), again, retry,
		})
	}
	return t
}

func (s *Web) retryDelivery(c *call, id dmarcd.WebhookID) error {
	delivery, err := dmarcd.ParseDeliveryID(c.params.Get("delivery"))
	if err != nil {
		return dmarcd.ErrNotFound
	}
	_, err = c.team.RetryDelivery(c.r.Context(), id, delivery)
	return c.finish(err, webhooksPath+"/"+id.String(), "delivery-retried")
}
