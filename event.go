package dmarcd

import "time"

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	RecordAppeared  EventKind = "record.appeared"
	RecordChanged   EventKind = "record.changed"
	RecordVanished  EventKind = "record.vanished"
	PolicyLoosened  EventKind = "policy.loosened"
	PolicyTightened EventKind = "policy.tightened"
	FindingAppeared EventKind = "finding.appeared"
	FindingMended   EventKind = "finding.mended"
	ChecksSuspended EventKind = "checks.suspended"
	HeldReport      EventKind = "report.held" // a report that is not counted until an editor releases it
)

// EventKinds returns all kinds.
func EventKinds() []EventKind {
	return []EventKind{
		RecordAppeared, RecordChanged, RecordVanished, PolicyLoosened, PolicyTightened, FindingAppeared, FindingMended,
		ChecksSuspended, HeldReport,
	}
}

// Event is something worth telling about a domain.
type Event struct {
	ID     EventID
	At     time.Time
	Domain string
	Kind   EventKind
	// Before and After are the record, the policy or the finding concerned; ""
	// where there was or is none. After of ChecksSuspended is the reason, and that of
	// HeldReport names the report with the reason.
	Before, After string
}

// RecordEvents returns what happened between two conclusive checks of a domain,
// without the names and times.
func RecordEvents(before, after Domain) []Event {
	var events []Event
	if before.Record != after.Record {
		kind := RecordChanged
		switch {
		case before.Record == "":
			kind = RecordAppeared
		case after.Record == "":
			kind = RecordVanished
		}
		events = append(events, Event{Kind: kind, Before: before.Record, After: after.Record})
	}
	if was, is := strictness(before.Policy), strictness(after.Policy); was != is {
		kind := PolicyTightened
		if is < was {
			kind = PolicyLoosened
		}
		events = append(events, Event{Kind: kind, Before: before.Policy, After: after.Policy})
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
