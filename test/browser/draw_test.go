package browser_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// How much of a long page is drawn, in screens: as a picture of the documents, and to look through.
const (
	maxDrawn  = 2
	maxLooked = 6
)

// drawn are the screens on which pages are drawn, in both schemes.
var drawn = []look{{name: "1440", width: 1440, height: 900}, {name: "768", width: 768, height: 1024}, {name: "360", width: 360, height: 800, phone: true}}

// drawAll draws the present page on every screen.
func (b *tab) drawAll(name string) {
	b.t.Helper()
	for _, l := range drawn {
		for _, l.scheme = range []string{"light", "dark"} {
			l.wear(b)
			b.save(*everyScreen, strings.ReplaceAll(name, "/", "-")+"-"+l.name+"-"+l.scheme, b.shoot(l, maxLooked))
		}
	}
	looks[0].wear(b)
}

// draw draws the present page into a small file of that name in a folder.
func (b *tab) draw(folder, name string, l look) {
	b.t.Helper()
	small, err := reduce(b.shoot(l, maxDrawn))
	if err != nil {
		b.t.Fatalf("draw %s: %v", name, err)
	}
	b.save(folder, name, small)
}

// save writes a picture into a folder.
func (b *tab) save(folder, name string, picture []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// shoot returns a picture of the present page, down to so many screens.
func (b *tab) shoot(l look, screens int64) []byte {
	b.t.Helper()
	height := max(l.height, min(read(b, evaluate[int64](`document.documentElement.scrollHeight`)), screens*l.height))
	l.height = height // the bar of a phone is at the end of the picture, and covers nothing
	l.wear(b)
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: new(true), FromSurface: new(true),
		Clip: &page.Viewport{Width: float64(l.width), Height: float64(height), Scale: 1},
	})
	if err != nil {
		b.t.Fatalf("draw the page: %v", err)
	}
	return shot.Data
}

const (
	// colours is how many a drawing has: our pages have few, and text is as readable.
	colours = 128
	// apart is by how much colours differ that stand for each other's neighbours, in
	// the channel where they differ most.
	apart = 20
)

// reduce makes a picture small: some of its colours stay, and every other becomes the
// nearest of them.
func reduce(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	reduced := image.NewPaletted(full.Bounds(), spread(frequent(full)))
	draw.Draw(reduced, full.Bounds(), full, full.Bounds().Min, draw.Src)
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, reduced); err != nil {
		return nil, err
	}
	return small.Bytes(), nil
}

// frequent returns the colours of a picture, the most frequent first.
func frequent(picture image.Image) []color.RGBA {
	counts := map[color.RGBA]int{}
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			counts[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}]++
		}
	}
	found := slices.Collect(maps.Keys(counts))
	slices.SortFunc(found, func(a, b color.RGBA) int { return counts[b] - counts[a] })
	return found
}

// spread chooses the colours that stay: the most frequent quarter as they are, and then
// those that are far from all chosen, so that a rare one is not lost to a common one.
func spread(found []color.RGBA) color.Palette {
	chosen := found[:min(len(found), colours/4)]
	for _, candidate := range found[len(chosen):] {
		near := func(c color.RGBA) bool { return distance(c, candidate) < apart }
		if len(chosen) < colours && !slices.ContainsFunc(chosen, near) {
			chosen = append(slices.Clip(chosen), candidate)
		}
	}
	palette := make(color.Palette, len(chosen))
	for i, c := range chosen {
		palette[i] = c
	}
	return palette
}

// distance returns by how much two colours differ in the channel where it is most.
func distance(a, b color.RGBA) int {
	apart := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return max(apart(a.R, b.R), apart(a.G, b.G), apart(a.B, b.B))
}
