package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/phrase"
)

// The size of a sparkline, in SVG units.
const (
	sparkWidth  = 96
	sparkHeight = 20
)

// Sparkline is a small line chart. It is drawn on the server and needs no script.
type Sparkline struct {
	// Line and Area are SVG points of the line and of the area below it.
	Line, Area    string
	Width, Height int
	// Text is the description for screen readers.
	Text string
}

// maxSparkDays is the maximum number of daily points.
const maxSparkDays = sparkWidth

// NewSparkline draws daily values in order, by week if there are many. It is empty for
// fewer than two values, or if all are zero.
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
	s.Text = fmt.Sprintf("Between %s and %s messages %s, %s at the end",
		phrase.Number(least), phrase.Number(most), unit, phrase.Number(series[len(series)-1]))
	points := make([]string, len(series))
	for i, n := range series {
		x := float64(i) * sparkWidth / float64(len(series)-1)
		// Zero is one unit above the bottom, so that the line is visible.
		y := sparkHeight - 1.0 - float64(n)/float64(most)*(sparkHeight-2)
		points[i] = coordinate(x) + "," + coordinate(y)
	}
	s.Line = strings.Join(points, " ")
	s.Area = fmt.Sprintf("0,%d %s %d,%d", sparkHeight, s.Line, sparkWidth, sparkHeight)
	return s
}

// weekly sums weeks that end with the last day. It drops an incomplete first week, which
// would look like a rise.
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
