package dmarc

import (
	"slices"
	"strings"
)

// Edit returns the text of the record with some tags changed, in a form that receivers of
// both RFC 7489 and RFC 9989 can parse: p follows the version. A tag with an empty value
// is removed; a new tag is appended. All others, including unknown ones, are unchanged; of
// a duplicate tag the first remains.
func (r Record) Edit(changes ...Tag) string {
	tags := make([]Tag, 0, len(r.Tags)+len(changes))
	set := func(tag Tag) {
		at := slices.IndexFunc(tags, func(t Tag) bool { return strings.EqualFold(t.Name, tag.Name) })
		switch {
		case at < 0:
			tags = append(tags, tag)
		default:
			tags[at].Value = tag.Value
		}
	}
	for _, tag := range r.Tags {
		tag.Name = strings.ToLower(tag.Name)
		if !slices.ContainsFunc(tags, func(t Tag) bool { return strings.EqualFold(t.Name, tag.Name) }) {
			tags = append(tags, tag)
		}
	}
	for _, tag := range changes {
		set(tag)
	}
	var b strings.Builder
	b.WriteString(tagV + "=" + version)
	write := func(tag Tag) {
		if tag.Value != "" {
			b.WriteString("; " + tag.Name + "=" + tag.Value)
		}
	}
	for _, tag := range tags {
		if strings.EqualFold(tag.Name, tagP) {
			write(tag)
		}
	}
	for _, tag := range tags {
		if !strings.EqualFold(tag.Name, tagP) {
			write(tag)
		}
	}
	return b.String()
}

// Locked returns the text of the record with the policy reject for all names and all
// messages.
func (r Record) Locked() string {
	return r.Edit(Tag{tagP, Reject.String()}, Tag{Name: tagSP}, Tag{Name: tagNP}, Tag{Name: tagT}, Tag{Name: "pct"})
}

// Tightened returns the text of the record with the next stricter policy for all names and
// all messages: the same where it applies to a part of the messages, else quarantine or,
// where that applies already, reject. t, pct and weaker policies for subdomains are removed.
func (r Record) Tightened() string {
	policy := Quarantine
	switch {
	case r.Percent() < everything && r.P >= Quarantine:
		policy = r.P
	case r.Applied(r.P) >= Quarantine:
		policy = Reject
	}
	stricter := func(p Policy) string {
		if p > policy {
			return p.String()
		}
		return ""
	}
	return r.Edit(Tag{tagP, policy.String()}, Tag{tagSP, stricter(r.SP)}, Tag{tagNP, stricter(r.NP)}, Tag{tagT, ""}, Tag{"pct", ""})
}
