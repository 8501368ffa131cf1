package dmarc_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value fmt.Stringer
		want  string
	}{
		{dmarc.StatusOK, "ok"},
		{dmarc.StatusNone, "none"},
		{dmarc.StatusMultiple, "multiple"},
		{dmarc.StatusUnusable, "unusable"},
		{dmarc.StatusInconclusive, "inconclusive"},
		{dmarc.OK, "ok"},
		{dmarc.ActsAsNone, "acts as p=none"},
		{dmarc.NoProcessing, "no DMARC processing"},
		{dmarc.Void, "void"},
		{dmarc.Aligned, "aligned"},
		{dmarc.NotAligned, "not aligned"},
		{dmarc.AlignmentUnknown, "unknown"},
		{dmarc.NotNeeded, "not needed"},
		{dmarc.Authorized, "authorized"},
		{dmarc.NotAuthorized, "not authorized"},
		{dmarc.ConsentUnknown, "unknown"},
		{dmarc.Unstated, ""},
		{dmarc.FailureOptions(0), "0"},
	} {
		t.Run(fmt.Sprintf("%T %s", tt.value, tt.want), func(t *testing.T) {
			t.Parallel()
			if got := tt.value.String(); got != tt.want {
				t.Errorf("got %q want %q", got, tt.want)
			}
		})
	}
}
