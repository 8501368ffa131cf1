package dmarcd

import (
	"fmt"
	"strconv"
	"strings"
)

// QuotaName names a limit on what a team may store.
type QuotaName string

// The quotas.
const (
	QuotaDomains    QuotaName = "domains"
	QuotaStored     QuotaName = "stored"     // bytes of reports, records and originals
	QuotaUnreadable QuotaName = "unreadable" // bytes of rejected content
	QuotaReports    QuotaName = "reports"    // new reports per day (UTC)
	QuotaMailboxes  QuotaName = "mailboxes"
)

// QuotaNames returns all quotas in display order.
func QuotaNames() []QuotaName {
	return []QuotaName{QuotaDomains, QuotaStored, QuotaUnreadable, QuotaReports, QuotaMailboxes}
}

// InBytes reports whether the quota is in bytes.
func (n QuotaName) InBytes() bool { return n == QuotaStored || n == QuotaUnreadable }

// Quota contains the limits of a team; 0 is unlimited.
type Quota map[QuotaName]int64

// Usage contains the amounts that a team uses.
type Usage map[QuotaName]int64

// Check returns a *QuotaError for the first of the named quotas that is used up.
func (q Quota) Check(u Usage, names ...QuotaName) error {
	for _, name := range names {
		if most := q[name]; most > 0 && u[name] >= most {
			return &QuotaError{Name: name, Max: most}
		}
	}
	return nil
}

// Fullest returns the quota of which the largest share is used, and that share; 1 is all. It is "" if
// nothing is limited.
func (q Quota) Fullest(u Usage) (fullest QuotaName, share float64) {
	for _, name := range QuotaNames() {
		if q[name] <= 0 {
			continue
		}
		if used := float64(u[name]) / float64(q[name]); fullest == "" || used > share {
			fullest, share = name, used
		}
	}
	return fullest, share
}

// QuotaError means that a quota of a team is used up. It is an ErrForbidden and an
// ErrLimit.
type QuotaError struct {
	Name QuotaName
	Max  int64
}

// Error says what happened and what to do.
func (e *QuotaError) Error() string {
	what := map[QuotaName]string{
		QuotaDomains:    "The team has reached its quota of domains (%s). Delete one",
		QuotaStored:     "The team has reached its storage quota (%s). Delete domains or reports",
		QuotaUnreadable: "The team has reached its storage quota for rejected reports (%s). Delete rejected reports",
		QuotaReports:    "The team has reached its daily quota of reports (%s). Send the rest tomorrow",
		QuotaMailboxes:  "The team has reached its quota of mailboxes (%s). Remove one",
	}[e.Name]
	return fmt.Sprintf(what, e.Name.Format(e.Max)) + ", or ask the operator to raise the quota."
}

// Is makes errors.Is(err, ErrForbidden) and errors.Is(err, ErrLimit) hold.
func (e *QuotaError) Is(target error) bool { return target == ErrForbidden || target == ErrLimit }

// Format formats an amount so that ParseQuota can parse it.
func (n QuotaName) Format(amount int64) string {
	if n.InBytes() {
		return FormatBytes(amount)
	}
	return strconv.FormatInt(amount, 10)
}

// QuotaDefault stands for the quota of the installation.
const QuotaDefault int64 = -1

// ParseQuota parses NAME=VALUE. The value is a number, with an optional unit KiB, MiB or
// GiB for bytes, "none" for 0, or "default" for QuotaDefault. It returns an InvalidError
// for anything else.
func ParseQuota(text string) (QuotaName, int64, error) {
	key, value, _ := strings.Cut(text, "=")
	for _, name := range QuotaNames() {
		if string(name) != key {
			continue
		}
		amount, ok := name.parse(strings.TrimSpace(value))
		if !ok {
			break
		}
		return name, amount, nil
	}
	return "", 0, &InvalidError{
		Field:   "quota",
		Message: "A quota has the form NAME=VALUE. NAME is domains, stored, unreadable, reports or mailboxes. VALUE is a whole number (for stored and unreadable also with KiB, MiB or GiB), none or default.",
	}
}

func (n QuotaName) parse(value string) (int64, bool) {
	switch value {
	case "none":
		return 0, true
	case "default":
		return QuotaDefault, true
	}
	if n.InBytes() {
		amount, ok := ParseBytes(value)
		return amount, ok && amount > 0
	}
	amount, err := strconv.ParseInt(value, 10, 64)
	return amount, err == nil && amount > 0 && amount <= mostBytes
}

// mostBytes is the largest number that ParseBytes accepts.
const mostBytes = 1 << 50

// byteUnits are the units for bytes, the largest first.
var byteUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// FormatBytes formats a number of bytes exactly, with the largest unit that divides it.
func FormatBytes(n int64) string {
	for _, unit := range byteUnits {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// ParseBytes parses a number of bytes from 0 to 2^50, with an optional unit KiB, MiB or GiB.
func ParseBytes(text string) (n int64, ok bool) {
	factor := int64(1)
	for _, unit := range byteUnits {
		if number, found := strings.CutSuffix(text, unit.name); found {
			text, factor = strings.TrimSpace(number), unit.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n * factor, err == nil && 0 <= n && n <= mostBytes/factor
}
