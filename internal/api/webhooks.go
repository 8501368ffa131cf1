package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const webhookExample = `{"url": "https://example.com/hooks/dmarc", "kinds": null, "domains": null, "format": "standard"}`

func (a *API) addWebhook(c *call) error {
	body := readObject(c, "url", webhookExample)
	wanted := dmarcd.Webhook{URL: body.text("url"), Kinds: texts[dmarcd.EventKind](body, "kinds"), Domains: texts[string](body, "domains")}
	if body.has("format") {
		wanted.Format = dmarcd.WebhookFormat(body.text("format"))
	}
	if body.err != nil {
		return body.err
	}
	added, secret, err := c.service.AddWebhook(c.r.Context(), wanted)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusCreated, wire.NewWebhookWithSecret(added, secret))
}

func (a *API) updateWebhook(c *call) error {
	change, err := readWebhookChange(c)
	if err != nil {
		return err
	}
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	changed, err := c.service.UpdateWebhook(c.r.Context(), id, change)
	if err != nil {
		return missing(err, errNoSuchWebhook)
	}
	return c.writeJSON(http.StatusOK, wire.NewWebhook(changed))
}

func readWebhookChange(c *call) (service.WebhookChange, error) {
	body := readObject(c, "url", webhookExample)
	change := service.WebhookChange{
		URL: optional(body, "url", (*object).text), Kinds: optional(body, "kinds", texts[dmarcd.EventKind]),
		Domains: optional(body, "domains", texts[string]), Enabled: optional(body, "enabled", (*object).flag),
	}
	if change == (service.WebhookChange{}) {
		body.reject("url", `The body must have at least one of the members "url", "kinds", "domains" and "enabled".`)
	}
	return change, body.err
}

func (a *API) deleteWebhook(c *call) error {
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	return c.deleted(c.service.RemoveWebhook(c.r.Context(), id), errNoSuchWebhook)
}

func (a *API) rotateWebhook(c *call) error {
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	rotated, secret, err := c.service.RotateWebhook(c.r.Context(), id)
	if err != nil {
		return missing(err, errNoSuchWebhook)
	}
	return c.writeJSON(http.StatusOK, wire.NewWebhookWithSecret(rotated, secret))
}

func (a *API) testWebhook(c *call) error {
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	answer := a.bodyRead(c.w)
	delivery, err := c.service.TestWebhook(c.r.Context(), id)
	answer()
	if err != nil {
		return missing(err, errNoSuchWebhook)
	}
	return c.writeJSON(http.StatusOK, wire.NewWebhookDelivery(delivery, a.baseURL))
}

func (a *API) listDeliveries(c *call) error {
	limit, after := c.query.cursor()
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	deliveries, err := c.service.Deliveries(c.r.Context(), id, after.ID, limit+1)
	if err != nil {
		return missing(err, errNoSuchWebhook)
	}
	return writePage(c, wire.NewPage(deliveries, limit, func(d dmarcd.WebhookDelivery) string { return wire.FormatCursor(d.CreatedAt, d.Event.Seq) },
		func(d dmarcd.WebhookDelivery) wire.WebhookDelivery { return wire.NewWebhookDelivery(d, a.baseURL) }))
}

func (a *API) retryDelivery(c *call) error {
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	delivery, err := dmarcd.ParseDeliveryID(c.params.Get("delivery"))
	if err != nil {
		return errNoSuchDelivery
	}
	retried, err := c.service.RetryDelivery(c.r.Context(), id, delivery)
	if err != nil {
		return missing(err, errNoSuchDelivery)
	}
	return c.writeJSON(http.StatusAccepted, wire.NewWebhookDelivery(retried, a.baseURL))
}

// namedWebhook returns the webhook id of the path.
func namedWebhook(c *call) (dmarcd.WebhookID, error) {
	id, err := dmarcd.ParseWebhookID(c.params.Get("id"))
	if err != nil {
		return 0, errNoSuchWebhook
	}
	return id, nil
}
