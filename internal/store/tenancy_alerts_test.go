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

// alertAttacks are the attacks on alerts. The victim has no detections: a change of its events
// shows in its state.
var alertAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"AlertRules": func(ctx context.Context, other *store.Team, _ victim) error {
		rules, err := other.AlertRules(ctx)
		return wantNone(len(rules.Mutes), err)
	},
	"SetAlertRules": func(ctx context.Context, other *store.Team, v victim) error {
		return other.SetAlertRules(ctx, dmarcd.AlertRules{Mutes: []dmarcd.Mute{{Domain: v.domain.Name}}})
	},
	"Alerts": func(ctx context.Context, other *store.Team, _ victim) error {
		alerts, err := other.Alerts(ctx, dmarcd.AlertFilter{}, 0, 100)
		return wantNone(len(alerts), err)
	},
	"Alert": func(ctx context.Context, other *store.Team, _ victim) error {
		_, err := other.Alert(ctx, 1)
		return wantNotFound(err)
	},
	"AcknowledgeAlert": func(ctx context.Context, other *store.Team, _ victim) error {
		return wantNotFound(other.AcknowledgeAlert(ctx, 1, "other"))
	},
	"AlertGroups": func(ctx context.Context, other *store.Team, v victim) error {
		groups, err := other.AlertGroups(ctx, dmarcd.AlertFilter{Domain: v.domain.Name}, 0, 100, 10)
		return wantNone(len(groups), err)
	},
	"OpenAlerts": func(ctx context.Context, other *store.Team, _ victim) error {
		return wantNone(other.OpenAlerts(ctx, dmarcd.AlertFilter{}, 100))
	},
	"OpenAlertsOf": func(ctx context.Context, other *store.Team, v victim) error {
		counts, err := other.OpenAlertsOf(ctx, []dmarcd.DomainID{v.domain.ID})
		return wantNone(len(counts), err)
	},
	"AcknowledgeAlerts": func(ctx context.Context, other *store.Team, v victim) error {
		n, err := other.AcknowledgeAlerts(ctx, dmarcd.AlertFilter{Domain: v.domain.Name}, "other", func(int64) dmarcd.AuditEntry { return dmarcd.AuditEntry{Action: "alert.acknowledge"} })
		return wantNone(int(n), err)
	},
	"TestAlert": func(ctx context.Context, other *store.Team, _ victim) error {
		_, err := other.TestAlert(ctx)
		return err
	},
	"Incidents": func(ctx context.Context, other *store.Team, _ victim) error {
		incidents, err := other.Incidents(ctx, 0)
		return wantNone(len(incidents), err)
	},
	"SaveDetections": func(ctx context.Context, other *store.Team, v victim) error {
		err := other.SaveDetections(ctx, []dmarcd.Detection{{Kind: dmarcd.VolumeSpike, Domain: v.domain.ID, Day: 1}}, []dmarcd.Incident{{Seq: 1, Last: 9}})
		if err != nil {
			return err
		}
		events, err := other.Events(ctx, store.EventFilter{}, store.Cursor{}, 10)
		return wantNone(len(events), err)
	},
	"SaveScan": func(ctx context.Context, other *store.Team, v victim) error {
		err := other.SaveScan(ctx, dmarcd.AlertScan{}, 0, []dmarcd.Detection{{Kind: dmarcd.VolumeSpike, Domain: v.domain.ID, Day: 1}}, nil)
		if !errors.Is(err, dmarcd.ErrConflict) {
			return fmt.Errorf("got %w, want ErrConflict", err)
		}
		return nil
	},
	"ScannedMail": func(ctx context.Context, other *store.Team, _ victim) error {
		mail, err := other.ScannedMail(ctx, dmarcd.AlertScan{Full: true}, 100)
		return wantNone(len(mail), err)
	},
	"RejectedByDay": func(ctx context.Context, other *store.Team, _ victim) error {
		counts, err := other.RejectedByDay(ctx, 0)
		return wantNone(len(counts), err)
	},
}

// labelAttacks are the attacks on tags and sample data.
var labelAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"ReportBytes": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.ReportBytes(ctx, v.report)
		return wantNotFound(err)
	},
	"AddSampleDomains": func(ctx context.Context, other *store.Team, v victim) error {
		if err := other.AddSampleDomains(ctx, []string{v.domain.Name}); err != nil {
			return err
		}
		return other.DeleteSample(ctx)
	},
	"DeleteSample": func(ctx context.Context, other *store.Team, _ victim) error {
		return wantNotFound(other.DeleteSample(ctx))
	},
	"ParkedDaily": func(ctx context.Context, other *store.Team, _ victim) error {
		days, err := other.ParkedDaily(ctx, dmarcd.Days{}, 100)
		return wantNone(len(days), err)
	},
	"TLSDaily": func(ctx context.Context, other *store.Team, v victim) error {
		days, err := other.TLSDaily(ctx, v.domain.Name, dmarcd.Days{})
		return wantNone(len(days), err)
	},
	"TLSEvidence": func(ctx context.Context, other *store.Team, v victim) error {
		evidence, err := other.TLSEvidence(ctx, v.domain.Name, dmarcd.Days{})
		return wantNone(evidence.Days, err)
	},
	"HasSample": func(ctx context.Context, other *store.Team, _ victim) error {
		sample, err := other.HasSample(ctx)
		if sample {
			err = errors.Join(err, errors.New("another team's sample data is seen"))
		}
		return err
	},
	"TeamSenders": func(ctx context.Context, other *store.Team, _ victim) error {
		all, err := other.TeamSenders(ctx)
		return wantNone(len(all), err)
	},
	"SetTeamSender": func(ctx context.Context, other *store.Team, v victim) error {
		if err := other.SetTeamSender(ctx, dmarcd.TeamSender{Key: v.sender, Name: "forged"}); err != nil {
			return err
		}
		return other.RemoveTeamSender(ctx, v.sender)
	},
	"RemoveTeamSender": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RemoveTeamSender(ctx, v.sender))
	},
	"ActiveDomains": func(ctx context.Context, other *store.Team, _ victim) error {
		all, active, open, err := other.ActiveDomains(ctx)
		return wantNone(all+active+len(open), err)
	},
	"SetTags": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetTags(ctx, v.domain.Name, []string{"theirs"}))
	},
	"DomainTags": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.DomainTags(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"Tags": func(ctx context.Context, other *store.Team, _ victim) error {
		tags, err := other.Tags(ctx)
		return wantNone(len(tags), err)
	},
	"Tagged": func(ctx context.Context, other *store.Team, _ victim) error {
		domains, err := other.Tagged("").Domains(ctx, "", 100)
		return wantNone(len(domains), err)
	},
}

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
	"LatestDeliveries": func(ctx context.Context, other *store.Team, _ victim) error {
		deliveries, err := other.LatestDeliveries(ctx)
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
