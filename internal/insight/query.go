package insight

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Group is what sources are grouped by. A record belongs to one source of each group.
type Group string

// The groups.
const (
	// GroupNetwork is a sender; see docs/senders.md.
	GroupNetwork  Group = "network"
	GroupCountry  Group = "country"
	GroupAddress  Group = "address"
	GroupReporter Group = "reporter"
	// GroupSelector is a DKIM key. Of several signatures, one that passes and is aligned
	// counts first.
	GroupSelector Group = "selector"
	GroupFrom     Group = "header_from"
	GroupEnvelope Group = "envelope_from"
)

// Groups returns all groups, those first that tell most.
func Groups() []Group {
	return []Group{GroupNetwork, GroupCountry, GroupAddress, GroupSelector, GroupEnvelope, GroupFrom, GroupReporter}
}

// Query says which sources are asked for.
type Query struct {
	Group Group
	// Key is one source of the group, "" for all.
	Key string
	// Search is a part of a source's name, key or detail, in any case.
	Search string
	// Failing leaves out sources all of whose mail is compliant.
	Failing bool
	// Sort is name, messages, passing, spf, dkim, first or last, with "-" before it
	// for descending. Anything else is "-messages".
	Sort string
	// After is the Next of the page before, "" for the beginning; Limit how many at
	// most.
	After string
	Limit int
	// Trends asks for the trend of each source.
	Trends bool
	// Assess asks for the assessment of each source. The sources of some groups are not
	// senders: their class is unknown.
	Assess bool
	// Parts is how many sources of each other group Source tells at most, 0 for 20.
	Parts int
}

// errAfter is the error for a cursor that is not from a page before.
var errAfter = &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next of the page before."}

// formatCursor encodes a position in a list as an opaque cursor.
func formatCursor[T any](position T) string {
	text, _ := json.Marshal(position) //nolint:errchkjson // numbers and strings
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor[T any](cursor string) (T, error) {
	var position T
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &position) != nil {
		return position, errAfter
	}
	return position, nil
}

// matches reports whether a row is what the query searches for.
func (q Query) matches(r Row) bool {
	if q.Failing && r.Counts.NonCompliant == 0 {
		return false
	}
	if q.Search == "" {
		return true
	}
	search := strings.ToLower(q.Search)
	for _, text := range []string{r.Name, r.Key, r.Detail} {
		if strings.Contains(strings.ToLower(text), search) {
			return true
		}
	}
	return false
}
