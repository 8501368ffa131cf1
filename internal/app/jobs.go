package app

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/notify"
	mailer "github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/outbound"
	reportprobe "github.com/dmarcd/dmarcd/internal/probe"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
)

// checks returns the job that checks domains by schedule.
func (a *App) checks() *jobs.Checks {
	return &jobs.Checks{
		Log:       a.log,
		Recovered: a.recovered,
		Rate:      a.config.Schedule.Rate,
		Teams:     a.store.DueTeams,
		Claim:     a.store.ClaimDueDomains,
		Check: func(ctx context.Context, due dmarcd.DueDomain) (err error) {
			began := time.Now()
			defer func() { a.metrics.observeCheck(due.Full, time.Since(began), err) }()
			return a.service.CheckDue(ctx, due)
		},
		Ended: func(ctx context.Context, due dmarcd.DueDomain) error {
			return a.store.Team(due.Team).CheckEnded(ctx, due.Name)
		},
	}
}

// refreshSPF returns the job that resolves managed SPF records again.
func (a *App) refreshSPF() *jobs.Due[store.DueSPF] {
	return &jobs.Due[store.DueSPF]{
		Name: "refresh managed SPF records", Teams: a.store.DueSPFTeams, Claim: a.store.ClaimDueSPF, Rate: spfRate, Log: a.log,
		TeamOf: func(d store.DueSPF) dmarcd.TeamID { return d.Team },
		Do: func(ctx context.Context, d store.DueSPF) {
			err := recovered.Boundary(a.recovered).Call("refresh a managed SPF record", func() error { return a.service.RefreshSPF(ctx, d) })
			if err != nil && ctx.Err() == nil && !recovered.Is(err) {
				a.log.WarnContext(ctx, "managed SPF record not refreshed", "team", d.Team, "error", err)
			}
		},
	}
}

// spfRate is the maximum number of managed SPF records that are resolved in a second, and retiredSPFPoll the
// interval for those that are no longer in use.
const (
	spfRate        = 100
	retiredSPFPoll = 15 * time.Minute
)

// freezeDelay is the time from the start until old records are first stored by column. By then
// all replicas of the previous version, which cannot read them, have been replaced.
const freezeDelay = time.Hour

// storeSenders updates when senders were first and last seen.
func (a *App) storeSenders(ctx context.Context) (more bool, err error) {
	return a.store.UpdateSenders(ctx, func(ctx context.Context, t *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
		return a.insight.FindSenders(ctx, t, days, save, saveDays)
	})
}

// coldAfter is the age from which records are stored by column, in a tenth of the space: most
// reads are of the first weeks.
const coldAfter = 30 * 24 * time.Hour

// chores returns the maintenance jobs: those of the database, each of which runs on one replica
// at a time, and those of the disk and memory of each replica.
func (a *App) chores() []*jobs.Chore {
	retention := a.retention()
	expire := func(ctx context.Context) (more bool, err error) { return a.store.Expire(ctx, retention) }
	began := time.Now()
	freeze := func(ctx context.Context) (more bool, err error) {
		if time.Since(began) < freezeDelay {
			return false, nil
		}
		return a.store.Freeze(ctx, coldAfter)
	}
	shared := []*jobs.Chore{
		{Name: "purge deleted data", Step: a.store.Purge, Poll: jobs.Soon},
		{Name: "claim waiting reports", Step: a.store.ClaimShares, Poll: jobs.Soon},
		{Name: "rebuild day rollups", Step: a.store.BuildRollups, Poll: jobs.Minutely},
		{Name: "store senders", Step: a.storeSenders, Poll: jobs.Minutely},
		{Name: "notify owners of disabled webhooks", Step: a.service.NotifyOwners, Poll: jobs.Minutely},
		{Name: "detect alerts", Step: a.service.DetectAlerts, Poll: jobs.Minutely},
		{Name: "send grouped alerts", Step: a.store.SendAlertGroups, Poll: jobs.Soon},
		{Name: "queue digests", Step: a.service.QueueDigests, Poll: jobs.Minutely},
		{Name: "detect failing mailboxes", Step: a.service.DetectMailboxes, Poll: jobs.Minutely},
		{Name: "detect expiring tokens", Step: a.service.DetectTokens, Poll: jobs.Hourly},
		{Name: "refresh retired SPF records", Step: a.service.RefreshRetiredSPF, Poll: retiredSPFPoll},
		{Name: "refresh postures of domains", Step: a.service.RefreshPostures, Poll: jobs.Soon},
		{Name: "remove expired data", Step: expire, Poll: jobs.Hourly},
		{Name: "store old records by column", Step: freeze, Poll: freezeDelay / 2},
		{Name: "partition records", Step: a.store.Partition, Poll: jobs.Hourly},
		{Name: "reclaim free database pages", Step: a.store.Reclaim, Poll: jobs.Minutely},
		{Name: "purge retired reporting addresses", Step: a.store.ForgetMailboxes, Poll: jobs.Hourly},
		{Name: "remove expired names of the zone", Step: a.store.ExpireZoneNames, Poll: jobs.Hourly},
		{Name: "finish publications of records", Step: a.service.FinishRecords, Poll: jobs.Minutely},
		{Name: "purge test mail", Step: a.store.PurgeTestAddresses, Poll: jobs.Minutely},
		{Name: "purge expired sessions", Step: a.store.PurgeSignIns, Poll: jobs.Hourly},
	}
	for _, chore := range shared {
		chore.Leases = a.store
	}
	chores := slices.Concat(shared, []*jobs.Chore{
		{Name: "refresh advice", Step: a.service.RefreshAdvice, Poll: jobs.Minutely},
		{Name: "detect low disk space", Step: a.detectLowDisk, Poll: jobs.Minutely},
	})
	for _, chore := range chores {
		chore.Log, chore.Recovered, chore.Observe = a.log, a.recovered, a.metrics.observeJob
	}
	return chores
}

// detectLowDisk warns operators before the intake stops because the disk is full: in the log
// when the state changes, by a metric, and by an event of the team default.
func (a *App) detectLowDisk(ctx context.Context) (more bool, err error) {
	want := int64(a.config.Limit.FreeDisk)
	low := want > 0 && enoughDisk(a.config.Data, 2*want) != nil
	if a.lowDisk.Swap(low) != low {
		if low {
			a.log.WarnContext(ctx, "disk nearly full", "folder", a.config.Data, "minimum", want)
		} else {
			a.log.InfoContext(ctx, "disk no longer nearly full", "folder", a.config.Data)
		}
	}
	a.metrics.lowDisk.Set(map[bool]float64{true: 1}[low])
	if !low {
		return false, nil
	}
	return false, a.service.ReportLowDisk(ctx, want)
}

// newSelfTests returns the sender of synthetic reports. listen returns the address of the SMTP
// listener, "" if there is none.
func newSelfTests(cfg config.Config, r dns.Resolver, listen func() string) *reportprobe.Sender {
	local := func() string {
		host, port, err := net.SplitHostPort(listen())
		if err != nil {
			return ""
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		return net.JoinHostPort(host, port)
	}
	// The operator owns the report domain, and its servers may have private addresses.
	return &reportprobe.Sender{Resolver: r, Dial: outbound.Trusted(cfg.DNS).DialContext, Local: local, Now: time.Now}
}

// newDeliveries returns the worker that delivers events to webhooks; relay is nil if no mail is
// sent. digest returns the content of a digest; it is nil if only tests are delivered.
func newDeliveries(s *store.Store, cfg config.Config, dialer *outbound.Dialer, relay *mailer.Relay, digest digestContent, log *slog.Logger) *notify.Worker {
	post := &webhook.Sender{Client: dialer.EndpointClient(nil), BaseURL: cfg.BaseURL, Now: time.Now, Open: openWebhook(cfg)}
	letters := &mailer.Sender{
		Relay: relay, BaseURL: cfg.BaseURL, Now: time.Now, Open: openWebhook(cfg), Digest: digest,
		Daily: func(ctx context.Context, team dmarcd.TeamID, domain string, days dmarcd.Days) (map[dmarcd.Day]mailer.Bar, error) {
			found, err := s.Team(team).DomainDaily(ctx, domain, days, maxChartDays)
			bars := make(map[dmarcd.Day]mailer.Bar, len(found))
			for _, day := range found {
				bars[day.Day] = mailer.Bar{Pass: day.Compliant, Fail: day.NonCompliant}
			}
			return bars, err
		},
	}
	send := func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
		if c.Webhook.Format == dmarcd.FormatEmail {
			return letters.Send(ctx, c)
		}
		return post.Send(ctx, c)
	}
	return &notify.Worker{Outbox: outbox{s}, Send: send, Now: time.Now, Log: log}
}

type digestContent = func(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) (mailer.Content, error)

// maxChartDays is an upper bound of the days in a chart of a message.
const maxChartDays = 366

// openWebhook returns a function that decrypts the secrets of webhooks.
func openWebhook(cfg config.Config) func(w dmarcd.Webhook, sealed []byte) ([]byte, error) {
	keys := secretKeys(cfg)
	return func(w dmarcd.Webhook, sealed []byte) ([]byte, error) { return keys.Open(sealed, w.SecretContext()) }
}

// secretKeys returns the keys that encrypt secrets.
func secretKeys(cfg config.Config) *secret.Keys {
	switch {
	case cfg.Secret.Command != "":
		return secret.Command(cfg.Secret.Command, time.Now)
	case cfg.Secret.Key != "":
		return secret.Text("secret.key", cfg.Secret.Key)
	default:
		return secret.File(cfg.Secret.File)
	}
}

// newRelay returns the mail relay, nil if none is configured.
func newRelay(cfg config.Config) (*mailer.Relay, error) {
	if cfg.Mail.Relay == "" {
		return nil, nil //nolint:nilnil // no mail is sent
	}
	return mailer.NewRelay(mailer.Settings{
		Relay: cfg.Mail.Relay, From: cfg.Mail.From, Key: cfg.Mail.DKIMKey, Selector: cfg.Mail.DKIMSelector,
	}, outbound.Trusted(cfg.DNS), time.Now)
}

// outbox adapts the store to the webhook worker.
type outbox struct{ *store.Store }

func (o outbox) ClaimDeliveries(ctx context.Context, team dmarcd.TeamID, lease time.Duration, perWebhook, limit int) ([]dmarcd.ClaimedDelivery, error) {
	return o.Team(team).ClaimDeliveries(ctx, lease, perWebhook, limit)
}

func (o outbox) SaveDelivery(ctx context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, disableAfter time.Duration) error {
	return o.Team(c.Team).SaveDelivery(ctx, c, result, next, disable, disableAfter)
}
