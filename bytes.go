package dmarcd

import (
	"fmt"
	"strconv"
	"strings"
)

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
