package dmarcd

import (
	"fmt"
	"strconv"
	"strings"
)

// Identifiers are random positive numbers: a sequence would tell one team how
// much the others do. Outside the process they are strings with a prefix that
// says what they name.
type (
	// TeamID names a team, outside the process as "team_…".
	TeamID int64
	// TokenID names a token, outside the process as "tok_…".
	TokenID int64
	// DomainID names a domain of one team, outside the process as "dom_…".
	DomainID int64
	// CheckID names a check that was kept, outside the process as "chk_…".
	CheckID int64
	// EventID names an event, outside the process as "evt_…".
	EventID int64
)

const (
	teamPrefix   = "team_"
	tokenPrefix  = "tok_"
	domainPrefix = "dom_"
	checkPrefix  = "chk_"
	eventPrefix  = "evt_"
)

// String returns the form used outside the process.
func (id TeamID) String() string { return formatID(teamPrefix, int64(id)) }

// String returns the form used outside the process.
func (id TokenID) String() string { return formatID(tokenPrefix, int64(id)) }

// String returns the form used outside the process.
func (id DomainID) String() string { return formatID(domainPrefix, int64(id)) }

// String returns the form used outside the process.
func (id CheckID) String() string { return formatID(checkPrefix, int64(id)) }

// String returns the form used outside the process.
func (id EventID) String() string { return formatID(eventPrefix, int64(id)) }

// ParseTokenID reads what TokenID.String wrote; anything else is an
// InvalidError.
func ParseTokenID(s string) (TokenID, error) {
	digits, ok := strings.CutPrefix(s, tokenPrefix)
	n, err := strconv.ParseInt(digits, 36, 64)
	if !ok || err != nil || n <= 0 || formatID(tokenPrefix, n) != s {
		return 0, &InvalidError{Field: "id", Message: fmt.Sprintf("A token's id looks like %q; `dmarcd token list` shows them.", TokenID(78568))}
	}
	return TokenID(n), nil
}

func formatID(prefix string, id int64) string {
	return prefix + strconv.FormatInt(id, 36)
}
