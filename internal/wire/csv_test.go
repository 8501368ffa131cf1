package wire_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestEscapeFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a", "a=b": "a=b", "'=1": "'=1", "v=DMARC1; p=none": "v=DMARC1; p=none", "2026-11-18T06:00:00+00:00": "2026-11-18T06:00:00+00:00",
		"=1": "'=1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "\nx": "'\nx",
		// after blanks and quotes
		" =1": "' =1", "\u00a0 =1": "'\u00a0 =1", `"=1`: `'"=1`, ` "" @x`: `' "" @x`,
		// with the characters of other keyboards
		"＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠x": "'＠x",
		// in the cells of programs that separate them by other characters
		"a;=1": "a;'=1", "a; =1;b": "a;' =1;b", "a\t=1": "a\t'=1", "a\n=1": "a\n'=1", "a\r\n=1": "a\r\n'=1", `a;"=1"`: `a;'"=1"`, "a;;=1;=2": "a;;'=1;'=2",
	} {
		if got := wire.EscapeFormula(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
