package pdf

// cellPadding is between columns and rows, in millimetres.
const cellPadding = 1.1

// table draws a table. Its head is repeated on each page; a row is not divided.
func (f drawing) table(t *Table) {
	var total float64
	for _, c := range t.Columns {
		total += c.Width
	}
	widths := make([]float64, len(t.Columns))
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		widths[i], titles[i] = c.Width/total*contentWidth, c.Title
	}
	f.row(t, widths, titles, true)
	for _, row := range t.Rows {
		f.row(t, widths, row, false)
	}
}

// row draws a row. Texts that are too wide take more lines.
func (f drawing) row(t *Table, widths []float64, texts []string, head bool) {
	style, color := "", ink
	if head {
		style, color = "B", quiet
	}
	f.use(style, textSize, color)
	cells := make([][]string, len(t.Columns))
	most := 1
	for i := range t.Columns {
		if i < len(texts) {
			cells[i] = f.lines(texts[i], widths[i]-2*cellPadding)
		}
		most = max(most, len(cells[i]))
	}
	height := float64(most)*lineHeight(textSize) + 2*cellPadding
	if !head && f.need(height) {
		titles := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			titles[i] = c.Title
		}
		f.row(t, widths, titles, true)
		f.use(style, textSize, color)
	}
	x, y := margin, f.GetY()
	for i, c := range t.Columns {
		align := "L"
		if c.Numbers {
			align = "R"
		}
		for n, line := range cells[i] {
			f.SetXY(x+cellPadding, y+cellPadding+float64(n)*lineHeight(textSize))
			f.CellFormat(widths[i]-2*cellPadding, lineHeight(textSize), line, "", 0, align, false, 0, "")
		}
		x += widths[i]
	}
	f.SetDrawColor(int(border[0]), int(border[1]), int(border[2]))
	f.SetLineWidth(0.15)
	f.Line(margin, y+height, margin+contentWidth, y+height)
	f.SetXY(margin, y+height)
}
