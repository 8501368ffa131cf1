package dmarcd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// AlertState is what became of an event by the rules of its team.
type AlertState string

// The states of an alert.
const (
	AlertSent       AlertState = "sent"       // to the webhooks that want it, maybe later
	AlertSuppressed AlertState = "suppressed" // to none
	AlertWaiting    AlertState = "waiting"    // until its group is sent
	AlertGrouped    AlertState = "grouped"    // with others, as one event
)

// Alert is an event with what the rules decided on it.
type Alert struct {
	Event Event
	Level Level
	Decision
	// First and Last are the days of what was detected; 0 for other events.
	First, Last Day
	// AcknowledgedAt is when a user took note of it, and AcknowledgedBy who; the zero value
	// is not yet.
	AcknowledgedAt time.Time
	AcknowledgedBy string
}

// Decision is whether and when an event is sent.
type Decision struct {
	State AlertState
	// Reason says why, in a sentence.
	Reason string
	// SendAt is when it is sent, or was.
	SendAt time.Time
}

// AlertFilter narrows a list of alerts; the zero value is all.
type AlertFilter struct {
	Domain string
	Kind   EventKind
	State  AlertState
	// Open leaves out acknowledged alerts, and digests, which ask for nothing.
	Open bool
}

// AlertRules decide which events of a team are sent to its webhooks, and when. The zero
// value sends all at once.
type AlertRules struct {
	// Kinds, Domains and Tags are the events that are sent: those of the domains, and those
	// of domains with one of the tags; nil is all. Events that are about no domain are sent
	// whatever the domains are.
	Kinds         []EventKind
	Domains, Tags []string
	// MinLevel is the least level that is sent: LevelError, LevelWarning or LevelInfo; "" is
	// the last.
	MinLevel Level
	// Quiet are hours in which nothing is sent; nil is none.
	Quiet *QuietHours
	// Group is how long events wait after one of the same kind was sent, to be sent
	// together, and CoolDown how long events of the same kind about the same domain and
	// subject are suppressed; 0 is not at all.
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

// levels are those that rules know, the least first.
var levels = []Level{LevelInfo, LevelWarning, LevelError}

// Validate returns an *InvalidError if the rules cannot be right. Domains must have the
// form that ParseName returns, and tags that of ParseTag.
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

// end returns when the quiet hours end in which t lies, and whether it does.
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

// RecentAlerts is what the decision on an event depends on.
type RecentAlerts struct {
	// Same is when the last event of the same kind about the same domain and subject was
	// sent, Kind the last of the same kind; the zero value is never.
	Same, Kind time.Time
	// Tags are those of the domain, if the rules have tags.
	Tags []string
}

// Decide returns whether and when an event is sent.
func (r AlertRules) Decide(e Event, now time.Time, recent RecentAlerts) Decision {
	if e.Kind == AlertTest {
		return Decision{AlertSent, "A user tested the alerts.", now}
	}
	// What grouped alerts stand for was let through already, and digests are for those who
	// ask for them.
	always := e.Kind == AlertsGrouped || e.Kind.IsDigest()
	if reason := r.suppresses(e, now, recent); reason != "" && !always {
		return Decision{AlertSuppressed, reason, now}
	}
	d := Decision{AlertSent, "It matches the rules.", now}
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

// suppresses returns why an event is not sent, "" if it is.
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

// scope says what a mute is about.
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

// clock writes a time for a sentence.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// AlertScan is the detection of the alerts of a team, in some of its domains.
type AlertScan struct {
	Today Day
	// DueAt is when the pass over the domains was due.
	DueAt time.Time
	// Began is when it began, After the last domain that was scanned.
	Began time.Time
	After DomainID
	// Full is true if all domains are scanned; otherwise those whose mail changed since Since.
	Full  bool
	Since time.Time
}

// DomainMail is the history of a domain's mail, as far as detections need it.
type DomainMail struct {
	ID   DomainID
	Days []MailDay
	// First is the first day of the senders of the newest days over all time, by their keys.
	First map[string]Day
	// Classes are those that the team gave senders.
	Classes map[string]Class
}
