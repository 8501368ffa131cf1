package insight

import (
	"fmt"
	"strconv"
)

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

// grouped writes a number with a comma between thousands.
func grouped(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
