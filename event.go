package dmarcd

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	RecordAppeared     EventKind = "record.appeared"
	RecordChanged      EventKind = "record.changed"
	RecordRemoved      EventKind = "record.removed"
	PolicyWeakened     EventKind = "policy.weakened"
	PolicyStrengthened EventKind = "policy.strengthened"
	ProofLost          EventKind = "proof.lost" // DNS no longer shows that the team controls the domain
	FindingAppeared    EventKind = "finding.appeared"
	FindingResolved    EventKind = "finding.resolved"
	ChecksSuspended    EventKind = "checks.suspended"
	HeldReport         EventKind = "report.held" // not counted until an editor releases it
	WebhookDisabled    EventKind = "webhook.disabled"
	WebhookTest        EventKind = "webhook.test" // requested by a user, for one webhook

	// What is detected in mail and reports; see Detection.
	SenderNew         EventKind = "sender.new"
	SenderFailing     EventKind = "sender.failing"
	SelectorFailing   EventKind = "selector.failing"
	PassRateDropped   EventKind = "pass_rate.dropped"
	VolumeSpike       EventKind = "volume.spike"
	SpoofingBurst     EventKind = "spoofing.burst"
	ReportsStopped    EventKind = "reports.stopped"
	ReportsUnreadable EventKind = "reports.unreadable"
	ReportsUnverified EventKind = "reports.unverified"
	TLSFailing        EventKind = "tls.failing"
	MailboxFailing    EventKind = "mailbox.failing"
	TokenExpiring     EventKind = "token.expiring"
	DiskLow           EventKind = "disk.low"
	RecordsRetired    EventKind = "records.retired" // names of managed records that answer for 90 more days
	SPFOutdated       EventKind = "spf.outdated"    // a managed SPF record is not what its names are now

	CertificateFailing EventKind = "certificate.failing" // of an MTA-STS policy

	AlertsGrouped EventKind = "alerts.grouped" // one event for several
	AlertTest     EventKind = "alert.test"     // requested by a user, for all webhooks
)

// EventKinds returns all kinds.
func EventKinds() []EventKind {
	return []EventKind{
		RecordAppeared, RecordChanged, RecordRemoved, PolicyWeakened, PolicyStrengthened, ProofLost, FindingAppeared, FindingResolved,
		ChecksSuspended, HeldReport, WebhookDisabled, WebhookTest,
		SenderNew, SenderFailing, SelectorFailing, PassRateDropped, VolumeSpike, SpoofingBurst,
		ReportsStopped, ReportsUnreadable, ReportsUnverified, TLSFailing, MailboxFailing, TokenExpiring, DiskLow, RecordsRetired, SPFOutdated, CertificateFailing, AlertsGrouped, AlertTest,
		DigestDaily, DigestWeekly, DigestMonthly, DigestManagers,
	}
}

// Validate returns an *InvalidError for the field if there is no such kind.
func (k EventKind) Validate(field string) error {
	kinds := EventKinds()
	if slices.Contains(kinds, k) {
		return nil
	}
	var list strings.Builder
	for i, kind := range kinds {
		switch i {
		case 0:
		case len(kinds) - 1:
			list.WriteString(" or ")
		default:
			list.WriteString(", ")
		}
		list.WriteString(string(kind))
	}
	return &InvalidError{Field: field, Message: fmt.Sprintf("There are no events of the kind %q. The kind must be one of %s.", string(k), list.String())}
}

// IsTest reports whether users request events of the kind to see whether they are delivered.
func (k EventKind) IsTest() bool { return k == WebhookTest || k == AlertTest }

// NeedsReaction reports whether alerts of the kind stay open until someone acknowledges them. Good
// news, tests and digests do not, nor do groups, whose members are alerts themselves.
func (k EventKind) NeedsReaction() bool {
	switch k {
	case RecordAppeared, PolicyStrengthened, FindingResolved, AlertsGrouped:
		return false
	}
	return !k.IsTest() && !k.IsDigest()
}

// Resolves returns the kind of the earlier events that an event of the kind resolves: those about the
// same domain and finding. It is "" for none.
func (k EventKind) Resolves() EventKind {
	switch k {
	case RecordAppeared:
		return RecordRemoved
	case PolicyStrengthened:
		return PolicyWeakened
	case FindingResolved:
		return FindingAppeared
	}
	return ""
}

// Level returns how much an event of the kind matters, unless the event says so itself.
func (k EventKind) Level() Level {
	switch k {
	case RecordRemoved, PolicyWeakened, ProofLost, FindingAppeared, SenderFailing, SelectorFailing, PassRateDropped, SpoofingBurst,
		ReportsStopped, MailboxFailing, WebhookDisabled, DiskLow, CertificateFailing:
		return LevelError
	case RecordChanged, ChecksSuspended, HeldReport, SenderNew, VolumeSpike, ReportsUnreadable, ReportsUnverified, TLSFailing, TokenExpiring, RecordsRetired, SPFOutdated, AlertsGrouped:
		return LevelWarning
	}
	return LevelInfo
}

// Event is something that happened to a domain or to a team.
type Event struct {
	// Seq numbers the events of a team in commit order.
	Seq int64
	ID  EventID
	At  time.Time
	// Domain is the name of the domain, "" if the event is not about one.
	Domain string
	Kind   EventKind
	EventData
}

// EventData contains the details of an event. Fields that do not apply to its kind are
// empty.
type EventData struct {
	// Before and After are the record, the policy or the text of the finding, "" if there
	// is none.
	Before, After string
	// Finding is the id of the finding.
	Finding string
	// Report is the held report, or the first of several; Organization is its reporter.
	Report       ReportID
	Organization string
	// Webhook is the webhook that was disabled or tested.
	Webhook WebhookID
	// Reason explains why checks are suspended, a report is held, a webhook is disabled or a
	// mailbox is not read; for grouped alerts it lists them.
	Reason string
	// Level is how much the event matters, "" where the kind decides.
	Level Level
	// Day is the day of what was detected, of a digest the last one; 0 is none. Subject is what the event is about
	// within the domain, SubjectName its name for people. SubjectClass is the class of a sender, ""
	// where it is not known.
	Day                  Day
	Subject, SubjectName string
	SubjectClass         Class
	Measured
}

// Measured are the figures behind a detection.
type Measured struct {
	// Messages is how many messages were evaluated, of TLSFailing the sessions, and of
	// ReportsUnreadable and AlertsGrouped what they count. Of HeldReport it is the number of
	// reports, 0 for one.
	Messages int64
	// Observed and Usual are what was measured, and its median before: the part of messages
	// that passes or of sessions that fails, a number of messages, or the days without a
	// report. In a digest Usual is that of the previous period.
	Observed, Usual float64
}

// Level returns how much the event matters.
func (e Event) Level() Level {
	if e.EventData.Level != "" {
		return e.EventData.Level
	}
	return e.Kind.Level()
}

// RecordEvents returns the events for the differences between two conclusive checks of a
// domain, without names and times.
func RecordEvents(before, after Domain) []Event {
	var events []Event
	add := func(kind EventKind, before, after string) {
		events = append(events, Event{Kind: kind, EventData: EventData{Before: before, After: after}})
	}
	switch {
	case before.Record == after.Record:
	case before.Record == "":
		add(RecordAppeared, before.Record, after.Record)
	case after.Record == "":
		add(RecordRemoved, before.Record, after.Record)
	default:
		add(RecordChanged, before.Record, after.Record)
	}
	switch was, is := strictness(before.Policy), strictness(after.Policy); {
	case is < was:
		add(PolicyWeakened, before.Policy, after.Policy)
	case is > was:
		add(PolicyStrengthened, before.Policy, after.Policy)
	}
	if after.Proof == ProofMissing && before.Proof != "" && before.Proof != ProofMissing {
		add(ProofLost, string(before.Proof), "")
	}
	return events
}

// strictness orders policies; p=none and no policy are equally strict.
func strictness(policy string) int {
	switch policy {
	case "quarantine":
		return 1
	case "reject":
		return 2
	}
	return 0
}

// The kinds of digests. A digest is an event that is sent only to webhooks that select its kind.
const (
	DigestDaily    EventKind = "digest.daily"
	DigestWeekly   EventKind = "digest.weekly"   // from Monday to Sunday
	DigestMonthly  EventKind = "digest.monthly"  // a calendar month
	DigestManagers EventKind = "digest.managers" // the report for managers about a calendar month
)

// digestHour is the hour (UTC) after the end of a period at which its digest is due: most
// receivers have sent their reports by then.
const digestHour = 12

// Digests returns the kinds of digests.
func Digests() []EventKind {
	return []EventKind{DigestDaily, DigestWeekly, DigestMonthly, DigestManagers}
}

// IsDigest reports whether events of the kind are digests.
func (k EventKind) IsDigest() bool { return slices.Contains(Digests(), k) }

// LastDigest returns the last day of the newest period whose digest is due, and when it became due.
func (k EventKind) LastDigest(now time.Time) (last Day, due time.Time) {
	next := DayOf(now.Add(-digestHour * time.Hour)) // the day after the period
	switch k {
	case DigestWeekly:
		next -= Day((next.Time().Weekday() + 6) % 7) // the days since Monday
	case DigestMonthly, DigestManagers:
		next -= Day(next.Time().Day() - 1) //nolint:gosec // 0 to 30
	}
	return next - 1, next.Time().Add(digestHour * time.Hour)
}

// DigestPeriod returns the days of a digest.
func (e Event) DigestPeriod() (from, to Day) {
	switch e.Kind {
	case DigestWeekly:
		return e.Day - 6, e.Day
	case DigestMonthly, DigestManagers:
		return e.Day - Day(e.Day.Time().Day()) + 1, e.Day //nolint:gosec // 1 to 31
	}
	return e.Day, e.Day
}
