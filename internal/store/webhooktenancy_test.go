package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

func joined[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

var webhookAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"AddWebhook": func(ctx context.Context, other *store.Team, _ victim) error {
		added, err := other.AddWebhook(ctx, dmarcd.Webhook{URL: "https://evil.example/", Format: dmarcd.FormatStandard}, func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil })
		if err != nil {
			return err
		}
		return other.RemoveWebhook(ctx, added.ID)
	},
	"Webhooks": func(ctx context.Context, other *store.Team, _ victim) error {
		webhooks, err := other.Webhooks(ctx)
		return wantNone(len(webhooks), err)
	},
	"Webhook": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.Webhook(ctx, v.test.Webhook.ID)
		return wantNotFound(err)
	},
	"UpdateWebhook": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.UpdateWebhook(ctx, v.test.Webhook.ID, func(*dmarcd.Webhook) error { return nil })
		return wantNotFound(err)
	},
	"RotateWebhook": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RotateWebhook(ctx, v.test.Webhook.ID, []byte("stolen"), time.Time{}))
	},
	"RemoveWebhook": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RemoveWebhook(ctx, v.test.Webhook.ID))
	},
	"TestWebhook": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.TestWebhook(ctx, v.test.Webhook.ID, time.Minute)
		return wantNotFound(err)
	},
	"Deliveries": func(ctx context.Context, other *store.Team, v victim) error {
		deliveries, err := other.Deliveries(ctx, v.test.Webhook.ID, 0, 10)
		return wantNone(len(deliveries), err)
	},
	"Delivery": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.Delivery(ctx, v.test.Webhook.ID, v.test.Delivery.ID)
		return wantNotFound(err)
	},
	"RetryDelivery": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RetryDelivery(ctx, v.test.Webhook.ID, v.test.Delivery.ID))
	},
	"ClaimDeliveries": func(ctx context.Context, other *store.Team, _ victim) error {
		claimed, err := other.ClaimDeliveries(ctx, time.Minute, 10, 10)
		return wantNone(len(claimed), err)
	},
	"SaveDelivery": func(ctx context.Context, other *store.Team, v victim) error {
		claimed := dmarcd.ClaimedDelivery{Webhook: dmarcd.Webhook{ID: v.test.Webhook.ID}, Delivery: v.test.Delivery, LeaseUntil: v.test.LeaseUntil}
		err := other.SaveDelivery(ctx, claimed, dmarcd.DeliveryResult{Status: 200}, time.Time{}, "", time.Hour)
		if !errors.Is(err, dmarcd.ErrConflict) {
			return fmt.Errorf("got %w, want ErrConflict", err)
		}
		return nil
	},
}
