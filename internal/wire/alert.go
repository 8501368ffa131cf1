package wire

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Alert is an event with what the rules decided.
type Alert struct {
	Seq            int64   `json:"seq"`
	Level          string  `json:"level"`
	State          string  `json:"state"`
	Reason         string  `json:"reason"`
	SendAt         string  `json:"send_at"`
	FirstDay       *string `json:"first_day"`
	LastDay        *string `json:"last_day"`
	AcknowledgedAt *string `json:"acknowledged_at"`
	AcknowledgedBy *string `json:"acknowledged_by"`
	Open           bool    `json:"open"`
	Event          Event   `json:"event"`
}

// NewAlert returns the shape of an alert; baseURL is as for NewEvent.
func NewAlert(a dmarcd.Alert, baseURL string) Alert {
	shape := Alert{
		Seq: a.Event.Seq, Level: string(a.Level), State: string(a.State), Reason: a.Reason, SendAt: Time(a.SendAt),
		AcknowledgedAt: optionalTime(a.AcknowledgedAt), AcknowledgedBy: optionalText(a.AcknowledgedBy),
		Open: a.Open, Event: NewEvent(a.Event, baseURL),
	}
	if a.First != 0 {
		shape.FirstDay, shape.LastDay = optionalText(a.First.String()), optionalText(a.Last.String())
	}
	return shape
}

// Acknowledged is the number of alerts that a request acknowledged.
type Acknowledged struct {
	Acknowledged int64 `json:"acknowledged"`
}

// AlertRules are the rules of a team.
type AlertRules struct {
	Kinds           []string    `json:"kinds"`   // null for all
	Domains         []string    `json:"domains"` // null for all
	Tags            []string    `json:"tags"`    // null for all
	MinLevel        string      `json:"min_level"`
	QuietHours      *QuietHours `json:"quiet_hours"`
	GroupMinutes    int         `json:"group_minutes"`
	CoolDownMinutes int         `json:"cool_down_minutes"`
	Mutes           []Mute      `json:"mutes"`
}

// QuietHours are the hours without alerts; From and To are written as 22:00.
type QuietHours struct {
	From     string `json:"from"`
	To       string `json:"to"`
	TimeZone string `json:"time_zone"`
}

// Mute suppresses events.
type Mute struct {
	Kind   *string `json:"kind"`
	Domain *string `json:"domain"`
	Until  *string `json:"until"`
}

// NewAlertRules returns the shape of rules.
func NewAlertRules(r dmarcd.AlertRules) AlertRules {
	shape := AlertRules{
		Domains: r.Domains, Tags: r.Tags, MinLevel: string(r.MinLevel), GroupMinutes: int(r.Group / time.Minute), CoolDownMinutes: int(r.CoolDown / time.Minute), Mutes: []Mute{},
	}
	for _, kind := range r.Kinds {
		shape.Kinds = append(shape.Kinds, string(kind))
	}
	shape.MinLevel = cmp.Or(shape.MinLevel, string(dmarcd.LevelInfo))
	if q := r.Quiet; q != nil {
		shape.QuietHours = &QuietHours{From: formatMinutes(q.From), To: formatMinutes(q.To), TimeZone: q.Zone}
	}
	for _, m := range r.Mutes {
		shape.Mutes = append(shape.Mutes, Mute{Kind: optionalText(string(m.Kind)), Domain: optionalText(m.Domain), Until: optionalTime(m.Until)})
	}
	return shape
}

// Rules converts the shape to rules. An invalid time is an *dmarcd.InvalidError.
func (s AlertRules) Rules() (dmarcd.AlertRules, error) {
	r := dmarcd.AlertRules{
		Domains: s.Domains, Tags: s.Tags, MinLevel: dmarcd.Level(s.MinLevel),
		Group: time.Duration(s.GroupMinutes) * time.Minute, CoolDown: time.Duration(s.CoolDownMinutes) * time.Minute,
	}
	if s.Kinds != nil {
		r.Kinds = []dmarcd.EventKind{}
	}
	for _, kind := range s.Kinds {
		r.Kinds = append(r.Kinds, dmarcd.EventKind(kind))
	}
	if q := s.QuietHours; q != nil {
		from, err := ParseMinutes(q.From)
		if err != nil {
			return r, err
		}
		to, err := ParseMinutes(q.To)
		if err != nil {
			return r, err
		}
		r.Quiet = &dmarcd.QuietHours{From: from, To: to, Zone: q.TimeZone}
	}
	for _, m := range s.Mutes {
		mute := dmarcd.Mute{}
		if m.Kind != nil {
			mute.Kind = dmarcd.EventKind(*m.Kind)
		}
		if m.Domain != nil {
			mute.Domain = *m.Domain
		}
		if m.Until != nil {
			until, err := time.Parse(time.RFC3339, *m.Until)
			if err != nil {
				return r, &dmarcd.InvalidError{Field: "mutes", Message: "The end of a mute must be a time such as 2026-11-17T10:00:00+00:00, or null for none."}
			}
			mute.Until = until.UTC().Truncate(time.Second)
		}
		r.Mutes = append(r.Mutes, mute)
	}
	return r, nil
}

// formatMinutes writes minutes since midnight as 22:00.
func formatMinutes(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// ParseMinutes reads a time of day such as 22:00.
func ParseMinutes(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, &dmarcd.InvalidError{Field: "quiet_hours", Message: "Quiet hours need times such as 22:00 and 07:00."}
	}
	return t.Hour()*60 + t.Minute(), nil
}
