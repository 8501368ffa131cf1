package insight

import (
	"strings"

	"github.com/dmarcd/dmarcd"
)

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e" // addresses
	}
	return dmarcd.FormatNumber(n) + " " + thing + "s"
}
