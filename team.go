package dmarcd

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DefaultTeam is the name of the team that the first start makes.
const DefaultTeam = "default"

// maxTeamName is the length limit of a team's name, in characters.
const maxTeamName = 100

// Team is a tenant. It owns domains, tokens and everything learned about them.
type Team struct {
	ID   TeamID
	Name string
	// API tells whether the team is on the API whitelist.
	API       bool
	CreatedAt time.Time
}

// ParseTeamName returns the name without blanks around it, or an InvalidError
// if it is empty, over 100 characters, or holds what cannot be printed.
func ParseTeamName(s string) (string, error) {
	name := strings.TrimSpace(s)
	if name == "" || utf8.RuneCountInString(name) > maxTeamName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", &InvalidError{Field: "name", Message: "The name of a team must have 1 to 100 printable characters."}
	}
	return name, nil
}
