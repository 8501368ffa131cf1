package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// TestParseKeepsTheConfiguredLimits parses the same input with the default limits and with
// one of them lowered. It must not create a folder.
func TestParseKeepsTheConfiguredLimits(t *testing.T) {
	t.Parallel()
	two := reportOf("receiver.example", recordFrom("192.0.2.1"), recordFrom("192.0.2.2"))
	long := reportOf("receiver.example", strings.Repeat(recordFrom("192.0.2.1"), 20))
	var many strings.Builder // more than the 1 MiB from which the ratio counts
	for i := range 6000 {
		many.WriteString(recordFrom(fmt.Sprintf("192.0.%d.%d", i/250, i%250)))
	}
	large := reportOf("receiver.example", many.String())
	several := musttest.Get(os.ReadFile(mailFiles + "forwarded-as-attachment.eml"))(t)
	for _, tt := range []struct{ name, input, setting, want string }{
		{"input", long, "DMARCD_LIMIT_UPLOAD=1024", "over the limit of 1024 for input bytes"},
		{"expanded", string(packtest.Gzip(long)), "DMARCD_LIMIT_EXPANDED=1024", "over the limit of 1024 for expanded bytes"},
		{"ratio", string(packtest.Gzip(large)), "DMARCD_LIMIT_RATIO=2", "over the limit of 2 for compression ratio"},
		{"members", string(several), "DMARCD_LIMIT_MEMBERS=1", "over the limit of 1 for members"},
		{"nesting", string(packtest.Gzip(packtest.Gzip(two))), "DMARCD_LIMIT_NESTING=1", "over the limit of 1 for nesting"},
		{"records", two, "DMARCD_LIMIT_RECORDS=1", "too many records"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			run := func(settings ...string) (status int, stderr string) {
				var out, errors bytes.Buffer
				environ := append([]string{"DMARCD_DATA=" + data, "DMARCD_LIMIT_MAIL=1024"}, settings...)
				p := &program{in: strings.NewReader(tt.input), out: &out, err: &errors, environ: environ}
				return p.run(t.Context(), []string{"parse", "-"}), errors.String()
			}
			if status, stderr := run(); status != exitDone || stderr != "" {
				t.Errorf("the default: got status %d and %q, want it read", status, stderr)
			}
			if status, stderr := run(tt.setting); status != exitProblem || !strings.Contains(stderr, tt.want) {
				t.Errorf("got status %d and %q, want %d and %q", status, stderr, exitProblem, tt.want)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("got %v, want no data folder", err)
			}
		})
	}
}
