package store

import (
	"strings"
	"time"
	"unicode"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// unix converts a time to seconds, 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromUnix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// keyText returns text that both engines can store and index: at most MaxKeyText bytes.
func keyText(text string) string { return db.Cut(text, dmarcd.MaxKeyText) }

// nameText is keyText for a domain name. It cuts the beginning: the end identifies the owner.
func nameText(name string) string { return dmarcd.CutName(db.Plain(name)) }

// maxLogText limits the texts of an entry of a log, in bytes.
const maxLogText = 4 << 10

// logText returns text of at most maxLogText bytes that both engines can store.
func logText(text string) string {
	text = db.Plain(text)
	if len(text) <= maxLogText {
		return text
	}
	const end = "…"
	return db.Cut(text, maxLogText-len(end)) + end
}

// withoutControls returns text with U+FFFD for each control character.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, db.Plain(text))
}

// nullable stores a zero id as NULL.
func nullable[ID ~int64](id ID) any {
	if id == 0 {
		return nil
	}
	return int64(id)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func joinLines[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = string(item)
	}
	return strings.Join(texts, "\n")
}
