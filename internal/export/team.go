package export

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// page is the number of rows per query.
const page = 100

// File is a file of the archive of a team, or a folder.
type File struct {
	Name  string
	About string // one line
	write func(w *teamWriter) error
}

// Files are the files of the archive of a team, in their order.
func Files() []File {
	return []File{
		{"team.json", "the team, its quotas, its retention in days, and its alert rules", (*teamWriter).team},
		{"domains.ndjson", "the domains as in the API, with reporting address, tags and marks", (*teamWriter).domains},
		{"checks.ndjson", "the history of checks of each domain as in the API", (*teamWriter).checks},
		{"days.ndjson", "the daily counts of each domain", (*teamWriter).days},
		{"reports.ndjson", "the reports of all kinds as in the API, without the records of aggregate reports", (*teamWriter).reports},
		{"records.ndjson", "the records of aggregate reports, also those that do not count, with the columns of dmarcd export", (*teamWriter).records},
		{"rejected.ndjson", "the items that could not be read", (*teamWriter).rejected},
		{"senders.ndjson", "the senders that the team added", (*teamWriter).senders},
		{"sender_classes.ndjson", "the classes that the team gave to senders of each domain", (*teamWriter).classes},
		{"managed_records.ndjson", "the versions of the managed records of each domain", (*teamWriter).managed},
		{"record_targets.ndjson", "the servers to which records of domains are published, without keys", (*teamWriter).targets},
		{"events.ndjson", "the events", (*teamWriter).events},
		{"alerts.ndjson", "the alerts", (*teamWriter).alerts},
		{"members.ndjson", "the members", (*teamWriter).members},
		{"invitations.ndjson", "the open invitations, without their links", (*teamWriter).invitations},
		{"tokens.ndjson", "the tokens, without their secrets", (*teamWriter).tokens},
		{"webhooks.ndjson", "the webhooks, chat channels and digests, without their secrets", (*teamWriter).webhooks},
		{"mailboxes.ndjson", "the mailboxes, without their passwords", (*teamWriter).mailboxes},
		{"audit.ndjson", "the audit log", (*teamWriter).audit},
		{"originals/", "what was received, a file for each report, named after its id", (*teamWriter).originals},
		{"rejected/", "the same for items that could not be read", (*teamWriter).rejectedOriginals},
	}
}

type teamWriter struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one export
	from *service.Archive
	zip  *zip.Writer
	// out is the current file, to which encoder writes.
	out     io.Writer
	encoder *json.Encoder
}

// Team writes everything that a team has as a ZIP file, whose files docs/export.md describes. It holds
// one page of rows at a time. After an error the output is incomplete.
func Team(ctx context.Context, from *service.Archive, out io.Writer) error {
	w := &teamWriter{ctx: ctx, from: from, zip: zip.NewWriter(out)}
	for _, file := range Files() {
		err := w.open(file)
		if err == nil {
			err = file.write(w)
		}
		if err != nil {
			return fmt.Errorf("export %s: %w", file.Name, err)
		}
	}
	return w.zip.Close()
}

func (w *teamWriter) open(file File) error {
	var err error
	w.out, err = w.zip.Create(file.Name)
	w.encoder = newEncoder(w.out)
	return err
}

func newEncoder(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder
}

// encodeAll writes a line for each item.
func encodeAll[A, B any](w *teamWriter, items []A, shape func(A) B) error {
	for _, item := range items {
		if err := w.encoder.Encode(shape(item)); err != nil {
			return err
		}
	}
	return nil
}

// eachPage calls use for pages of a list until one is empty. read returns the page after the last item
// of the one before, nil at the start.
func eachPage[T any](read func(last *T) ([]T, error), use func([]T) error) error {
	var last *T
	for {
		items, err := read(last)
		if err != nil || len(items) == 0 {
			return err
		}
		if err := use(items); err != nil {
			return err
		}
		last = &items[len(items)-1]
	}
}

func (w *teamWriter) eachDomain(use func(dmarcd.Domain) error) error {
	return eachPage(func(last *dmarcd.Domain) ([]dmarcd.Domain, error) {
		if last == nil {
			last = &dmarcd.Domain{}
		}
		return w.from.Domains(w.ctx, last.Name, page)
	}, func(domains []dmarcd.Domain) error {
		for _, d := range domains {
			if err := use(d); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *teamWriter) eachReport(use func(dmarcd.Report) error) error {
	return eachPage(func(last *dmarcd.Report) ([]dmarcd.Report, error) {
		if last == nil {
			last = &dmarcd.Report{}
		}
		return w.from.Reports(w.ctx, service.ReportFilter{}, last.ID, page)
	}, func(reports []dmarcd.Report) error {
		for _, r := range reports {
			if err := use(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *teamWriter) eachRejected(use func(dmarcd.Rejected) error) error {
	return eachPage(func(last *dmarcd.Rejected) ([]dmarcd.Rejected, error) {
		if last == nil {
			last = &dmarcd.Rejected{}
		}
		return w.from.Rejected(w.ctx, last.ID, page)
	}, func(items []dmarcd.Rejected) error {
		for _, item := range items {
			if err := use(item); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *teamWriter) team() error {
	retention, err := w.from.Retention(w.ctx)
	if err != nil {
		return err
	}
	quota, used, err := w.from.Quota(w.ctx)
	if err != nil {
		return err
	}
	rules, err := w.from.AlertRules(w.ctx)
	if err != nil {
		return err
	}
	return w.encoder.Encode(struct {
		wire.Team

		SecondFactor bool                               `json:"second_factor"`
		Quotas       map[dmarcd.QuotaName]wire.QuotaUse `json:"quotas"`
		Retention    wire.Retention                     `json:"retention"`
		AlertRules   wire.AlertRules                    `json:"alert_rules"`
	}{
		wire.NewTeam(w.from.Self), w.from.Self.SecondFactor, wire.NewMe(w.from.Self, dmarcd.Token{}, quota, used, "").Quotas,
		wire.Retention(retention), wire.NewAlertRules(rules),
	})
}

func (w *teamWriter) domains() error {
	return w.eachDomain(func(d dmarcd.Domain) error {
		tags, err := w.from.DomainTags(w.ctx, d.Name)
		if err != nil {
			return ignoreGone(err)
		}
		return w.encoder.Encode(struct {
			wire.Domain

			ReportMailbox string   `json:"report_mailbox"`
			Grade         string   `json:"grade"`
			Tags          []string `json:"tags"`
			Parked        bool     `json:"parked"`
			Sample        bool     `json:"sample"`
			Proof         string   `json:"proof"`
		}{wire.NewDomain(d), d.ReportMailbox, d.Grade, append([]string{}, tags...), d.Parked, d.Sample, string(d.Proof)})
	})
}

// ignoreGone returns nil for what was deleted meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	return err
}

func (w *teamWriter) checks() error {
	return w.eachDomain(func(d dmarcd.Domain) error {
		return eachPage(func(last *facts.StoredCheck) ([]facts.StoredCheck, error) {
			var before service.Cursor
			if last != nil {
				before = service.Cursor{At: last.FirstAt, ID: int64(last.ID)}
			}
			return w.from.Checks(w.ctx, d, service.Times{}, before, page)
		}, func(checks []facts.StoredCheck) error {
			return encodeAll(w, checks, func(c facts.StoredCheck) any {
				return struct {
					Domain string `json:"domain"`
					wire.StoredCheck
				}{d.Name, wire.NewStoredCheck(c)}
			})
		})
	})
}

func (w *teamWriter) days() error {
	return eachPage(func(last *service.DailyCounts) ([]service.DailyCounts, error) {
		var after service.DailyCursor
		if last != nil {
			after = service.DailyCursor{Day: last.Day, Domain: last.Domain}
		}
		return w.from.DailyByDomain(w.ctx, dmarcd.Days{}, after, page)
	}, func(days []service.DailyCounts) error {
		return encodeAll(w, days, func(d service.DailyCounts) wire.Daily { return wire.NewDaily(d.Day, d.Domain, d.Counts) })
	})
}

func (w *teamWriter) reports() error {
	return w.eachReport(func(r dmarcd.Report) error {
		full, err := w.from.Report(w.ctx, r.ID)
		if err != nil {
			return ignoreGone(err)
		}
		return w.encoder.Encode(struct {
			wire.FullReport

			// The records are in another file.
			RecordList *struct{} `json:"record_list,omitempty"`
			Next       *struct{} `json:"next,omitempty"`
		}{FullReport: wire.NewFullReport(full, wire.Page[wire.StoredRecord]{Items: []wire.StoredRecord{}})})
	})
}

func (w *teamWriter) records() error {
	records := w.from.Records()
	for {
		var lines bytes.Buffer // the batch is encoded in its turn, and written without one
		n, err := records.Next(w.ctx, func(batch []service.ReportRecord) error {
			encoder := newEncoder(&lines)
			for _, r := range batch {
				columns := wire.NewExportedColumns(wire.FormatRecordID(r.Report.ID, r.Cursor.Share, r.Cursor.N), r.Domain, r.Report, r.Record.Record)
				if err := encoder.Encode(wire.NewExportedRecord(columns, r.Report)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || n == 0 {
			return err
		}
		if _, err := w.out.Write(lines.Bytes()); err != nil {
			return err
		}
	}
}

func (w *teamWriter) rejected() error {
	return w.eachRejected(func(r dmarcd.Rejected) error { return w.encoder.Encode(wire.NewRejected(r)) })
}

func (w *teamWriter) senders() error {
	senders, err := w.from.TeamSenders(w.ctx)
	if err != nil {
		return err
	}
	return encodeAll(w, senders, wire.NewTeamSender)
}

func (w *teamWriter) classes() error {
	return w.eachDomain(func(d dmarcd.Domain) error {
		classes, err := w.from.SenderClasses(w.ctx, d.Name)
		if err != nil {
			return err
		}
		return encodeAll(w, slices.Sorted(maps.Keys(classes)), func(sender string) wire.SenderClass {
			return wire.NewSenderClass(d.Name, sender, classes[sender])
		})
	})
}

func (w *teamWriter) managed() error {
	return w.eachDomain(func(d dmarcd.Domain) error {
		versions, err := w.from.RecordVersions(w.ctx, d.Name)
		if err != nil {
			return err
		}
		return encodeAll(w, versions, func(v dmarcd.RecordVersion) wire.DomainRecord { return wire.NewDomainRecord(d.Name, v) })
	})
}

func (w *teamWriter) targets() error {
	return w.eachDomain(func(d dmarcd.Domain) error {
		target, err := w.from.RecordTarget(w.ctx, d.Name)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return nil
		}
		return errors.Join(err, encodeAll(w, []dmarcd.PublishTarget{target}, func(t dmarcd.PublishTarget) wire.RecordTarget { return wire.NewRecordTarget(d.Name, t) }))
	})
}

func (w *teamWriter) events() error {
	return eachPage(func(last *dmarcd.Event) ([]dmarcd.Event, error) {
		if last == nil {
			last = &dmarcd.Event{}
		}
		return w.from.EventsSince(w.ctx, service.EventFilter{}, last.Seq, page, 0)
	}, func(events []dmarcd.Event) error {
		return encodeAll(w, events, func(e dmarcd.Event) wire.Event { return wire.NewEvent(e, w.from.BaseURL) })
	})
}

func (w *teamWriter) alerts() error {
	return eachPage(func(last *dmarcd.Alert) ([]dmarcd.Alert, error) {
		if last == nil {
			last = &dmarcd.Alert{}
		}
		return w.from.Alerts(w.ctx, dmarcd.AlertFilter{}, last.Event.Seq, page)
	}, func(alerts []dmarcd.Alert) error {
		return encodeAll(w, alerts, func(a dmarcd.Alert) wire.Alert { return wire.NewAlert(a, w.from.BaseURL) })
	})
}

func (w *teamWriter) members() error {
	members, err := w.from.Members(w.ctx)
	if err != nil {
		return err
	}
	return encodeAll(w, members, wire.NewMember)
}

func (w *teamWriter) invitations() error {
	invitations, err := w.from.Invitations(w.ctx)
	if err != nil {
		return err
	}
	return encodeAll(w, invitations, wire.NewInvitation)
}

func (w *teamWriter) tokens() error {
	tokens, err := w.from.Tokens(w.ctx)
	if err != nil {
		return err
	}
	return encodeAll(w, tokens, wire.NewToken)
}

func (w *teamWriter) webhooks() error {
	webhooks, err := w.from.Webhooks(w.ctx)
	if err != nil {
		return err
	}
	return encodeAll(w, webhooks, wire.NewWebhook)
}

func (w *teamWriter) mailboxes() error {
	mailboxes, err := w.from.Mailboxes(w.ctx)
	if err != nil {
		return err
	}
	return encodeAll(w, mailboxes, wire.NewMailbox)
}

func (w *teamWriter) audit() error {
	return eachPage(func(last *dmarcd.AuditEntry) ([]dmarcd.AuditEntry, error) {
		var before service.Cursor
		if last != nil {
			before = service.Cursor{At: last.At, ID: int64(last.ID)}
		}
		return w.from.Audit(w.ctx, service.Times{}, before, page)
	}, func(entries []dmarcd.AuditEntry) error { return encodeAll(w, entries, wire.NewAuditEntry) })
}

func (w *teamWriter) originals() error {
	return w.eachReport(func(r dmarcd.Report) error {
		original, err := w.from.Original(w.ctx, r.ID)
		return w.original("originals/"+r.ID.String(), original, err)
	})
}

func (w *teamWriter) rejectedOriginals() error {
	return w.eachRejected(func(r dmarcd.Rejected) error {
		original, err := w.from.RejectedOriginal(w.ctx, r.ID)
		return w.original("rejected/"+r.ID.String(), original, err)
	})
}

// original writes an original, unless it is gone.
func (w *teamWriter) original(name string, original dmarcd.StoredOriginal, err error) error {
	if err != nil {
		return ignoreGone(err)
	}
	out, err := w.zip.Create(name)
	if err == nil {
		_, err = io.Copy(out, intake.Unpack(original.Packed))
	}
	return err
}
