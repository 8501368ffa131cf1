package bimi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxImageBytes is the size limit of an uncompressed SVG.
	MaxImageBytes = 32 << 10
	// maxDocumentBytes limits how much of an image or evidence document is read, also
	// when decompressing.
	maxDocumentBytes = 1 << 20
)

var errTooLarge = errors.New("more than 1 MiB")

// Image is the result of checking an image.
type Image struct {
	// Compressed is true for SVGZ.
	Compressed bool
	// Bytes is the uncompressed size.
	Bytes int
	// SHA256 is the hash of the uncompressed SVG in lower-case hexadecimal; "" if it
	// could not be decompressed.
	SHA256 string
	// Version and BaseProfile are attributes of the root element.
	Version, BaseProfile string
	// Title is the trimmed text of the title.
	Title string
	// Width and Height come from viewBox, or from the attributes of these names; 0 if
	// unknown.
	Width, Height float64
	// Problems contains at most 100 distinct problems.
	Problems []Problem
}

// CheckImage validates an SVG or SVGZ for BIMI: SVG Tiny Portable/Secure, at most 32 KB.
// It checks attributes that matter for security and those that generators are known to
// add; it is not a schema validator. It reads at most 1 MiB.
func CheckImage(data []byte) Image {
	var image Image
	var found problems
	svg, compressed, err := expand(data)
	image.Compressed = compressed
	switch {
	case errors.Is(err, errTooLarge):
		found.note(true, ImageTooLarge, "", err.Error())
	case err != nil:
		found.note(true, BadCompression, "", err.Error())
	default:
		sum := sha256.Sum256(svg)
		image.Bytes, image.SHA256 = len(svg), hex.EncodeToString(sum[:])
		found.note(len(svg) > MaxImageBytes, ImageTooLarge, "", formatBytes(len(svg)))
		reader := svgReader{image: &image, problems: &found}
		reader.read(svg)
	}
	image.Problems = found
	return image
}

// Drawing returns the uncompressed SVG of an image that only draws: it has no script, animation,
// entity or reference, and no element that the profile excludes. Otherwise it returns nil. The
// image may have problems that do not affect who displays it, such as a missing title.
func Drawing(data []byte) []byte {
	for _, p := range CheckImage(data).Problems {
		switch p.Kind {
		case WrongVersion, WrongProfile, MissingTitle, LongTitle, PositionedRoot, UnknownShape, NotSquare:
		default:
			return nil
		}
	}
	svg, _, err := expand(data)
	if err != nil {
		return nil
	}
	return svg
}

// expand decompresses gzip data, and returns other data unchanged.
func expand(data []byte) (content []byte, compressed bool, err error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if len(data) > maxDocumentBytes {
			return nil, false, errTooLarge
		}
		return data, false, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, true, err
	}
	content, err = readBounded(z)
	return content, true, err
}

// readBounded reads all of r, or returns errTooLarge.
func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxDocumentBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxDocumentBytes {
		return nil, errTooLarge
	}
	return content, nil
}

// The XML namespaces.
const (
	svgNamespace   = "http://www.w3.org/2000/svg"
	xlinkNamespace = "http://www.w3.org/1999/xlink"
)

// Elements and attributes with special rules.
const (
	elementSVG   = "svg"
	elementTitle = "title"
)

// allowedElements are the elements of SVG Tiny Portable/Secure below the root.
var allowedElements = []string{
	elementTitle, "desc", "metadata", "defs", "g", "use",
	"path", "rect", "circle", "ellipse", "line", "polyline", "polygon",
	"text", "textArea", "tspan", "tbreak",
	"linearGradient", "radialGradient", "stop", "solidColor",
	"font", "font-face", "glyph", "missing-glyph", "hkern",
}

// scriptElements run code (SVG Tiny 1.2 §15).
var scriptElements = []string{"script", "handler", "listener"}

// animationElements change the image over time (SVG Tiny 1.2 §16).
var animationElements = []string{
	"animate", "animateColor", "animateMotion", "animateTransform", "animation", "discard", "mpath", "set",
}

// elementKind returns the problem with an SVG element below the root, "" if it is part of
// the profile.
func elementKind(name string) Kind {
	switch {
	case slices.Contains(allowedElements, name):
		return ""
	case slices.Contains(scriptElements, name):
		return Script
	case slices.Contains(animationElements, name):
		return Animation
	default:
		return DisallowedElement
	}
}

const (
	maxDepth = 100
	// recommendedTitle is the recommended length limit, in characters.
	recommendedTitle = 64
)

var (
	errNotSVG   = errors.New("the root is not an svg element of the SVG namespace")
	errTwoRoots = errors.New("there is an element after the end of the root")
	errTooDeep  = errors.New("elements are nested too deep")
)

// svgReader collects the properties and problems of an SVG in one pass.
type svgReader struct {
	image    *Image
	problems *problems
	depth    int
	rooted   bool
	inTitle  bool
	title    strings.Builder
}

// read parses the document. It is not an SVG unless it can be parsed completely.
func (r *svgReader) read(svg []byte) {
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.token(token)
		}
		if err != nil {
			r.problems.note(true, NotSVG, "", err.Error())
			return
		}
	}
	if !r.rooted {
		r.problems.note(true, NotSVG, "", errNotSVG.Error())
		return
	}
	r.image.Title = strings.TrimSpace(r.title.String())
	r.problems.note(r.image.Title == "", MissingTitle, elementTitle, "")
	r.problems.note(utf8.RuneCountInString(r.image.Title) > recommendedTitle, LongTitle, elementTitle, r.image.Title)
}

func (r *svgReader) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		r.depth++
		return r.start(t)
	case xml.EndElement:
		r.depth--
		r.inTitle = false
	case xml.CharData:
		if r.inTitle {
			r.title.Write(t)
		}
	case xml.Directive:
		r.problems.note(bytes.Contains(t, []byte("<!ENTITY")), EntityDeclaration, "", string(t))
	case xml.ProcInst:
		r.problems.note(t.Target == "xml-stylesheet", ExternalReference, t.Target, string(t.Inst))
	}
	return nil
}

func (r *svgReader) start(e xml.StartElement) error {
	name := e.Name.Local
	switch {
	case r.depth > maxDepth:
		return errTooDeep
	case r.depth == 1 && r.rooted:
		return errTwoRoots
	case r.depth == 1 && (e.Name.Space != svgNamespace || name != elementSVG):
		return errNotSVG
	case r.depth == 1:
		r.rooted = true
		r.root(e.Attr)
	case e.Name.Space != svgNamespace:
		r.problems.note(true, DisallowedElement, name, e.Name.Space)
	default:
		kind := elementKind(name)
		r.problems.note(kind != "", kind, name, name)
	}
	// Only the title of the root counts; a nested element ends its text.
	r.inTitle = name == elementTitle && r.depth == 2 && r.title.Len() == 0
	for _, a := range e.Attr {
		r.attribute(name, a)
	}
	return nil
}

// root checks the attributes of the root.
func (r *svgReader) root(attributes []xml.Attr) {
	values := make(map[string]string)
	for _, a := range attributes {
		if a.Name.Space == "" {
			values[a.Name.Local] = a.Value
		}
	}
	r.image.Version, r.image.BaseProfile = values["version"], values["baseProfile"]
	r.problems.note(r.image.Version != "1.2", WrongVersion, "svg version", r.image.Version)
	r.problems.note(r.image.BaseProfile != "tiny-ps", WrongProfile, "svg baseProfile", r.image.BaseProfile)
	for _, position := range []string{"x", "y"} {
		value, ok := values[position]
		r.problems.note(ok, PositionedRoot, "svg "+position, value)
	}
	width, height, ok := shape(values)
	if !ok {
		r.problems.note(true, UnknownShape, "svg viewBox", values["viewBox"])
		return
	}
	r.image.Width, r.image.Height = width, height
	r.problems.note(width != height, NotSquare, "svg viewBox", formatNumber(width)+" "+formatNumber(height))
}

// attribute checks an attribute of any element.
func (r *svgReader) attribute(element string, a xml.Attr) {
	name := a.Name.Local
	subject := element + " " + name
	value := strings.TrimSpace(a.Value)
	switch {
	case a.Name.Space == "xmlns" || name == "xmlns":
		return
	case a.Name.Space == "" && strings.HasPrefix(name, "on"):
		r.problems.note(true, Script, subject, value)
		return
	case name == "href" && (a.Name.Space == "" || a.Name.Space == xlinkNamespace):
		r.problems.note(!strings.HasPrefix(value, "#"), ExternalReference, subject, value)
		return
	case a.Name.Space == "" && name == "style":
		r.problems.note(true, DisallowedAttribute, subject, value)
	}
	r.problems.note(refersOutside(value), ExternalReference, subject, value)
}

// refersOutside reports whether a value contains a url() outside the document.
func refersOutside(value string) bool {
	const open = "url("
	rest := strings.ToLower(value)
	for {
		_, after, ok := strings.Cut(rest, open)
		if !ok {
			return false
		}
		if !strings.HasPrefix(strings.TrimLeft(after, " \t\r\n'\""), "#") {
			return true
		}
		rest = after
	}
}

// shape returns width and height from viewBox, or from the attributes of these names.
func shape(values map[string]string) (width, height float64, ok bool) {
	if box, stated := values["viewBox"]; stated {
		fields := strings.FieldsFunc(box, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n' })
		if len(fields) != 4 {
			return 0, 0, false
		}
		return numbers(fields[2], fields[3])
	}
	return numbers(strings.TrimSuffix(values["width"], "px"), strings.TrimSuffix(values["height"], "px"))
}

// numbers parses two positive finite numbers.
func numbers(a, b string) (x, y float64, ok bool) {
	const largest = 1e9
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil || !(x > 0 && x < largest && y > 0 && y < largest) {
		return 0, 0, false
	}
	return x, y, true
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func formatBytes(n int) string { return strconv.Itoa(n) + " bytes" }
