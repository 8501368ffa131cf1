package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// The size of a sparkline, in units of its own picture.
const (
	sparkWidth  = 96
	sparkHeight = 20
)

// Sparkline is a small line that shows how an amount moved. It is drawn on the
// server and needs no script.
type Sparkline struct {
	// Line and Area are the points of a polyline and of the area below it.
	Line, Area    string
	Width, Height int
	// Text says the same in words.
	Text string
}

// maxSparkDays is how many days a line can show one by one.
const maxSparkDays = sparkWidth

// NewSparkline draws the amounts of days in their order, by week where they are
// many. Fewer than two are no line, and so are days on which nothing was.
func NewSparkline(series []int64) Sparkline {
	s := Sparkline{Width: sparkWidth, Height: sparkHeight}
	if len(series) < 2 || slices.Max(series) == 0 {
		return s
	}
	unit := "a day"
	if len(series) > maxSparkDays {
		series, unit = weekly(series), "a week"
	}
	least, most := slices.Min(series), slices.Max(series)
	s.Text = fmt.Sprintf("from %s to %s, at least %s, at most %s %s",
		dmarcd.FormatNumber(series[0]), dmarcd.FormatNumber(series[len(series)-1]), dmarcd.FormatNumber(least), dmarcd.FormatNumber(most), unit)
	points := make([]string, len(series))
	for i, n := range series {
		x := float64(i) * sparkWidth / float64(len(series)-1)
		// Nothing lies on the ground, which is drawn inside.
		y := sparkHeight - 1.0 - float64(n)/float64(most)*(sparkHeight-2)
		points[i] = coordinate(x) + "," + coordinate(y)
	}
	s.Line = strings.Join(points, " ")
	s.Area = fmt.Sprintf("0,%d %s %d,%d", sparkHeight, s.Line, sparkWidth, sparkHeight)
	return s
}

// weekly adds up weeks that end with the last day; what is left of a week before
// them is left out, because it would look like a rise.
func weekly(days []int64) []int64 {
	var weeks []int64
	for week := range slices.Chunk(days[len(days)%7:], 7) {
		var sum int64
		for _, n := range week {
			sum += n
		}
		weeks = append(weeks, sum)
	}
	return weeks
}

func coordinate(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
