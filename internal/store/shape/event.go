package shape

import (
	"time"

	"github.com/dmarcd/dmarcd"
)

// eventV1 is the data of an event besides its kind.
type eventV1 struct {
	V            int    `json:"v"`
	Before       string `json:"before,omitempty"`
	After        string `json:"after,omitempty"`
	Finding      string `json:"finding,omitempty"`
	Report       int64  `json:"report,omitempty"`
	Organization string `json:"organization,omitempty"`
	Webhook      int64  `json:"webhook,omitempty"`
	Reason       string `json:"reason,omitempty"`

	Level       string  `json:"level,omitempty"`
	Day         int32   `json:"day,omitempty"`
	Subject     string  `json:"subject,omitempty"`
	SubjectName string  `json:"subject_name,omitempty"`
	Class       string  `json:"class,omitempty"`
	Messages    int64   `json:"messages,omitempty"`
	Observed    float64 `json:"observed,omitempty"`
	Usual       float64 `json:"usual,omitempty"`
}

// EncodeEvent returns the document of an event.
func EncodeEvent(e dmarcd.EventData) string {
	return encode(eventV1{
		V: 1, Before: e.Before, After: e.After, Finding: e.Finding,
		Report: int64(e.Report), Organization: e.Organization, Webhook: int64(e.Webhook), Reason: e.Reason,
		Level: string(e.Level), Day: int32(e.Day), Subject: e.Subject, SubjectName: e.SubjectName, Class: string(e.SubjectClass),
		Messages: e.Messages, Observed: e.Observed, Usual: e.Usual,
	})
}

// DecodeEvent reads what EncodeEvent of this or an earlier version returned.
func DecodeEvent(document string) (dmarcd.EventData, error) {
	return decode[eventV1]("event", document)
}

func (s eventV1) value() dmarcd.EventData {
	return dmarcd.EventData{
		Before: s.Before, After: s.After, Finding: s.Finding,
		Report: dmarcd.ReportID(s.Report), Organization: s.Organization, Webhook: dmarcd.WebhookID(s.Webhook), Reason: s.Reason,
		Level: dmarcd.Level(s.Level), Day: dmarcd.Day(s.Day), Subject: s.Subject, SubjectName: s.SubjectName, SubjectClass: dmarcd.Class(s.Class),
		Measured: dmarcd.Measured{Messages: s.Messages, Observed: s.Observed, Usual: s.Usual},
	}
}

// mailDayV1 is the mail of a day. There are many: the names are short.
type mailDayV1 struct {
	V          int          `json:"v"`
	Messages   int64        `json:"m,omitempty"`
	Passes     int64        `json:"p,omitempty"`
	Unverified int64        `json:"u,omitempty"`
	Senders    []mailPartV1 `json:"senders,omitempty"`
	Selectors  []mailPartV1 `json:"selectors,omitempty"`
	Receivers  []mailPartV1 `json:"receivers,omitempty"`
}

type mailPartV1 struct {
	Key      string `json:"k"`
	Name     string `json:"n,omitempty"` // "" where it is the key
	Messages int64  `json:"m,omitempty"`
	Passes   int64  `json:"p,omitempty"`
	Class    string `json:"c,omitempty"`
}

// EncodeMailDay returns the document of a day's mail, without the day and the figures of
// TLS reports.
func EncodeMailDay(d dmarcd.MailDay) string {
	parts := func(parts []dmarcd.MailPart) []mailPartV1 {
		return convert(parts, func(p dmarcd.MailPart) mailPartV1 {
			part := mailPartV1{Key: p.Key, Name: p.Name, Messages: p.Messages, Passes: p.Passes, Class: string(p.Class)}
			if p.Name == p.Key {
				part.Name = ""
			}
			return part
		})
	}
	return encode(mailDayV1{
		V: 1, Messages: d.Messages, Passes: d.Passes, Unverified: d.Unverified,
		Senders: parts(d.Senders), Selectors: parts(d.Selectors), Receivers: parts(d.Receivers),
	})
}

// DecodeMailDay reads what EncodeMailDay of this or an earlier version returned.
func DecodeMailDay(document string) (dmarcd.MailDay, error) {
	return decode[mailDayV1]("mail of a day", document)
}

func (s mailDayV1) value() dmarcd.MailDay {
	parts := func(parts []mailPartV1) []dmarcd.MailPart {
		return convert(parts, func(p mailPartV1) dmarcd.MailPart {
			part := dmarcd.MailPart{Key: p.Key, Name: p.Name, Messages: p.Messages, Passes: p.Passes, Class: dmarcd.Class(p.Class)}
			if p.Name == "" {
				part.Name = p.Key
			}
			return part
		})
	}
	return dmarcd.MailDay{
		Messages: s.Messages, Passes: s.Passes, Unverified: s.Unverified,
		Senders: parts(s.Senders), Selectors: parts(s.Selectors), Receivers: parts(s.Receivers),
	}
}

// alertRulesV1 are the rules of a team. Times are in seconds.
type alertRulesV1 struct {
	V        int      `json:"v"`
	Kinds    []string `json:"kinds,omitempty"`
	Domains  []string `json:"domains,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	MinLevel string   `json:"min_level,omitempty"`
	Quiet    *quietV1 `json:"quiet,omitempty"`
	Group    int64    `json:"group,omitempty"`
	CoolDown int64    `json:"cool_down,omitempty"`
	Mutes    []muteV1 `json:"mutes,omitempty"`
}

type quietV1 struct {
	From int    `json:"from"` // minutes since midnight
	To   int    `json:"to"`
	Zone string `json:"zone"`
}

type muteV1 struct {
	Kind   string `json:"kind,omitempty"`
	Domain string `json:"domain,omitempty"`
	Until  int64  `json:"until,omitempty"`
}

// EncodeAlertRules returns the document of rules.
func EncodeAlertRules(r dmarcd.AlertRules) string {
	s := alertRulesV1{
		V: 1, Kinds: convert(r.Kinds, func(k dmarcd.EventKind) string { return string(k) }), Domains: r.Domains, Tags: r.Tags, MinLevel: string(r.MinLevel),
		Group: int64(r.Group / time.Second), CoolDown: int64(r.CoolDown / time.Second),
		Mutes: convert(r.Mutes, func(m dmarcd.Mute) muteV1 {
			mute := muteV1{Kind: string(m.Kind), Domain: m.Domain}
			if !m.Until.IsZero() {
				mute.Until = m.Until.Unix()
			}
			return mute
		}),
	}
	if r.Quiet != nil {
		s.Quiet = &quietV1{r.Quiet.From, r.Quiet.To, r.Quiet.Zone}
	}
	return encode(s)
}

// DecodeAlertRules reads what EncodeAlertRules of this or an earlier version returned.
func DecodeAlertRules(document string) (dmarcd.AlertRules, error) {
	return decode[alertRulesV1]("alert rules", document)
}

func (s alertRulesV1) value() dmarcd.AlertRules {
	r := dmarcd.AlertRules{
		Kinds: convert(s.Kinds, func(k string) dmarcd.EventKind { return dmarcd.EventKind(k) }), Domains: s.Domains, Tags: s.Tags, MinLevel: dmarcd.Level(s.MinLevel),
		Group: time.Duration(s.Group) * time.Second, CoolDown: time.Duration(s.CoolDown) * time.Second,
		Mutes: convert(s.Mutes, func(m muteV1) dmarcd.Mute {
			mute := dmarcd.Mute{Kind: dmarcd.EventKind(m.Kind), Domain: m.Domain}
			if m.Until != 0 {
				mute.Until = time.Unix(m.Until, 0).UTC()
			}
			return mute
		}),
	}
	if s.Quiet != nil {
		r.Quiet = &dmarcd.QuietHours{From: s.Quiet.From, To: s.Quiet.To, Zone: s.Quiet.Zone}
	}
	return r
}
