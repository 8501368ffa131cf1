package pdf

// chart draws stacked bars with their legend. The first series is at the bottom.
func (f drawing) chart(c *Chart) {
	var most int64
	for _, bar := range c.Bars {
		var sum int64
		for _, value := range bar {
			sum += value
		}
		most = max(most, sum)
	}
	top := f.GetY()
	bottom := top + chartHeight
	f.SetDrawColor(int(border[0]), int(border[1]), int(border[2]))
	f.SetLineWidth(0.15)
	f.Line(margin, top, margin+contentWidth, top)
	f.Line(margin, bottom, margin+contentWidth, bottom)
	step := contentWidth / float64(max(len(c.Bars), 1))
	for i, bar := range c.Bars {
		y := bottom
		for n, value := range bar {
			if value <= 0 || n >= len(c.Series) {
				continue
			}
			height := max(float64(value)/float64(most)*chartHeight, 0.15) // a few still show
			color := c.Series[n].Color
			f.SetFillColor(int(color[0]), int(color[1]), int(color[2]))
			f.Rect(margin+float64(i)*step, max(y-height, top), step*0.8, min(height, y-top), "F")
			y = max(y-height, top)
		}
	}
	f.use("", smallSize, quiet)
	f.SetXY(margin, bottom+0.8)
	for i, label := range []string{c.First, c.Most, c.Last} {
		f.CellFormat(contentWidth/3, lineHeight(smallSize), printable(label), "", 0, []string{"L", "C", "R"}[i], false, 0, "")
	}
	f.SetXY(margin, bottom+1.6+lineHeight(smallSize))
	for _, s := range c.Series {
		name := printable(s.Name)
		width := f.GetStringWidth(name) + 8
		if f.GetX()+width > margin+contentWidth {
			f.SetXY(margin, f.GetY()+lineHeight(smallSize))
		}
		f.SetFillColor(int(s.Color[0]), int(s.Color[1]), int(s.Color[2]))
		f.Rect(f.GetX(), f.GetY()+0.6, 2.4, 2.4, "F")
		f.SetX(f.GetX() + 3.4)
		f.CellFormat(width-3.4, lineHeight(smallSize), name, "", 0, "L", false, 0, "")
	}
	f.SetXY(margin, f.GetY()+lineHeight(smallSize))
}
