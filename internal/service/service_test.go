package service_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const ours = "example.com"

// endpoint is that of a webhook.
const endpoint = "https://hooks.example/dmarc"

// world is an installation with one team that has one of everything.
type world struct {
	*testing.T
	store    *store.Store
	service  *service.Service
	options  service.Options // of service
	acceptor *intake.Acceptor
	team     dmarcd.Team
	report   dmarcd.ReportID
	rejected dmarcd.RejectedID
	token    dmarcd.TokenID
	mailbox  dmarcd.MailboxID
	webhook  dmarcd.WebhookID
	delivery dmarcd.DeliveryID
	alert    int64 // the number of one
	// owner and member are users of the team, operator is one of none.
	owner, member, operator dmarcd.User
	// tryMailbox is what a login to a mailbox comes to.
	tryMailbox func(ctx context.Context) error
	nameServer nameServer
	log        bytes.Buffer
}

func newWorld(t *testing.T, db storetest.DB) *world {
	t.Helper()
	w := &world{T: t, store: db.Open(t, store.Options{}), tryMailbox: func(context.Context) error { return nil }}
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	w.acceptor = &intake.Acceptor{Limits: limits, Encode: shape.EncodeDetail, Recovered: func(e *recovered.Error) { t.Error(e) }}
	w.options = service.Options{
		DNS: dnstest.New(""), Checker: dnscheck.New(dnscheck.Options{Resolver: dnstest.New(""), Interval: time.Hour, Now: time.Now}),
		Acceptor:  w.acceptor,
		Memory:    memory.NewBudget(1 << 30),
		Insight:   insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil),
		Secrets:   plainSecrets{},
		Mailboxes: mailboxes{w}, Publisher: &w.nameServer,
		SelfTests: selfTests(func(context.Context, string, string, string) ([]dmarcd.SelfTestStage, bool) {
			return []dmarcd.SelfTestStage{{Name: dmarcd.StageMX}}, false
		}),
		Sample: service.Sample{Domains: []string{"one.example"}, Load: func(context.Context, *store.Team) error { return nil }},
		Mail:   mailer{}, Outbound: nowhere{},
		Deliveries: deliveries(func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			result := dmarcd.DeliveryResult{At: time.Now(), Status: 204}
			return result, w.store.Team(c.Team).SaveDelivery(ctx, c, result, time.Time{}, "", time.Hour)
		}),
		BaseURL:      "https://dmarc.example/api",
		ReportDomain: "reports.example",
		ReceivesMail: true,
		Log:          slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	w.service = service.New(w.store, w.options)
	w.team = musttest.Get(w.store.CreateTeam(t.Context(), "acme", true))(t)
	team := w.store.Team(w.team.ID)
	musttest.Get(team.AddDomain(t.Context(), ours, time.Now().Add(time.Hour)))(t)
	delivery := storetest.Delivery(storetest.Aggregate("1", ours, dmarcd.DayOf(time.Now())-1, storetest.Passed(ours, 7)))
	receipts := musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{delivery}))(t)
	w.report = receipts[0][0].ID
	note := w.copyOf("not a report")
	musttest.Get(w.acceptor.Accept(t.Context(), team, intake.Message{Team: w.team.ID, Intake: dmarcd.IntakeUpload, Content: note, Size: note.Size()}))(t)
	rejected := musttest.Get(team.Rejected(t.Context(), 0, 1))(t)
	w.rejected = rejected[0].ID
	token := musttest.Get(team.CreateToken(t.Context(), store.NewToken{Name: "script", Scope: dmarcd.ScopeRead}))(t)
	w.token = token.ID
	mailbox := musttest.Get(team.AddMailbox(t.Context(), sampleMailbox(), func(dmarcd.Mailbox) ([]byte, error) { return []byte("x"), nil }))(t)
	w.mailbox = mailbox.ID
	webhook := musttest.Get(team.AddWebhook(t.Context(), dmarcd.Webhook{URL: endpoint, Format: dmarcd.FormatStandard}, func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
	w.webhook = webhook.ID
	test := musttest.Get(team.TestWebhook(t.Context(), webhook.ID, time.Minute))(t)
	w.delivery = test.Delivery.ID
	alert := musttest.Get(team.TestAlert(t.Context()))(t)
	w.alert = alert.Event.Seq
	w.owner = w.user(1, dmarcd.Invitation{Email: "ann@example.com", Team: w.team.ID, Role: dmarcd.RoleOwner})
	w.member = w.user(2, dmarcd.Invitation{Email: "bob@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer})
	w.operator = w.user(3, dmarcd.Invitation{Email: "op@example.com", Operator: true})
	w.must(team.Invite(t.Context(), [32]byte{4}, dmarcd.Invitation{
		Email: "new@example.com", Role: dmarcd.RoleViewer, CreatedBy: w.owner.ID, ExpiresAt: time.Now().Add(time.Hour),
	}))
	return w
}

// with returns the use cases of the team for an actor, with other options.
func (w *world) with(actor service.Actor, change func(*service.Options)) *service.Team {
	options := w.options
	change(&options)
	return service.New(w.store, options).Team(w.team.ID, actor)
}

func (w *world) must(err error) {
	w.Helper()
	musttest.Do(w, err)
}

// user makes a user by an invitation.
func (w *world) user(n byte, invitation dmarcd.Invitation) dmarcd.User {
	w.Helper()
	invitation.Mailed, invitation.ExpiresAt = invitation.Email != "", time.Now().Add(time.Hour)
	w.must(w.store.CreateInvitation(w.Context(), [32]byte{n}, invitation))
	return musttest.Get(w.store.UseInvitation(w.Context(), [32]byte{n}, dmarcd.Claim{Email: invitation.Email, PasswordHash: "x"}))(w).User
}

// session signs a user in, with the team.
func (w *world) session(user dmarcd.User) dmarcd.Session {
	w.Helper()
	_, hash := auth.NewInvitation() // a secret that no one knows
	w.must(w.store.CreateSession(w.Context(), dmarcd.NewSession{
		Hash: hash, User: user.ID, PasswordHash: "x", ExpiresAt: time.Now().Add(time.Hour),
	}))
	_ = w.store.SelectTeam(w.Context(), hash, w.team.ID) // a user of no team cannot
	return musttest.Get(w.store.Session(w.Context(), hash))(w)
}

// as returns a user who is signed in.
func (w *world) as(user dmarcd.User) service.Actor {
	w.Helper()
	return service.User(w.session(user), "192.0.2.7")
}

func sampleMailbox() dmarcd.Mailbox {
	return dmarcd.Mailbox{
		Host: "imap.example.com", Port: 993, Security: dmarcd.SecurityTLS, Username: "reports", Method: dmarcd.LoginPassword,
		Folder: "INBOX", After: dmarcd.AfterKeep,
	}
}

// entries returns the audit log of the installation, the newest first.
func (w *world) entries() []dmarcd.AuditEntry {
	w.Helper()
	return musttest.Get(w.store.Audit(w.Context(), store.AuditFilter{}, store.Cursor{}, 1000))(w)
}

// copyOf returns what is uploaded.
func (w *world) copyOf(content string) *intake.Copy {
	w.Helper()
	file := musttest.Get(intake.CopyOf(bytes.NewReader([]byte(content)), w.acceptor.Limits.Containers.Folder, 1<<20))(w)
	w.Cleanup(file.Close)
	return file
}

// importTwice imports reports in two steps.
func (w *world) importTwice(ctx context.Context, t *service.Team) error {
	importer, err := t.Import("old reports")
	if err != nil {
		return err
	}
	for _, id := range []string{"2", "3"} {
		day := dmarcd.DayOf(time.Now()) - 2
		first := storetest.Delivery(storetest.Aggregate(id, ours, day, storetest.Passed(ours, 1)))
		second := storetest.Delivery(storetest.Aggregate(id+"b", ours, day, storetest.Passed(ours, 1)))
		if _, err := importer.Receive(ctx, []*dmarcd.Delivery{first, second}); err != nil {
			return err
		}
	}
	return nil
}

// uses has one for every method of service.Team and service.System. Where both have a
// method, the name of that of service.System begins with its type.
var uses = joined(joined(joined(joined(joined(webhookUses, alertUses), labelUses), managerUses), joined(joined(postureUses, joined(recordUses, targetUses)), joined(keyUses, factorUses))), map[string]use{
	"Domain":  reads(func(_ *world, t *service.Team) (dmarcd.Domain, error) { return t.Domain(ctx, "Example.COM.") }),
	"Domains": reads(func(_ *world, t *service.Team) ([]dmarcd.Domain, error) { return t.Domains(ctx, "", 10) }),
	"Summary": reads(func(_ *world, t *service.Team) (dmarcd.Summary, error) { return t.Summary(ctx, dmarcd.Days{}) }),
	"DomainSummary": reads(func(_ *world, t *service.Team) (dmarcd.Summary, error) {
		return t.DomainSummary(ctx, ours, dmarcd.Days{})
	}),
	"TestAddress": asks(func(_ *world, t *service.Team) (dmarcd.TestAddress, error) { return t.TestAddress(ctx) }),
	"TryRecord": asks(func(_ *world, t *service.Team) (service.Tried, error) {
		return t.TryRecord(ctx, "other.example", service.Draft{Part: service.PartSPF, Record: "v=spf1 -all"})
	}),
	"CheckName": asks(func(_ *world, t *service.Team) (facts.Check, error) { return t.CheckName(ctx, "other.example") }),
	"LatestCheck": asks(func(_ *world, t *service.Team) (facts.StoredCheck, error) {
		check, err := t.LatestCheck(ctx, dmarcd.Domain{Name: ours})
		if errors.Is(err, dmarcd.ErrNotFound) {
			err = nil // there is none yet
		}
		return check, err
	}),
	"Checks": asks(func(_ *world, t *service.Team) ([]facts.StoredCheck, error) {
		return t.Checks(ctx, dmarcd.Domain{Name: ours}, service.Times{}, service.Cursor{}, 10)
	}),
	"DomainChanges": asks(func(_ *world, t *service.Team) ([]facts.DomainChange, error) {
		return t.DomainChanges(ctx, service.ChangeFilter{}, service.Cursor{}, 10)
	}),
	"Events": reads(func(_ *world, t *service.Team) ([]dmarcd.Event, error) {
		return t.Events(ctx, service.EventFilter{}, service.Cursor{}, 10)
	}),
	"EventsSince": reads(func(_ *world, t *service.Team) ([]dmarcd.Event, error) {
		return t.EventsSince(ctx, service.EventFilter{}, 0, 10, 0)
	}),
	"LastEvent": reads(func(_ *world, t *service.Team) (int64, error) { return t.LastEvent(ctx) }),
	"Reports": reads(func(_ *world, t *service.Team) ([]dmarcd.Report, error) {
		return t.Reports(ctx, service.ReportFilter{}, 0, 10)
	}),
	"Report": reads(func(w *world, t *service.Team) (dmarcd.Report, error) { return t.Report(ctx, w.report) }),
	"ReserveReport": reads(func(w *world, t *service.Team) (bool, error) {
		held, release, err := t.ReserveReport(ctx, w.report)
		if err == nil {
			release()
		}
		return held != nil, err
	}),
	"Records": reads(func(w *world, t *service.Team) ([]service.Record, error) {
		records, _, err := t.Records(ctx, w.report, service.RecordCursor{}, 10)
		return records, err
	}),
	"ExportRecords": downloads("record.export", ours, func(_ *world, t *service.Team) ([]service.ReportRecord, error) {
		export, err := t.ExportRecords(ctx, service.RecordFilter{Domain: ours}, service.RecordPosition{})
		if err != nil {
			return nil, err
		}
		var records []service.ReportRecord
		_, err = export.Next(ctx, func(batch []service.ReportRecord) error {
			records = batch
			return nil
		})
		return records, err
	}),
	"ReportOriginal": downloads("report.download", "", func(w *world, t *service.Team) (dmarcd.StoredOriginal, error) {
		return t.ReportOriginal(ctx, w.report)
	}),
	"Rejected":     reads(func(_ *world, t *service.Team) ([]dmarcd.Rejected, error) { return t.Rejected(ctx, 0, 10) }),
	"RejectedByID": reads(func(w *world, t *service.Team) (dmarcd.Rejected, error) { return t.RejectedByID(ctx, w.rejected) }),
	"RejectedOriginal": downloads("rejected.download", "", func(w *world, t *service.Team) (dmarcd.StoredOriginal, error) {
		return t.RejectedOriginal(ctx, w.rejected)
	}),
	"Daily":  reads(func(_ *world, t *service.Team) ([]service.DailyCounts, error) { return t.Daily(ctx, dmarcd.Days{}, 10) }),
	"Series": reads(func(_ *world, t *service.Team) (service.Series, error) { return t.Series(ctx, 1, 2) }),
	"Digest": reads(func(_ *world, t *service.Team) (service.Digest, error) { return t.Digest(ctx, 1, 2) }),
	"DomainDaily": reads(func(_ *world, t *service.Team) ([]service.DailyCounts, error) {
		return t.DomainDaily(ctx, ours, dmarcd.Days{}, 10)
	}),
	"DailyByDomain": reads(func(_ *world, t *service.Team) ([]service.DailyCounts, error) {
		return t.DailyByDomain(ctx, dmarcd.Days{}, service.DailyCursor{}, 10)
	}),
	"Mail": reads(func(_ *world, t *service.Team) (any, error) {
		mail, err := t.Mail(ctx, ours, dmarcd.Days{})
		if err == nil {
			mail.Close()
		}
		return mail, err
	}),
	"DomainTrends": reads(func(_ *world, t *service.Team) (any, error) {
		return t.DomainTrends(ctx, nil, dmarcd.Days{})
	}),
	"Tokens":      reads(func(_ *world, t *service.Team) ([]dmarcd.Token, error) { return t.Tokens(ctx) }),
	"Members":     reads(func(_ *world, t *service.Team) ([]dmarcd.Member, error) { return t.Members(ctx) }),
	"Invitations": reads(func(_ *world, t *service.Team) ([]dmarcd.Invitation, error) { return t.Invitations(ctx) }),
	"Mailboxes":   reads(func(_ *world, t *service.Team) ([]dmarcd.Mailbox, error) { return t.Mailboxes(ctx) }),
	"Zone":        reads(func(_ *world, t *service.Team) (string, error) { return t.Zone(ctx, "_dmarc."+ours) }),
	"Setup":       reads(func(_ *world, t *service.Team) (dmarcd.Setup, error) { return t.Setup(ctx, ours) }),
	"Retention":   asks(func(_ *world, t *service.Team) (service.Retention, error) { return t.Retention(ctx) }),
	"Audit": {
		needs: manage, team: func(_ *world, t *service.Team) error {
			_, err := t.Audit(ctx, service.Times{}, service.Cursor{}, 10)
			return err
		},
	},
	"TopAdvice": reads(func(_ *world, t *service.Team) ([]dmarcd.Advice, error) { return t.TopAdvice(ctx) }),
	"Watch": {
		needs: see, wants: dmarcd.ErrNotFound, team: func(_ *world, t *service.Team) error { return t.Watch(ctx, ours) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.Watch(ctx, "example.net") },
	},
	"ReadTurn": {needs: see, team: func(_ *world, t *service.Team) error {
		end, err := t.ReadTurn(ctx)
		if err == nil {
			end()
		}
		return err
	}},
	"ReserveMemory": {needs: see, team: func(_ *world, t *service.Team) error {
		_, release, err := t.ReserveMemory(ctx)
		if err == nil {
			release()
		}
		return err
	}},
	"ReserveRows": {needs: see, team: func(_ *world, t *service.Team) error {
		release, err := t.ReserveRows(ctx, 1000)
		if err == nil {
			release()
		}
		return err
	}},
	"Examine": {
		needs: see, wants: dmarcd.ErrNotFound, team: func(_ *world, t *service.Team) error { return t.Examine(ctx, ours) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.Examine(ctx, "example.net") },
	},
	"Self":  reads(func(_ *world, t *service.Team) (dmarcd.Team, error) { return t.Self(ctx) }),
	"Quota": reads(func(_ *world, t *service.Team) (any, error) { quota, _, err := t.Quota(ctx); return quota, err }),
	"RotateSecrets": {
		needs: operate, action: "secret.rotate",
		system: func(_ *world, s *service.System) error { return errorOf(s.RotateSecrets(ctx)) },
	},
	"TeamByName": {
		needs: operate, wants: dmarcd.ErrNotFound,
		system: func(_ *world, s *service.System) error { return finds(s.TeamByName(ctx, "acme")) },
		fails:  func(_ *world, _ *service.Team, s *service.System) error { return errorOf(s.TeamByName(ctx, "zoo")) },
	},
	"TeamOfToken":   {needs: operate, system: func(w *world, s *service.System) error { return finds(s.TeamOfToken(ctx, w.token)) }},
	"TeamOfMailbox": {needs: operate, system: func(w *world, s *service.System) error { return finds(s.TeamOfMailbox(ctx, w.mailbox)) }},
	"UserByEmail": {needs: operate, system: func(w *world, s *service.System) error {
		return finds(s.UserByEmail(ctx, w.member.Email))
	}},
	"Backup": {
		needs: operate, wants: fs.ErrNotExist, // it changes nothing
		system: func(w *world, s *service.System) error {
			return s.Backup(ctx, filepath.Join(w.TempDir(), "copy.db"))
		},
		fails: func(w *world, _ *service.Team, s *service.System) error {
			return s.Backup(ctx, filepath.Join(w.TempDir(), "no folder", "copy.db"))
		},
	},
	"Teams":    {needs: operate, system: func(_ *world, s *service.System) error { return finds(s.Teams(ctx)) }},
	"TeamByID": {needs: operate, system: func(w *world, s *service.System) error { return finds(s.TeamByID(ctx, w.team.ID)) }},
	"TeamSizes": {needs: operate, system: func(_ *world, s *service.System) error {
		return finds(s.TeamSizes(ctx, dmarcd.Days{}))
	}},
	"Users":          {needs: operate, system: func(_ *world, s *service.System) error { return finds(s.Users(ctx)) }},
	"AllMemberships": {needs: operate, system: func(_ *world, s *service.System) error { return finds(s.AllMemberships(ctx)) }},
	"System.Audit":   {needs: operate, system: func(_ *world, s *service.System) error { return errorOf(s.Audit(ctx, service.Cursor{}, 10)) }},
	"AddDomain": {
		needs: change, action: "domain.add", target: "example.org", wants: dmarcd.ErrConflict,
		team:  func(_ *world, t *service.Team) error { return finds(t.AddDomain(ctx, "Example.ORG.")) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return errorOf(t.AddDomain(ctx, ours)) },
	},
	"AddDomains": {
		needs: change, action: "domain.add", target: "2 domains",
		team: func(_ *world, t *service.Team) error {
			return finds(t.AddDomains(ctx, []string{"example.org", "example.net"}))
		},
		// Nothing is added, and nothing is wrong.
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.AddDomains(ctx, []string{ours}))
		},
	},
	"DeleteDomain": {
		needs: remove, action: "domain.delete", target: ours, wants: dmarcd.ErrNotFound,
		team:  func(_ *world, t *service.Team) error { return t.DeleteDomain(ctx, ours) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.DeleteDomain(ctx, "'") },
	},
	"DomainMail": reads(func(_ *world, t *service.Team) (service.Simulation, error) {
		return t.DomainMail(ctx, ours, dmarcd.Days{})
	}),
	"Classes": reads(func(_ *world, t *service.Team) (service.ClassSeries, error) { return t.Classes(ctx, "", 1, 2) }),
	"Simulate": reads(func(_ *world, t *service.Team) (service.Simulation, error) {
		return t.Simulate(ctx, ours, dmarcd.Days{}, service.PolicyChange{})
	}),
	"ProposedRecord": reads(func(_ *world, t *service.Team) (string, error) { return t.ProposedRecord(ctx, ours) }),
	"Advice":         reads(func(_ *world, t *service.Team) (dmarcd.Advice, error) { return t.Advice(ctx, ours) }),
	"AllAdvice": reads(func(_ *world, t *service.Team) ([]dmarcd.Advice, error) {
		all, _, err := t.AllAdvice(ctx, 0, 10)
		return all, err
	}),
	"Answer": {
		needs: change, action: "sender.class", target: ours, wants: service.ErrQuestionClosed,
		prepare: func(w *world) {
			// Another use case may have deleted the domain.
			musttest.Get(w.store.Team(w.team.ID).AddDomains(ctx, []string{ours}, time.Now().Add(time.Hour)))(w)
			w.save(ours, facts.Check{Facts: &facts.Facts{Domain: ours}})
			asked := storetest.Passed(ours, 20) // as another domain
			asked.Addr, asked.Source, asked.DKIM = netip.MustParseAddr("198.51.100.1"), "198.51.100.1", aggregate.ResultFail
			asked.DKIMResults = []aggregate.DKIMResult{{Domain: "news.example", Selector: "s1", Result: aggregate.ResultPass}}
			report := storetest.Aggregate("asked", ours, dmarcd.DayOf(time.Now())-1, asked)
			musttest.Get(w.store.Team(w.team.ID).Receive(ctx, []*dmarcd.Delivery{storetest.Delivery(report)}))(w)
		},
		team: func(_ *world, t *service.Team) error { return finds(t.Answer(ctx, ours, "-:as:news.example", true)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.Answer(ctx, ours, "-:others", true))
		},
	},
	"AcceptForwarding": {
		needs: change, action: "domain.forwarding", target: ours, wants: dmarcd.ErrInvalid,
		team:  func(_ *world, t *service.Team) error { return t.AcceptForwarding(ctx, ours, 290) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.AcceptForwarding(ctx, ours, -1) },
	},
	"SetParked": {
		needs: change, action: "domain.parked", target: ours, wants: dmarcd.ErrNotFound,
		team:  func(_ *world, t *service.Team) error { return t.SetParked(ctx, ours, true) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.SetParked(ctx, "example.net", true) },
	},
	"SetPurpose": {
		needs: change, action: "domain.purpose", target: ours, wants: dmarcd.ErrNotFound,
		team: func(_ *world, t *service.Team) error { return t.SetPurpose(ctx, ours, dmarcd.PurposeBusiness) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SetPurpose(ctx, "example.net", dmarcd.PurposeBusiness)
		},
	},
	"Verify": {
		needs: change, wants: dmarcd.ErrNotFound, // a check is no decision of a user
		team: func(_ *world, t *service.Team) error { _, _, err := t.Verify(ctx, ours); return err },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			_, _, err := t.Verify(ctx, "example.net")
			return err
		},
	},
	"Upload": {
		needs: change, action: "report.upload", target: "a.txt", wants: context.Canceled,
		team: func(w *world, t *service.Team) error {
			return finds(t.Upload(ctx, "a.txt", w.copyOf("not a report")))
		},
		fails: func(w *world, t *service.Team, _ *service.System) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, err := t.Upload(ended, "a.txt", w.copyOf("not a report"))
			return err
		},
	},
	"Import": {
		needs: change, action: "report.import", target: "old reports", wants: context.Canceled,
		team: func(w *world, t *service.Team) error { return w.importTwice(ctx, t) },
		fails: func(w *world, t *service.Team, _ *service.System) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return w.importTwice(ended, t)
		},
	},
	"Retry": {
		needs: change, action: "report.retry", wants: dmarcd.ErrNotFound,
		team: func(w *world, t *service.Team) error { _, _, err := t.Retry(ctx, w.rejected); return err },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			_, _, err := t.Retry(ctx, 1)
			return err
		},
	},
	"SetCounted": {
		needs: change, action: "report.exclude", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return finds(t.SetCounted(ctx, w.report, false)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return errorOf(t.SetCounted(ctx, 1, false)) },
	},
	"SetCountedAll": {
		needs: change, action: "report.exclude", target: "receiver.example", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.SetCountedAll(ctx, service.Selection{Reporter: "receiver.example"}, false))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.SetCountedAll(ctx, service.Selection{}, false))
		},
	},
	"DeleteReport": {
		needs: change, action: "report.delete", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return t.DeleteReport(ctx, w.report) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.DeleteReport(ctx, 1) },
	},
	"DeleteRejected": {
		needs: change, action: "rejected.delete", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return t.DeleteRejected(ctx, w.rejected) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.DeleteRejected(ctx, 1) },
	},
	"CreateToken": {
		needs: manage, action: "token.create", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			_, secret, err := t.CreateToken(ctx, service.NewToken{Name: "ci", Scope: dmarcd.ScopeRead})
			return finds(secret, err)
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			_, _, err := t.CreateToken(ctx, service.NewToken{Name: "\x00", Scope: dmarcd.ScopeRead})
			return err
		},
	},
	"RevokeToken": {
		needs: manage, action: "token.revoke", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return t.RevokeToken(ctx, w.token) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.RevokeToken(ctx, 1) },
	},
	"SetRole": {
		needs: manage, action: "member.role", target: "bob@example.com", wants: dmarcd.ErrInvalid,
		team: func(w *world, t *service.Team) error { return t.SetRole(ctx, w.member.ID, dmarcd.RoleEditor) },
		fails: func(w *world, t *service.Team, _ *service.System) error {
			return t.SetRole(ctx, w.owner.ID, dmarcd.RoleViewer)
		},
	},
	"RemoveMember": {
		needs: manage, action: "member.remove", target: "bob@example.com", wants: dmarcd.ErrInvalid,
		team:  func(w *world, t *service.Team) error { return t.RemoveMember(ctx, w.member.ID) },
		fails: func(w *world, t *service.Team, _ *service.System) error { return t.RemoveMember(ctx, w.owner.ID) },
	},
	"InviteMember": {
		needs: manage, action: "member.invite", target: "eve@example.com", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.InviteMember(ctx, "Eve@example.com", dmarcd.RoleViewer))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.InviteMember(ctx, "no address", dmarcd.RoleViewer))
		},
	},
	"WithdrawInvitation": {
		needs: manage, action: "member.uninvite", target: "new@example.com", wants: dmarcd.ErrNotFound,
		team: func(_ *world, t *service.Team) error { return t.WithdrawInvitation(ctx, "new@example.com") },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.WithdrawInvitation(ctx, "eve@example.com")
		},
	},
	"AddMailbox": {
		needs: manage, action: "mailbox.add", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.AddMailbox(ctx, service.NewMailbox{Mailbox: sampleMailbox(), Password: "open sesame"}))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.AddMailbox(ctx, service.NewMailbox{}))
		},
	},
	"RemoveMailbox": {
		needs: manage, action: "mailbox.remove", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return t.RemoveMailbox(ctx, w.mailbox) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.RemoveMailbox(ctx, 1) },
	},
	"ResumeMailbox": {
		needs: manage, action: "mailbox.resume", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return t.ResumeMailbox(ctx, w.mailbox) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.ResumeMailbox(ctx, 1) },
	},
	"SetRetention": {
		needs: manage, action: "retention.set", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return t.SetRetention(ctx, service.Retention{Counters: 30, Records: 30})
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SetRetention(ctx, service.Retention{Counters: 10, Records: 30})
		},
	},
	"CreateTeam": {
		needs: operate, action: "team.create", target: "zoo", wants: dmarcd.ErrConflict,
		system: func(_ *world, s *service.System) error { return finds(s.CreateTeam(ctx, "zoo", true)) },
		fails: func(_ *world, _ *service.Team, s *service.System) error {
			return errorOf(s.CreateTeam(ctx, "acme", true))
		},
	},
	"SetAPI": {
		needs: operate, action: "team.deny", target: "acme", wants: dmarcd.ErrNotFound,
		system: func(_ *world, s *service.System) error { return s.SetAPI(ctx, "acme", false) },
		fails:  func(_ *world, _ *service.Team, s *service.System) error { return s.SetAPI(ctx, "zoo", false) },
	},
	"SetQuotas": {
		needs: operate, action: "team.quota", target: "acme", wants: dmarcd.ErrNotFound,
		system: func(w *world, s *service.System) error {
			return s.SetQuotas(ctx, w.team, dmarcd.Quota{dmarcd.QuotaDomains: 5, dmarcd.QuotaStored: 1 << 30})
		},
		fails: func(_ *world, _ *service.Team, s *service.System) error {
			return s.SetQuotas(ctx, dmarcd.Team{ID: 1}, dmarcd.Quota{dmarcd.QuotaDomains: 5})
		},
	},
	"Delete": {
		needs: own, action: "team.delete", wants: dmarcd.ErrInvalid, last: true,
		team:  func(w *world, t *service.Team) error { return t.Delete(ctx, w.team.Name) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.Delete(ctx, "Acme") },
	},
	"Archive": {
		needs: own, action: "team.export", target: "acme",
		team: func(_ *world, t *service.Team) error { return errorOf(t.Archive(ctx)) },
	},
	"RemoveUser": {
		needs: operate, action: "user.remove", target: "bob@example.com", wants: dmarcd.ErrNotFound,
		system: func(w *world, s *service.System) error { _, err := s.RemoveUser(ctx, w.member.ID); return err },
		fails:  func(_ *world, _ *service.Team, s *service.System) error { return errorOf(s.RemoveUser(ctx, 1)) },
	},
	"Invite": {
		needs: operate, action: "user.invite", target: "eve@example.com", wants: dmarcd.ErrInvalid,
		system: func(w *world, s *service.System) error {
			return finds(s.Invite(ctx, dmarcd.Invitation{Email: "eve@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer}))
		},
		fails: func(_ *world, _ *service.Team, s *service.System) error {
			return errorOf(s.Invite(ctx, dmarcd.Invitation{Email: "no address", Operator: true}))
		},
	},
})
