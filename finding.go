package dmarcd

import (
	"strings"
	"unicode/utf8"
)

// Level is the severity of a finding.
type Level string

// The levels, the most severe first.
const (
	// LevelError causes harm now: mail is lost, or attackers can spoof the domain against
	// the owner's intent.
	LevelError Level = "error"
	// LevelWarning will cause harm, or wastes protection that the domain could have.
	LevelWarning Level = "warning"
	// LevelInfo is advice.
	LevelInfo Level = "info"
	// LevelGood is correct.
	LevelGood Level = "good"
)

// Finding is one result of a check of a domain, with the names of its stored document.
type Finding struct {
	// ID is the stable type of the finding, such as spf.too_many_lookups.
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// What describes the finding, with the names and numbers.
	What string `json:"what,omitzero"`
	// Why explains why it matters.
	Why string `json:"why,omitzero"`
	// Fix explains how to fix it, "" if there is nothing to fix. It ends with a colon if
	// Record follows.
	Fix string `json:"fix,omitzero"`
	// Record is the exact record to publish, zero for none.
	Record DNSRecord `json:"record,omitzero"`
	// Host is the mail server whose certificate the finding is about, "" for other findings.
	Host string `json:"host,omitzero"`
	// RFC is the specification and its section.
	RFC string `json:"rfc,omitzero"`
	// Points is the number of points it adds to the grade.
	Points int `json:"points,omitzero"`
}

// GradeStep is a grade and the most points that it allows.
type GradeStep struct {
	Grade  string
	Points int
}

// WorstGrade is the grade for more points than Grades allow.
const WorstGrade = "F"

// Grades returns the scale of grades, the best first.
func Grades() []GradeStep {
	return []GradeStep{{"A+", 0}, {"A", 10}, {"B", 20}, {"C", 40}, {"D", 60}, {"E", 84}}
}

// GradeOf returns the grade for a number of points.
func GradeOf(points int) string {
	for _, step := range Grades() {
		if points <= step.Points {
			return step.Grade
		}
	}
	return WorstGrade
}

// FullFix returns Fix and Record as one text.
func (f Finding) FullFix() string { return strings.TrimSpace(f.Fix + " " + f.Record.String()) }

// DNSRecord is a record to publish.
type DNSRecord struct {
	// Name is without the final dot, Type is TXT or MX.
	Name string `json:"name"`
	Type string `json:"type"`
	// Data is the text of a TXT record; for other types, the data in zone file syntax.
	Data string `json:"data"`
}

// maxString is the maximum length of a character-string in DNS (RFC 1035 §3.3), in bytes.
const maxString = 255

// escapes escapes a string for zone file syntax.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// String returns the record in zone file syntax, "" for none.
func (r DNSRecord) String() string {
	switch {
	case r == (DNSRecord{}):
		return ""
	case r.Type != "TXT":
		return r.Name + ". " + r.Type + " " + r.Data
	}
	return r.Name + `. TXT "` + strings.Join(EscapedStrings(r.Data), `" "`) + `"`
}

// EscapedStrings returns the strings of a TXT record with a text, escaped for zone file syntax. The
// text is split between characters into strings of at most 255 bytes.
func EscapedStrings(text string) []string {
	var all []string
	for first := true; first || text != ""; first = false {
		end := len(text)
		if end > maxString {
			for end = maxString; end > maxString-utf8.UTFMax && !utf8.RuneStart(text[end]); {
				end--
			}
		}
		all = append(all, escapes.Replace(text[:end]))
		text = text[end:]
	}
	return all
}
