package dnscheck_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// TestTXTRecord checks that strings have at most 255 bytes, that no character is split,
// and that the text is complete.
func TestTXTRecord(t *testing.T) {
	t.Parallel()
	const limit = 255
	for _, text := range []string{
		"", "short", `a "quoted" \ text`, strings.Repeat("a", limit), strings.Repeat("a", limit+1), strings.Repeat("a", 1000),
		strings.Repeat("a", limit-1) + "ü" + "rest", strings.Repeat("a", limit-2) + "語rest", strings.Repeat("a", limit-3) + "😀rest",
		strings.Repeat("😀", 200), strings.Repeat("\xff", 300),
	} {
		record := dnscheck.TXTRecord("example.com", text)
		strung, ok := strings.CutPrefix(record, `example.com. TXT "`)
		if !ok || !utf8.ValidString(record) {
			t.Fatalf("got %q, want a record in UTF-8", record)
		}
		var joined string
		for piece := range strings.SplitSeq(strings.TrimSuffix(strung, `"`), `" "`) {
			plain := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(piece)
			if len(plain) > limit || !utf8.ValidString(plain) || strings.ContainsRune(plain, utf8.RuneError) && utf8.ValidString(text) {
				t.Errorf("%.20q: got the string %q of %d bytes, want whole characters and at most %d bytes", text, plain, len(plain), limit)
			}
			joined += plain
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); utf8.ValidString(text) && joined != want {
			t.Errorf("got %q, want %q", joined, want)
		}
	}
}
