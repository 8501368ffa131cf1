package api

import (
	"encoding/json"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const webhookExample = `{"url": "https://example.com/hooks/dmarc", "kinds": null, "domains": null, "format": "standard"}`

func (a *API) addWebhook(c *call) error {
	members, err := readObject(c, "url", webhookExample)
	if err != nil {
		return err
	}
	var wanted dmarcd.Webhook
	if wanted.URL, err = stringMember(members, "url"); err != nil {
		return err
	}
	if wanted.Kinds, err = listMember[dmarcd.EventKind](members, "kinds"); err != nil {
		return err
	}
	if wanted.Domains, err = listMember[string](members, "domains"); err != nil {
		return err
	}
	if _, given := members["format"]; given {
		format, err := stringMember(members, "format")
		if err != nil {
			return err
		}
		wanted.Format = dmarcd.WebhookFormat(format)
	}
	added, secret, err := c.service.AddWebhook(c.r.Context(), wanted)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", a.baseURL+"/webhooks/"+added.ID.String())
	return c.writeJSON(http.StatusCreated, wire.NewWebhookWithSecret(added, secret))
}

func (a *API) listWebhooks(c *call) error {
	webhooks, err := c.service.Webhooks(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(webhooks, len(webhooks), nil, wire.NewWebhook))
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

func readWebhookChange(c *call) (change service.WebhookChange, err error) {
	members, err := readObject(c, "url", webhookExample)
	if err != nil {
		return change, err
	}
	if change.URL, err = optional(members, "url", stringMember); err != nil {
		return change, err
	}
	if change.Kinds, err = optional(members, "kinds", listMember[dmarcd.EventKind]); err != nil {
		return change, err
	}
	if change.Domains, err = optional(members, "domains", listMember[string]); err != nil {
		return change, err
	}
	if change.Enabled, err = optional(members, "enabled", boolMember); err != nil {
		return change, err
	}
	if change == (service.WebhookChange{}) {
		return change, &dmarcd.InvalidError{Field: "url", Message: `The body must have at least one of the members "url", "kinds", "domains" and "enabled".`}
	}
	return change, nil
}

// optional returns a member, nil if it is missing.
func optional[T any](members map[string]json.RawMessage, name string, read func(map[string]json.RawMessage, string) (T, error)) (*T, error) {
	if _, is := members[name]; !is {
		return nil, nil //nolint:nilnil // no value is no change
	}
	value, err := read(members, name)
	return &value, err
}

func (a *API) deleteWebhook(c *call) error {
	id, err := namedWebhook(c)
	if err != nil {
		return err
	}
	if err := c.service.RemoveWebhook(c.r.Context(), id); err != nil {
		return missing(err, errNoSuchWebhook)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
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
	limit, after, err := readCursor(c)
	if err != nil {
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
	return c.writeCacheable(wire.NewPage(deliveries, limit, func(d dmarcd.WebhookDelivery) string { return wire.FormatCursor(d.CreatedAt, d.Event.Seq) },
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

// listMember returns a member that is a list of strings; nil if missing or null.
func listMember[T ~string](members map[string]json.RawMessage, name string) ([]T, error) {
	raw, given := members[name]
	if !given {
		return nil, nil
	}
	var list []T
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, &dmarcd.InvalidError{Field: name, Message: `The member "` + name + `" must be a list of strings, or null.`}
	}
	return list, nil
}
