package dnscheck_test

import (
	"regexp"
	"strconv"
	"strings"
)

// naiveRecord is a DMARC record as a set of tags. It is read by expressions and
// maps alone and shares nothing with package dmarc.
type naiveRecord struct {
	text  string
	tags  map[string]string // first values, by names in lower case
	first string            // the name of the first tag after the version
	twice bool              // whether a tag is repeated
	bare  bool              // whether no semicolon follows the version
}

var (
	naiveVersion = regexp.MustCompile(`^[vV][ \t]*=[ \t]*DMARC1[ \t]*(;|$)`)
	naiveTag     = regexp.MustCompile(`^[ \t]*([A-Za-z]+)[ \t]*=[ \t]*([^;]*?)[ \t]*$`)
	naivePercent = regexp.MustCompile(`^[0-9]+$`)
	naiveURI     = regexp.MustCompile(`(?i)^[ \t]*(mailto:[a-z0-9%._-]+@[a-z0-9.-]+|https://[a-z0-9./-]+)(![0-9]+[kmgt]?)?[ \t]*$`)
)

// readNaively parses a text that passes the version check. A tag without a value counts as
// present and invalid.
func readNaively(text string) (naiveRecord, bool) {
	if !naiveVersion.MatchString(text) {
		return naiveRecord{}, false
	}
	r := naiveRecord{text: text, tags: map[string]string{}, bare: !strings.Contains(text, ";")}
	for i, element := range strings.Split(text, ";") {
		match := naiveTag.FindStringSubmatch(element)
		if i == 0 || match == nil {
			continue // the version, or an element that receivers ignore
		}
		name := strings.ToLower(match[1])
		if r.first == "" {
			r.first = name
		}
		if _, there := r.tags[name]; there || name == "v" {
			r.twice = true // the first value stays as the best guess
			continue
		}
		r.tags[name] = match[2]
	}
	return r, true
}

// readAllNaively returns the texts that are records.
func readAllNaively(texts []string) []naiveRecord {
	var records []naiveRecord
	for _, text := range texts {
		if r, ok := readNaively(text); ok {
			records = append(records, r)
		}
	}
	return records
}

// word returns the value of a tag in lower case if it is one of the words, else "".
func (r naiveRecord) word(tag string, words ...string) string {
	for _, word := range words {
		if strings.ToLower(r.tags[tag]) == word {
			return word
		}
	}
	return ""
}

// policy returns the value of p, sp or np, "" where it is missing or not valid.
func (r naiveRecord) policy(tag string) string { return r.word(tag, "none", "quarantine", "reject") }

// psd returns y or n, "" for anything else.
func (r naiveRecord) psd() string { return r.word("psd", "y", "n") }

// states reports whether a tag is there, valid or not.
func (r naiveRecord) states(tag string) bool {
	_, there := r.tags[tag]
	return there
}

// reportsSomewhere reports whether rua has an entry that is a URI.
func (r naiveRecord) reportsSomewhere() bool {
	for _, entry := range strings.Split(r.tags["rua"], ",") {
		if naiveURI.MatchString(entry) {
			return true
		}
	}
	return false
}

// treatment is how receivers treat a record.
type treatment uint8

const (
	actOnIt treatment = iota
	actAsNone
	doNothing
)

// treatment applies RFC 9989 §4.10.1, and RFC 6376 §3.2 to repeated tags.
func (r naiveRecord) treatment() treatment {
	broken := r.policy("p") == "" ||
		r.states("sp") && r.policy("sp") == "" ||
		r.states("np") && r.policy("np") == ""
	return r.afterAll(broken)
}

// legacyTreatment applies RFC 7489 §6.6.3 step 6. RFC 7489 knows no np, and p must be
// the first tag after the version.
func (r naiveRecord) legacyTreatment() treatment {
	broken := r.first != "p" || r.policy("p") == "" || r.states("sp") && r.policy("sp") == ""
	return r.afterAll(broken)
}

func (r naiveRecord) afterAll(broken bool) treatment {
	switch {
	case r.twice:
		return doNothing
	case !broken:
		return actOnIt
	case r.reportsSomewhere():
		return actAsNone
	default:
		return doNothing
	}
}

// percent returns pct, 100 where it is missing or not valid.
func (r naiveRecord) percent() int {
	if value := r.tags["pct"]; naivePercent.MatchString(value) {
		if n, err := strconv.Atoi(value); err == nil && n <= 100 {
			return n
		}
	}
	return 100
}
