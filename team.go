package dmarcd

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DefaultTeam is the name of the team created at the first start.
const DefaultTeam = "default"

// maxTeamName is in characters.
const maxTeamName = 100

// Team is a tenant. It owns domains, tokens and all their data.
type Team struct {
	ID   TeamID
	Name string
	// API is true if the team may use the API.
	API       bool
	CreatedAt time.Time
}

// ParseTeamName trims the name. It returns an InvalidError if the name is empty, longer
// than 100 characters or not printable.
func ParseTeamName(s string) (string, error) {
	name := strings.TrimSpace(s)
	if name == "" || utf8.RuneCountInString(name) > maxTeamName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", &InvalidError{Field: "name", Message: "The name of a team must have 1 to 100 printable characters."}
	}
	return name, nil
}
