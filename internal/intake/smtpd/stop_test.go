package smtpd_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
)

// awaitDrafts returns when a number of mails is being received.
func (s *server) awaitDrafts(t *testing.T, n int) {
	t.Helper()
	eventually(t, "mails are being received", func() bool {
		drafts, err := filepath.Glob(filepath.Join(s.folder, "*.draft"))
		return err == nil && len(drafts) == n
	})
}

func TestStopping(t *testing.T) {
	t.Parallel()
	s := start(t)
	silent := s.dial(t)
	silent.expect("220 ")
	idle, sending := s.greet(t), s.greet(t)
	chunks := s.greet(t)
	sending.data("abc")
	sending.send("Subject: first half\r\n")
	chunks.begin("def")
	chunks.send("BDAT 4\r\nhalf")
	chunks.expect("250 ")
	s.awaitDrafts(t, 2)

	s.stop()
	silent.expect("421 ")
	idle.expect("421 ")
	idle.expectEnd()
	sending.say("\r\nsecond half\r\n.", "250 2.0.0")
	sending.expect("421 ")
	chunks.send("BDAT 4 LAST\r\nhalf")
	chunks.expect("250 2.0.0 OK")
	if err := <-s.ended; err != nil {
		t.Errorf("got %v want nil", err)
	}
	s.ended <- nil // for the cleanup
	if diff := cmp.Diff([]string{"Subject: first half\r\n\r\nsecond half\r\n", "halfhalf"}, s.mails(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStoppingDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.DrainTimeout = 50 * time.Millisecond })
	c := s.greet(t)
	c.data("abc")
	c.send("Subject: half")
	s.awaitDrafts(t, 1)
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("got %v want nil", err)
		}
		s.ended <- nil // for the cleanup
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
	s.wantNothing(t)
}
