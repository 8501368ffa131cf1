package intake_test

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// originalOf returns the stored original of a delivery.
func originalOf(t *testing.T, d *dmarcd.Delivery) string {
	t.Helper()
	content := musttest.Get(io.ReadAll(intake.Unpack(d.Original.Packed())))(t)
	if int64(len(content)) != d.Original.Size {
		t.Errorf("got %d bytes, want the %d of the original", len(content), d.Original.Size)
	}
	return string(content)
}

func TestFailureReportsAreRedacted(t *testing.T) {
	t.Parallel()
	mailbox := "From a Thu Jan  1 00:00:00 1970\n" + failureMail("jane") +
		"\nFrom b Thu Jan  1 00:00:00 1970\n" + strings.ReplaceAll(failureMail("joe"), "<1@", "<2@")
	complaint := strings.Replace(failureMail("jane"), "auth-failure", "abuse", 1)
	for _, tt := range []struct {
		name    string
		input   []byte
		without []string // texts that must not be stored
	}{
		{"a mail", []byte(failureMail("jane")), []string{"jane", "bob@", "Bob", "Dear all"}},
		{"a mailbox", []byte(mailbox), []string{"jane", "joe", "bob@", "Bob", "Dear all"}},
		{"an archive", packtest.Zip("a.eml", failureMail("jane")), []string{"jane", "bob@", "Bob", "Dear all"}},
		{"an archive with another report", packtest.Zip("a.eml", failureMail("jane"), "b.xml", opening+closing), []string{"jane", "Dear all"}},
		{"a complaint, which is rejected", []byte(complaint), []string{"jane", "bob@", "Bob", "Dear all"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			d := deliver(t, a, message(tt.input))
			stored := originalOf(t, d)
			for _, text := range tt.without {
				if strings.Contains(stored, text) {
					t.Errorf("the original holds %q:\n%s", text, stored)
				}
			}
			// The redacted original can be read again with the same result.
			again := deliver(t, a, message([]byte(stored)))
			if diff := cmp.Diff(failuresOf(d), failuresOf(again)); diff != "" {
				t.Errorf("read again (-first +second):\n%s", diff)
			}
			if got := originalOf(t, again); got != stored {
				t.Errorf("redacted twice: got\n%s\nwant\n%s", got, stored)
			}
		})
	}
}

// failuresOf returns the documents of failure reports, and the reasons of rejections.
func failuresOf(d *dmarcd.Delivery) []string {
	var all []string
	for _, report := range d.Reports {
		if report.Kind == dmarcd.KindFailure {
			all = append(all, report.Organization+" "+report.ExternalID+" "+report.Domain)
		}
	}
	for _, rejection := range d.Rejections {
		all = append(all, rejection.Reason)
	}
	return all
}

// TestLongFailureReports cuts a header in the middle of an address, which then has no at sign.
func TestLongFailureReports(t *testing.T) {
	t.Parallel()
	const limit, address = 256 << 10, "jane.roe.of.a.long.name@receiver.example"
	header, _, _ := strings.Cut(failureMail("x"), "From: Bob")
	for _, before := range []int{4, 12, 22} {
		field := "X-Long: "
		original := "From: a@example.com\n"
		original += field + strings.Repeat("a", limit-len(original)-len(field)-before-2) + "\n"
		original += " " + address + "\n\nDear all,\n\n--b--\n"
		stored := originalOf(t, deliver(t, acceptor(t), message([]byte(header+original))))
		if strings.Contains(stored, "jane") {
			t.Fatalf("cut after %d bytes of the address: the original ends with %q", before, stored[len(stored)-200:])
		}
	}
}
