package dmarc_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[fmt.Stringer]string{
		dmarc.StatusOK: "ok", dmarc.StatusNone: "none", dmarc.StatusMultiple: "multiple", dmarc.StatusUnusable: "unusable", dmarc.StatusInconclusive: "inconclusive",
		dmarc.OK: "ok", dmarc.ActsAsNone: "acts as p=none", dmarc.NoProcessing: "no DMARC processing", dmarc.Void: "void",
		dmarc.Aligned: "aligned", dmarc.NotAligned: "not aligned", dmarc.AlignmentUnknown: "unknown",
		dmarc.NotNeeded: "not needed", dmarc.Authorized: "authorized", dmarc.NotAuthorized: "not authorized", dmarc.ConsentUnknown: "unknown",
		dmarc.Unstated: "", dmarc.FailureOptions(0): "0",
	} {
		if got.String() != want {
			t.Errorf("%T: got %q want %q", got, got, want)
		}
	}
}
