package dmarcd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// AlertState says whether an alert reached the channels of the team. What channels have not
// accepted is never called delivered.
type AlertState string

// The states of an alert.
const (
	AlertPassed     AlertState = "passed"     // allowed by the rules: of a Decision only
	AlertSuppressed AlertState = "suppressed" // by the rules
	AlertWaiting    AlertState = "waiting"    // not attempted yet, or waits until its group is sent
	AlertGrouped    AlertState = "grouped"    // part of one event with others
	AlertRetrying   AlertState = "retrying"   // a channel failed, and is tried again
	AlertDelivered  AlertState = "delivered"  // to each channel that selects it
	AlertNotSent    AlertState = "not_sent"   // no channel selects it, or a channel failed for good
)

// NoChannel is the reason of an alert that was not sent because no channel selects it.
const NoChannel = "No channel selects it."

// Alert is an event with the decision of the team's rules, and what became of its deliveries.
type Alert struct {
	Event Event
	Level Level
	Decision
	// First and Last are the first and the last day of a detection; 0 for other events.
	First, Last Day
	// AcknowledgedAt is when a user acknowledged the alert, and AcknowledgedBy who did; zero if
	// none has.
	AcknowledgedAt time.Time
	AcknowledgedBy string
	// Open means that the alert needs someone: it is neither acknowledged nor resolved.
	Open bool
}

// AlertGroup are the open alerts of a kind about a domain.
type AlertGroup struct {
	// Domain is "" for alerts that are not about one.
	Domain string
	Kind   EventKind
	// Count is the number of alerts, and Last the number of the event of the newest one.
	Count int
	Last  int64
	// Alerts are the newest of them.
	Alerts []Alert
}

// Decision is whether and when an event is sent.
type Decision struct {
	State AlertState
	// Reason says why it has the state, in sentences.
	Reason string
	// SendAt is when it is sent, or was.
	SendAt time.Time
}

// AlertFilter narrows a list of alerts; the zero value is all.
type AlertFilter struct {
	Domain string
	// NoDomain selects alerts that are not about a domain.
	NoDomain bool
	Kind     EventKind
	State    AlertState
	// Days are those of the events.
	Days Days
	// Open selects alerts that need someone; see Alert.
	Open bool
	// Through leaves out events with higher numbers; 0 leaves out none.
	Through int64
}

// AlertRules decide which events of a team are sent to its webhooks, and when. The zero
// value sends all at once.
type AlertRules struct {
	// Kinds, Domains and Tags select the events that are sent; nil selects all. A domain is selected
	// by its name or by one of its tags. Domains and Tags do not apply to events without a domain.
	Kinds         []EventKind
	Domains, Tags []string
	// MinLevel is the lowest level that is sent: LevelError, LevelWarning or LevelInfo, which is the
	// default.
	MinLevel Level
	// Quiet is when nothing is sent; nil if alerts are sent at any time.
	Quiet *QuietHours
	// Group delays further events of a kind after one was sent, so that they are sent together.
	// CoolDown suppresses further events of a kind about the same domain and subject. 0 turns
	// either off.
	Group, CoolDown time.Duration
	Mutes           []Mute
}

// QuietHours are hours of each day in which alerts wait.
type QuietHours struct {
	// From and To are minutes since midnight. Where From is after To they span midnight.
	From, To int
	// Zone is the name of a time zone, such as Europe/Berlin.
	Zone string
}

// Mute suppresses events.
type Mute struct {
	// Kind and Domain are what is muted; "" is any.
	Kind   EventKind
	Domain string
	// Until is when the mute ends; the zero value is never.
	Until time.Time
}

// Bounds of rules.
const (
	MaxMutes     = 200
	MaxAlertWait = 7 * 24 * time.Hour
)

// levels are the levels that rules accept, the lowest first.
var levels = []Level{LevelInfo, LevelWarning, LevelError}

// Validate returns an *InvalidError if the rules are invalid. Domains must be normalized by
// ParseName, tags by ParseTag.
func (r AlertRules) Validate() error {
	for _, kind := range r.Kinds {
		if err := kind.Validate("kinds"); err != nil {
			return err
		}
	}
	switch {
	case r.Kinds != nil && len(r.Kinds) == 0 || r.Domains != nil && len(r.Domains) == 0 || r.Tags != nil && len(r.Tags) == 0:
		return &InvalidError{Field: "kinds", Message: "An empty list would match no event. Use null for all kinds, domains or tags."}
	case r.MinLevel != "" && !slices.Contains(levels, r.MinLevel):
		return &InvalidError{Field: "min_level", Message: "The minimum level must be info, warning or error."}
	case r.Group < 0 || r.Group > MaxAlertWait:
		return &InvalidError{Field: "group_minutes", Message: "Alerts can be grouped for at most 7 days."}
	case r.CoolDown < 0 || r.CoolDown > MaxAlertWait:
		return &InvalidError{Field: "cool_down_minutes", Message: "The cool-down can last at most 7 days."}
	case len(r.Mutes) > MaxMutes:
		return &InvalidError{Field: "mutes", Message: fmt.Sprintf("There can be at most %d mutes.", MaxMutes)}
	}
	for _, m := range r.Mutes {
		if m.Kind == "" && m.Domain == "" {
			return &InvalidError{Field: "mutes", Message: "A mute must name a kind, a domain, or both."}
		}
		if m.Kind != "" {
			if err := m.Kind.Validate("mutes"); err != nil {
				return err
			}
		}
	}
	if r.Quiet == nil {
		return nil
	}
	return r.Quiet.validate()
}

const minutesPerDay = 24 * 60

func (q QuietHours) validate() error {
	if q.From < 0 || q.From >= minutesPerDay || q.To < 0 || q.To >= minutesPerDay || q.From == q.To {
		return &InvalidError{Field: "quiet_hours", Message: "Quiet hours need two different times, such as 22:00 and 07:00."}
	}
	if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "" || q.Zone == "Local" {
		return &InvalidError{Field: "quiet_hours", Message: "There is no time zone " + strconv.Quote(q.Zone) + ". Use a name such as Europe/Berlin or UTC."}
	}
	return nil
}

// end reports whether t is within the quiet hours, and returns when these end.
func (q QuietHours) end(t time.Time) (end time.Time, quiet bool) {
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		return t, false // the zone was known once
	}
	local := t.In(zone)
	now := local.Hour()*60 + local.Minute()
	year, month, day := local.Date()
	switch {
	case q.From < q.To && (now < q.From || now >= q.To), q.From > q.To && now < q.From && now >= q.To:
		return t, false
	case q.From > q.To && now >= q.From:
		day++
	}
	return time.Date(year, month, day, 0, q.To, 0, 0, zone).UTC(), true
}

// RecentAlerts is the history that Decide needs.
type RecentAlerts struct {
	// Kind is when the last event of the same kind was sent, Same the last one about the same domain
	// and subject; zero for never.
	Same, Kind time.Time
	// Tags are the tags of the domain. They are needed only if the rules select by tag.
	Tags []string
}

// Decide returns whether and when an event is sent.
func (r AlertRules) Decide(e Event, now time.Time, recent RecentAlerts) Decision {
	if e.Kind == AlertTest {
		return Decision{AlertPassed, "A user tested the alerts.", now}
	}
	// The members of a group have passed the rules already, and digests go only to webhooks that
	// select them.
	always := e.Kind == AlertsGrouped || e.Kind.IsDigest()
	if reason := r.suppresses(e, now, recent); reason != "" && !always {
		return Decision{AlertSuppressed, reason, now}
	}
	d := Decision{AlertPassed, "It matches the rules.", now}
	if e.Kind.IsDigest() {
		d.Reason = "The rules do not apply to digests."
	}
	if until := recent.Kind.Add(r.Group); r.Group > 0 && !recent.Kind.IsZero() && until.After(now) && !always {
		d = Decision{AlertWaiting, fmt.Sprintf("Another alert of this kind was sent at %s; later ones are sent together.", clock(recent.Kind)), until}
	}
	if r.Quiet != nil {
		if end, quiet := r.Quiet.end(d.SendAt); quiet {
			d.SendAt = end
			d.Reason += fmt.Sprintf(" Quiet hours end at %s.", clock(end))
		}
	}
	return d
}

// suppresses returns the reason to suppress an event, "" to send it.
func (r AlertRules) suppresses(e Event, now time.Time, recent RecentAlerts) string {
	least := cmp.Or(r.MinLevel, LevelInfo)
	for _, m := range r.Mutes {
		if (m.Kind == "" || m.Kind == e.Kind) && (m.Domain == "" || m.Domain == e.Domain) && (m.Until.IsZero() || m.Until.After(now)) {
			return "Suppressed: muted" + m.scope() + "."
		}
	}
	switch {
	case r.Kinds != nil && !slices.Contains(r.Kinds, e.Kind):
		return "Suppressed: the rules do not include events of this kind."
	case !r.includes(e.Domain, recent.Tags):
		return "Suppressed: the rules do not include this domain."
	case slices.Index(levels, e.Level()) < slices.Index(levels, least):
		return fmt.Sprintf("Suppressed: its level %s is below %s.", e.Level(), least)
	case r.CoolDown > 0 && !recent.Same.IsZero() && now.Before(recent.Same.Add(r.CoolDown)):
		return fmt.Sprintf("Suppressed: the same alert was sent at %s, and the cool-down lasts until %s.", clock(recent.Same), clock(recent.Same.Add(r.CoolDown)))
	}
	return ""
}

// includes reports whether events of a domain with some tags are sent.
func (r AlertRules) includes(domain string, tags []string) bool {
	return domain == "" || r.Domains == nil && r.Tags == nil || slices.Contains(r.Domains, domain) ||
		slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(r.Tags, tag) })
}

// scope returns what the mute applies to, for a sentence.
func (m Mute) scope() string {
	text := ""
	if m.Kind != "" {
		text += " for " + string(m.Kind)
	}
	if m.Domain != "" {
		text += " for " + m.Domain
	}
	if !m.Until.IsZero() {
		text += " until " + clock(m.Until)
	}
	return text
}

// clock formats a time for a sentence.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
