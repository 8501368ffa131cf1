package mail

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"github.com/dmarcd/dmarcd"
)

// Bar is a day of a chart.
type Bar struct{ Pass, Fail int64 }

// The size of a chart as it is shown; the picture has twice as many pixels.
const (
	chartWidth  = 536
	chartHeight = 120
	chartScale  = 2
)

// The colours of a chart stand out on a light and on a dark background, so the picture has
// none.
var chartColors = color.Palette{
	color.NRGBA{}, color.NRGBA{R: 0x2f, G: 0x9e, B: 0x5b, A: 0xff}, color.NRGBA{R: 0xe0, G: 0x4f, B: 0x3f, A: 0xff}, color.NRGBA{R: 0x8a, G: 0x94, B: 0xa8, A: 0xff},
}

// NewChart draws messages by day: those that pass DMARC below those that fail. It returns
// nil if there are none. about says whose messages they are, and when.
func NewChart(bars []Bar, about string) (*Chart, error) {
	var most, pass, fail int64
	for _, b := range bars {
		most = max(most, b.Pass+b.Fail)
		pass, fail = pass+b.Pass, fail+b.Fail
	}
	if most == 0 {
		return nil, nil //nolint:nilnil // no messages, no chart
	}
	const width, height = chartWidth * chartScale, chartHeight * chartScale
	picture := image.NewPaletted(image.Rect(0, 0, width, height), chartColors)
	fill := func(r image.Rectangle, index int) {
		draw.Draw(picture, r, image.NewUniform(chartColors[index]), image.Point{}, draw.Src)
	}
	fill(image.Rect(0, height-chartScale, width, height), 3)
	scaled := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(int(float64(n)/float64(most)*(height-2*chartScale)), chartScale) // a few still show
	}
	for i, b := range bars {
		left, right := i*width/len(bars), (i+1)*width/len(bars)
		if right-left > 3*chartScale {
			right -= chartScale * 2
		}
		bottom := height - chartScale
		middle := bottom - scaled(b.Pass)
		fill(image.Rect(left, middle, right, bottom), 1)
		fill(image.Rect(left, max(middle-scaled(b.Fail), 0), right, middle), 2)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		return nil, err
	}
	return &Chart{
		PNG: file.Bytes(), Width: chartWidth, Height: chartHeight,
		Alt:     fmt.Sprintf("Messages by day %s: %s pass DMARC (green), %s fail (red).", about, dmarcd.FormatNumber(pass), dmarcd.FormatNumber(fail)),
		Caption: fmt.Sprintf("Messages by day %s. Green passes DMARC, red fails.", about),
	}, nil
}
