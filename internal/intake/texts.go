package intake

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// texts counts the texts of a report that are cut, for dmarcd.QuirkCut. What tells reports apart,
// their key and content, is computed from whole texts.
type texts struct{ cut int }

// plain returns text as plain does.
func (t *texts) plain(text string) string {
	if text = printable(text); len(text) > dmarcd.MaxKeyText {
		t.cut++
	}
	return shorten(text)
}

// cutRecord cuts the texts of a record that are part of keys, and returns how many.
func cutRecord(r *aggregate.Record) (cut int) {
	limit := func(text *string, shorten func(string) string) {
		if len(*text) > dmarcd.MaxKeyText {
			*text = shorten(*text)
			cut++
		}
	}
	limit(&r.Source, shorten)
	for _, name := range []*string{&r.HeaderFrom, &r.EnvelopeFrom, &r.EnvelopeTo} {
		limit(name, dmarcd.CutName)
	}
	for i := range r.DKIMResults {
		limit(&r.DKIMResults[i].Domain, dmarcd.CutName)
		limit(&r.DKIMResults[i].Selector, shorten)
	}
	return cut
}

// plain returns text as valid UTF-8, without control characters and limited to
// dmarcd.MaxKeyText.
func plain(text string) string { return shorten(printable(text)) }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// shorten cuts text to dmarcd.MaxKeyText at a rune boundary.
func shorten(text string) string {
	if len(text) <= dmarcd.MaxKeyText {
		return text
	}
	end := dmarcd.MaxKeyText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
