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
	writeJSON(c.w, http.StatusCreated, wire.NewWebhookWithSecret(added, secret))
	return nil
}

func (a *API) listWebhooks(c *call) error {
	webhooks, err := c.service.Webhooks(c.r.Context())
	if err != nil {
		return err
	}
	page, err := wire.NewPage(webhooks, dmarcd.MaxWebhooks, nil, func(w dmarcd.Webhook) (wire.Webhook, error) { return wire.NewWebhook(w), nil })
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
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
	writeJSON(c.w, http.StatusOK, wire.NewWebhook(changed))
	return nil
}

func readWebhookChange(c *call) (service.WebhookChange, error) {
	var change service.WebhookChange
	members, err := readObject(c, "url", webhookExample)
	if err != nil {
		return change, err
	}
	if _, given := members["url"]; given {
		text, err := stringMember(members, "url")
		if err != nil {
			return change, err
		}
		change.URL = &text
	}
	if _, given := members["kinds"]; given {
		kinds, err := listMember[dmarcd.EventKind](members, "kinds")
		if err != nil {
			return change, err
		}
		change.Kinds = &kinds
	}
	if _, given := members["domains"]; given {
		domains, err := listMember[string](members, "domains")
		if err != nil {
			return change, err
		}
		change.Domains = &domains
	}
	if _, given := members["enabled"]; given {
		enabled, err := boolMember(members, "enabled")
		if err != nil {
			return change, err
		}
		change.Enabled = &enabled
	}
	if change == (service.WebhookChange{}) {
		return change, &dmarcd.InvalidError{Field: "url", Message: `The body must have at least one of the members "url", "kinds", "domains" and "enabled".`}
	}
	return change, nil
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
	writeJSON(c.w, http.StatusOK, wire.NewWebhookWithSecret(rotated, secret))
	return nil
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
	writeJSON(c.w, http.StatusOK, wire.NewWebhookDelivery(delivery, a.baseURL))
	return nil
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
	page, err := wire.NewPage(deliveries, limit, func(d dmarcd.WebhookDelivery) string { return wire.FormatCursor(d.CreatedAt, d.Event.Seq) },
		func(d dmarcd.WebhookDelivery) (wire.WebhookDelivery, error) {
			return wire.NewWebhookDelivery(d, a.baseURL), nil
		})
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
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
	writeJSON(c.w, http.StatusAccepted, wire.NewWebhookDelivery(retried, a.baseURL))
	return nil
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
