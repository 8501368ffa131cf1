// Package pdf draws a document of figures, a chart, tables and notes as a PDF of A4 pages (ISO 32000),
// without a browser. The file names its title and language, its text can be searched and copied, and
// its font is embedded. Callers decide what is in it, and limit its length.
package pdf

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// Document is the content of a file. Empty parts are left out.
type Document struct {
	// Title is the heading and the title of the file, Lead a line below it.
	Title, Lead string
	// Conclusion is what the reader has to know.
	Conclusion string
	Figures    []Figure
	Sections   []Section
	// Notes are small print at the end, one paragraph each.
	Notes   []string
	Created time.Time
}

// Figure is a number with its name and context.
type Figure struct{ Label, Value, Note string }

// Section is a part with a heading: a chart or a table, and a note below it.
type Section struct {
	Title string
	Chart *Chart
	Table *Table
	Note  string
}

// Table is a table. The widths of its columns are relative to each other.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Column is a column of a table. A column of numbers is aligned at its right.
type Column struct {
	Title   string
	Width   float64
	Numbers bool
}

// Chart has bars of several series, stacked. First and Last are the labels of the outer bars, Most that
// of the highest.
type Chart struct {
	Series            []Series
	Bars              [][]int64 // a value for each series
	First, Last, Most string
}

// Series is a series of a chart.
type Series struct {
	Name  string
	Color Color
}

// Color is red, green and blue.
type Color [3]uint8

// The page, in millimetres, and sizes of type, in points.
const (
	pageWidth, margin         = 210.0, 16.0
	contentWidth              = pageWidth - 2*margin
	pageBottom                = 297.0 - 18.0
	chartHeight               = 38.0
	titleSize, conclusionSize = 18.0, 12.0
	headingSize, textSize     = 11.5, 8.5
	figureSize, smallSize     = 14.0, 7.5
	family                    = "Go"
)

var (
	ink    = Color{0x1c, 0x22, 0x2c}
	quiet  = Color{0x5a, 0x64, 0x74}
	border = Color{0xd5, 0xda, 0xe2}
)

// drawing is a document that is being drawn.
type drawing struct {
	*fpdf.Fpdf
}

// Bytes returns the document as a file. Equal documents give equal files.
func (d Document) Bytes() ([]byte, error) {
	f := drawing{fpdf.New("P", "mm", "A4", "")}
	f.SetCatalogSort(true)
	f.SetCreationDate(d.Created)
	f.SetModificationDate(d.Created)
	f.SetLang("en")
	f.SetTitle(printable(d.Title), true)
	f.SetSubject(printable(d.Conclusion), true)
	f.SetCreator("dmarcd", true)
	f.SetProducer("dmarcd", true)
	f.SetDisplayMode("fullwidth", "continuous")
	f.AddUTF8FontFromBytes(family, "", goregular.TTF)
	f.AddUTF8FontFromBytes(family, "B", gobold.TTF)
	f.SetMargins(margin, margin, margin)
	f.SetAutoPageBreak(false, 0)
	f.SetCellMargin(0)
	f.AliasNbPages("")
	f.SetFooterFunc(func() {
		f.SetY(pageBottom + 5)
		f.use("", smallSize, quiet)
		f.CellFormat(contentWidth/2, 4, f.fitting(printable(d.Title), contentWidth*0.8), "", 0, "L", false, 0, "")
		f.CellFormat(contentWidth/2, 4, fmt.Sprintf("Page %d of {nb}", f.PageNo()), "", 0, "R", false, 0, "")
	})
	f.AddPage()
	f.Bookmark(printable(d.Title), 0, 0)
	f.paragraph(d.Title, "B", titleSize, ink)
	f.paragraph(d.Lead, "", textSize+0.5, quiet)
	f.Ln(2.5)
	f.paragraph(d.Conclusion, "B", conclusionSize, ink)
	f.figures(d.Figures)
	for _, s := range d.Sections {
		f.section(s)
	}
	f.Ln(4)
	for _, note := range d.Notes {
		f.paragraph(note, "", smallSize, quiet)
	}
	var file bytes.Buffer
	if err := f.Output(&file); err != nil {
		return nil, fmt.Errorf("draw a PDF: %w", err)
	}
	return file.Bytes(), nil
}

// use sets style, size and color of text.
func (f drawing) use(style string, size float64, c Color) {
	f.SetFont(family, style, size)
	f.SetTextColor(int(c[0]), int(c[1]), int(c[2]))
}

// need begins a new page unless the rest of this one has that height.
func (f drawing) need(height float64) bool {
	if f.GetY()+height <= pageBottom {
		return false
	}
	f.AddPage()
	return true
}

// lineHeight returns the distance of lines of that size, in millimetres.
func lineHeight(size float64) float64 { return size * 0.3528 * 1.32 }

func (f drawing) paragraph(text, style string, size float64, c Color) {
	if text == "" {
		return
	}
	f.use(style, size, c)
	for _, line := range f.lines(text, contentWidth) {
		if f.need(lineHeight(size)) {
			f.use(style, size, c)
		}
		f.CellFormat(contentWidth, lineHeight(size), line, "", 1, "L", false, 0, "")
	}
}

// lines breaks a text into lines of a width in the current font. Words that are too long are broken.
func (f drawing) lines(text string, width float64) []string {
	text = printable(text)
	if text == "" {
		return []string{""}
	}
	var lines []string
	for _, line := range f.SplitText(text, width) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// fitting returns the first line of a text, with an ellipsis if there are more.
func (f drawing) fitting(text string, width float64) string {
	lines := f.lines(text, width)
	if len(lines) > 1 {
		return lines[0] + "…"
	}
	return lines[0]
}

// figures draws figures side by side.
func (f drawing) figures(all []Figure) {
	if len(all) == 0 {
		return
	}
	f.Ln(3)
	width := contentWidth / float64(len(all))
	top, bottom := f.GetY(), f.GetY()
	for i, figure := range all {
		left := margin + float64(i)*width
		f.SetDrawColor(int(border[0]), int(border[1]), int(border[2]))
		f.Line(left, top, left+width-4, top)
		y := top + 1.5
		write := func(text, style string, size float64, c Color) {
			f.use(style, size, c)
			for _, line := range f.lines(text, width-4) {
				f.SetXY(left, y)
				f.CellFormat(width-4, lineHeight(size), line, "", 0, "L", false, 0, "")
				y += lineHeight(size)
			}
		}
		write(figure.Label, "", smallSize, quiet)
		write(figure.Value, "B", figureSize, ink)
		if figure.Note != "" {
			write(figure.Note, "", smallSize, quiet)
		}
		bottom = max(bottom, y)
	}
	f.SetXY(margin, bottom)
}

// section draws a heading with its content.
func (f drawing) section(s Section) {
	f.Ln(4)
	height := lineHeight(headingSize) + 4*lineHeight(textSize) // not a heading alone
	if s.Chart != nil {
		height += chartHeight
	}
	f.need(height)
	f.Bookmark(printable(s.Title), 1, -1)
	f.paragraph(s.Title, "B", headingSize, ink)
	f.Ln(1)
	if s.Chart != nil {
		f.chart(s.Chart)
	}
	if s.Table != nil {
		f.table(s.Table)
	}
	if s.Note != "" {
		f.Ln(0.5)
		f.paragraph(s.Note, "", smallSize, quiet)
	}
}

// fonts is the regular font, for the glyphs that it has.
var fonts = sync.OnceValues(func() (*sfnt.Font, error) { return sfnt.Parse(goregular.TTF) })

// printable returns a text on one line. Characters that are invisible, change the direction of text or
// are not in the font become question marks or blanks.
func printable(text string) string {
	font, err := fonts()
	var buffer sfnt.Buffer
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		if r < unicode.MaxASCII || err != nil {
			return r
		}
		if glyph, err := font.GlyphIndex(&buffer, r); err != nil || glyph == 0 {
			return '?'
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
