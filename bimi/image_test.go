package bimi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

const (
	svgHead = `<svg xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps" viewBox="0 0 64 64">`
	title   = `<title>Example</title>`
	goodSVG = `<?xml version="1.0" encoding="UTF-8"?>` + svgHead + title + `<circle cx="32" cy="32" r="30" fill="#036"/></svg>`
)

// hashOf returns the hash of an image in the format of bimi.Image.
func hashOf(svg string) string {
	sum := sha256.Sum256([]byte(svg))
	return hex.EncodeToString(sum[:])
}

func TestCheckImage(t *testing.T) {
	t.Parallel()
	body := func(content string) string { return svgHead + title + content + `</svg>` }
	root := func(attributes string) string {
		return `<svg xmlns="http://www.w3.org/2000/svg" ` + attributes + `>` + title + `</svg>`
	}
	const good = `version="1.2" baseProfile="tiny-ps" viewBox="0 0 1 1"`
	for _, tt := range []struct {
		name string
		svg  string
		want []bimi.Problem
	}{
		{name: "good", svg: goodSVG},
		{name: "all that the profile has", svg: body(`<desc>d</desc><metadata>m</metadata><defs><linearGradient id="a"><stop offset="0"/></linearGradient><radialGradient id="b"/><solidColor id="c"/></defs><g fill="url(#a)"><path d="M0 0"/><rect/><ellipse/><line/><polyline/><polygon/><text>t<tspan>s</tspan></text></g><use href="#a"/>`)},
		{name: "a local reference by xlink", svg: body(`<use xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="#a"/>`)},
		{name: "a document type without entities", svg: `<!DOCTYPE svg>` + body(``)},
		{name: "a shape by width and height", svg: root(`version="1.2" baseProfile="tiny-ps" width="20px" height="20"`)},

		{name: "empty", svg: "", want: []bimi.Problem{{Kind: bimi.NotSVG, Text: "the root is not an svg element of the SVG namespace"}}},
		{name: "HTML", svg: "<html></html>", want: []bimi.Problem{{Kind: bimi.NotSVG, Text: "the root is not an svg element of the SVG namespace"}}},
		{name: "no namespace", svg: "<svg></svg>", want: []bimi.Problem{{Kind: bimi.NotSVG, Text: "the root is not an svg element of the SVG namespace"}}},
		{name: "cut short", svg: svgHead + title, want: []bimi.Problem{{Kind: bimi.NotSVG, Text: "XML syntax error on line 1: unexpected EOF"}}},
		{name: "two roots", svg: body("") + body(""), want: []bimi.Problem{{Kind: bimi.NotSVG, Text: "there is an element after the end of the root"}}},
		{name: "nested too deep", svg: body(strings.Repeat("<g>", 100)), want: []bimi.Problem{{Kind: bimi.NotSVG, Text: "elements are nested too deep"}}},

		{name: "wrong version", svg: root(`version="1.1" baseProfile="tiny-ps" viewBox="0 0 1 1"`), want: []bimi.Problem{{Kind: bimi.WrongVersion, Subject: "svg version", Text: "1.1"}}},
		{name: "wrong profile", svg: root(`version="1.2" baseProfile="tiny" viewBox="0 0 1 1"`), want: []bimi.Problem{{Kind: bimi.WrongProfile, Subject: "svg baseProfile", Text: "tiny"}}},
		{name: "neither", svg: root(`viewBox="0 0 1 1"`), want: []bimi.Problem{{Kind: bimi.WrongVersion, Subject: "svg version"}, {Kind: bimi.WrongProfile, Subject: "svg baseProfile"}}},
		{name: "x and y on the root", svg: root(good + ` x="0px" y="1"`), want: []bimi.Problem{{Kind: bimi.PositionedRoot, Subject: "svg x", Text: "0px"}, {Kind: bimi.PositionedRoot, Subject: "svg y", Text: "1"}}},
		{name: "not square", svg: root(`version="1.2" baseProfile="tiny-ps" viewBox="0,0,30.5,10" width="5" height="5"`), want: []bimi.Problem{{Kind: bimi.NotSquare, Subject: "svg viewBox", Text: "30.5 10"}}},
		{name: "no shape", svg: root(`version="1.2" baseProfile="tiny-ps" width="100%" height="100%"`), want: []bimi.Problem{{Kind: bimi.UnknownShape, Subject: "svg viewBox"}}},
		{name: "a bad viewBox", svg: root(`version="1.2" baseProfile="tiny-ps" viewBox="0 0 1"`), want: []bimi.Problem{{Kind: bimi.UnknownShape, Subject: "svg viewBox", Text: "0 0 1"}}},
		{name: "a viewBox of nothing", svg: root(`version="1.2" baseProfile="tiny-ps" viewBox="0 0 0 NaN"`), want: []bimi.Problem{{Kind: bimi.UnknownShape, Subject: "svg viewBox", Text: "0 0 0 NaN"}}},

		{name: "no title", svg: svgHead + `</svg>`, want: []bimi.Problem{{Kind: bimi.MissingTitle, Subject: "title"}}},
		{name: "an empty title", svg: svgHead + `<title> </title></svg>`, want: []bimi.Problem{{Kind: bimi.MissingTitle, Subject: "title"}}},
		{name: "a title of another element", svg: svgHead + `<g><title>x</title></g></svg>`, want: []bimi.Problem{{Kind: bimi.MissingTitle, Subject: "title"}}},
		{name: "a title of 64 characters", svg: svgHead + `<title>` + strings.Repeat("ü", 64) + `</title></svg>`},
		{name: "a title of 65 characters", svg: svgHead + `<title>` + strings.Repeat("a", 65) + `</title></svg>`, want: []bimi.Problem{{Kind: bimi.LongTitle, Subject: "title", Text: strings.Repeat("a", 65)}}},

		{name: "a script", svg: body(`<script>x</script>`), want: []bimi.Problem{{Kind: bimi.Script, Subject: "script", Text: "script"}}},
		{name: "an event handler", svg: body(`<g onclick="x()"/>`), want: []bimi.Problem{{Kind: bimi.Script, Subject: "g onclick", Text: "x()"}}},
		{name: "an animation", svg: body(`<circle><animate/></circle>`), want: []bimi.Problem{{Kind: bimi.Animation, Subject: "animate", Text: "animate"}}},
		{name: "a raster image", svg: body(`<image href="data:image/png;base64,AA=="/>`), want: []bimi.Problem{{Kind: bimi.DisallowedElement, Subject: "image", Text: "image"}, {Kind: bimi.ExternalReference, Subject: "image href", Text: "data:image/png;base64,AA=="}}},
		{name: "an svg inside", svg: body(`<svg/>`), want: []bimi.Problem{{Kind: bimi.DisallowedElement, Subject: "svg", Text: "svg"}}},
		{name: "an element of another namespace", svg: body(`<x xmlns="urn:x"/>`), want: []bimi.Problem{{Kind: bimi.DisallowedElement, Subject: "x", Text: "urn:x"}}},
		{name: "the same problem is told once", svg: body(`<a/><a/>`), want: []bimi.Problem{{Kind: bimi.DisallowedElement, Subject: "a", Text: "a"}}},
		{name: "a style", svg: body(`<g style="fill:red"/>`), want: []bimi.Problem{{Kind: bimi.DisallowedAttribute, Subject: "g style", Text: "fill:red"}}},
		{name: "a reference to elsewhere", svg: body(`<use xmlns:l="http://www.w3.org/1999/xlink" l:href="https://example.net/x.svg#a"/>`), want: []bimi.Problem{{Kind: bimi.ExternalReference, Subject: "use href", Text: "https://example.net/x.svg#a"}}},
		{name: "a colour from elsewhere", svg: body(`<g fill="url( '#a' ) URL(&quot;https://example.net/#b&quot;)"/>`), want: []bimi.Problem{{Kind: bimi.ExternalReference, Subject: "g fill", Text: `url( '#a' ) URL("https://example.net/#b")`}}},
		{name: "a style sheet", svg: `<?xml-stylesheet href="x.css"?>` + body(``), want: []bimi.Problem{{Kind: bimi.ExternalReference, Subject: "xml-stylesheet", Text: `href="x.css"`}}},
		{name: "entities", svg: `<!DOCTYPE svg [<!ENTITY x "y">]>` + body(``), want: []bimi.Problem{{Kind: bimi.EntityDeclaration, Text: `DOCTYPE svg [<!ENTITY x "y">]`}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := bimi.CheckImage([]byte(tt.svg))
			if !slices.Equal(got.Problems, tt.want) {
				t.Errorf("got %q want %q", got.Problems, tt.want)
			}
			if got.Bytes != len(tt.svg) || got.SHA256 != hashOf(tt.svg) || got.Compressed {
				t.Errorf("got %d bytes, hash %s, compressed %v", got.Bytes, got.SHA256, got.Compressed)
			}
		})
	}
}

func TestCheckImageFields(t *testing.T) {
	t.Parallel()
	got := bimi.CheckImage(packtest.Gzip(goodSVG))
	if !got.Compressed || got.Bytes != len(goodSVG) || got.SHA256 != hashOf(goodSVG) || len(got.Problems) != 0 {
		t.Errorf("got compressed %v, %d bytes, hash %s, problems %v", got.Compressed, got.Bytes, got.SHA256, got.Problems)
	}
	if got.Version != "1.2" || got.BaseProfile != "tiny-ps" || got.Title != "Example" || got.Width != 64 || got.Height != 64 {
		t.Errorf("got %+v", got)
	}
}

func TestCheckImageSize(t *testing.T) {
	t.Parallel()
	sized := func(n int) string {
		frame := svgHead + title + `<desc></desc></svg>`
		return strings.Replace(frame, "<desc>", "<desc>"+strings.Repeat("x", n-len(frame)), 1)
	}
	truncated := packtest.Gzip(goodSVG)
	truncated = truncated[:len(truncated)-4]
	for _, tt := range []struct {
		name string
		data []byte
		want []bimi.Problem
	}{
		{name: "32 KiB", data: []byte(sized(bimi.MaxImageBytes))},
		{name: "a byte more", data: []byte(sized(bimi.MaxImageBytes + 1)), want: []bimi.Problem{{Kind: bimi.ImageTooLarge, Text: "32769 bytes"}}},
		{name: "the expanded size counts", data: packtest.Gzip(sized(bimi.MaxImageBytes + 1)), want: []bimi.Problem{{Kind: bimi.ImageTooLarge, Text: "32769 bytes"}}},
		{name: "too large to be read", data: bytes.Repeat([]byte(" "), 1<<20+1), want: []bimi.Problem{{Kind: bimi.ImageTooLarge, Text: "more than 1 MiB"}}},
		{name: "a bomb", data: packtest.Gzip(strings.Repeat(" ", 8<<20)), want: []bimi.Problem{{Kind: bimi.ImageTooLarge, Text: "more than 1 MiB"}}},
		{name: "no gzip after all", data: []byte{0x1f, 0x8b, 1}, want: []bimi.Problem{{Kind: bimi.BadCompression, Text: "unexpected EOF"}}},
		{name: "gzip cut short", data: truncated, want: []bimi.Problem{{Kind: bimi.BadCompression, Text: "unexpected EOF"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := bimi.CheckImage(tt.data); !slices.Equal(got.Problems, tt.want) {
				t.Errorf("got %v want %v", got.Problems, tt.want)
			}
		})
	}
}
