package dmarcd

import (
	"fmt"
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
	FindingAppeared    EventKind = "finding.appeared"
	FindingResolved    EventKind = "finding.resolved"
	ChecksSuspended    EventKind = "checks.suspended"
	HeldReport         EventKind = "report.held" // a report that is not counted until an editor releases it
	WebhookDisabled    EventKind = "webhook.disabled"
	WebhookTest        EventKind = "webhook.test" // a user asked for it, and one webhook gets it
)

// EventKinds returns all kinds.
func EventKinds() []EventKind {
	return []EventKind{
		RecordAppeared, RecordChanged, RecordRemoved, PolicyWeakened, PolicyStrengthened, FindingAppeared, FindingResolved,
		ChecksSuspended, HeldReport, WebhookDisabled, WebhookTest,
	}
}

// Event is something that happened to a domain or to a team.
type Event struct {
	// Seq numbers the events of a team in the order in which they were committed.
	Seq int64
	ID  EventID
	At  time.Time
	// Domain is the name of the domain, "" where the event is about none.
	Domain string
	Kind   EventKind
	EventData
}

// EventData is what an event says beside its kind. Fields that do not apply to the kind
// are empty.
type EventData struct {
	// Before and After are the record, the policy, or the text of the finding; "" where
	// there was or is none.
	Before, After string
	// Finding is the id of the finding.
	Finding string
	// Report is the held report, and Organization its reporter.
	Report       ReportID
	Organization string
	// Webhook is the webhook that was disabled or tested.
	Webhook WebhookID
	// Reason is why checks are suspended, a report is held or a webhook is disabled.
	Reason string
}

// Summary returns the event as one plain sentence.
func (e Event) Summary() string {
	switch e.Kind {
	case RecordAppeared:
		return e.Domain + " now has a DMARC record."
	case RecordChanged:
		return "The DMARC record of " + e.Domain + " changed."
	case RecordRemoved:
		return e.Domain + " no longer has a DMARC record."
	case PolicyWeakened:
		return fmt.Sprintf("The DMARC policy of %s was weakened from %s to %s.", e.Domain, policyName(e.Before), policyName(e.After))
	case PolicyStrengthened:
		return fmt.Sprintf("The DMARC policy of %s was strengthened from %s to %s.", e.Domain, policyName(e.Before), policyName(e.After))
	case FindingAppeared:
		return fmt.Sprintf("New problem with %s: %s", e.Domain, e.After)
	case FindingResolved:
		return fmt.Sprintf("Resolved for %s: %s", e.Domain, e.Before)
	case ChecksSuspended:
		return fmt.Sprintf("%s is no longer checked on schedule: %s", e.Domain, e.Reason)
	case HeldReport:
		return fmt.Sprintf("A report by %s about %s is not counted until an editor releases it. %s", e.Organization, e.Domain, e.Reason)
	case WebhookDisabled:
		return fmt.Sprintf("Webhook %s was disabled: %s", e.Webhook, e.Reason)
	case WebhookTest:
		return fmt.Sprintf("This is a test of webhook %s.", e.Webhook)
	}
	return string(e.Kind)
}

// policyName returns the name of a policy for a sentence.
func policyName(policy string) string {
	if policy == "" {
		return "no policy"
	}
	return policy
}

// RecordEvents returns what happened between two conclusive checks of a domain,
// without the names and times.
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
	return events
}

// strictness orders policies; none and no policy ask receivers for the same.
func strictness(policy string) int {
	switch policy {
	case "quarantine":
		return 1
	case "reject":
		return 2
	}
	return 0
}
