package web

import (
	"html/template"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// formatFuncs are the template functions. None returns HTML, so that all output is
// escaped.
func formatFuncs(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":      a.url,
		"number":     func(n any) string { return dmarcd.FormatNumber(reflect.ValueOf(n).Int()) },
		"percent":    dmarcd.FormatShare,
		"moment":     ui.Moment,
		"machine":    wire.Time,
		"wireMoment": ui.WireMoment,
		"day":        func(d dmarcd.Day) string { return d.String() },
		"size":       ui.Size,
		"tone":       ui.Tone,
		"gradeTone":  ui.GradeTone,
		"join":       strings.Join,
		"plural":     func(n int, thing string) string { return dmarcd.FormatCount(int64(n), thing) },
		"segment":    url.PathEscape,
		"isZero":     time.Time.IsZero,
		"spark":      ui.NewSparkline,
		"diff":       ui.DiffWords,
		"eventCell":  eventCell,
		"eventDiff":  eventDiff,
		"figures":    figures,
		"shareWidth": ui.ShareWidth,
		"minus":      func(a, b int) int { return a - b },
		"last":       func(list []string) int { return len(list) - 1 },
		"isName":     ui.IsName,
		"names":      ui.Names,
		"zoneLine":   newZoneLine,
		"seen":       func(seen *bool) bool { return seen != nil && *seen },
		"trimSuffix": func(s, suffix string) string { return strings.TrimSpace(strings.TrimSuffix(s, suffix)) },
	}
}
