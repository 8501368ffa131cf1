package imap_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// TestTryNamesTheStage wants the stage of a failure in the error and in the stored status, and an
// explanation of each.
func TestTryNamesTheStage(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		err    error // of the dialer
		change func(*imap.Reader)
		want   imap.Stage
	}{
		{name: "name", err: fmt.Errorf("%w: nothing", outbound.ErrLookup), want: imap.StageName},
		{name: "connection", err: errors.New("connection refused"), want: imap.StageConnection},
		{name: "password", change: func(r *imap.Reader) { r.Login.Password = "wrong" }, want: imap.StageLogin},
		{name: "folder", change: func(r *imap.Reader) { r.Mailbox.Folder = "Reports" }, want: imap.StageFolder},
		{name: "STARTTLS", change: func(r *imap.Reader) { r.Mailbox.Security = dmarcd.SecuritySTARTTLS }, want: imap.StageEncryption},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newTestReader(t, serve(t, allCaps(), nil))
			if row.change != nil {
				row.change(d.reader)
			}
			if row.err != nil {
				d.reader.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, row.err }
			}
			err := d.reader.Try(t.Context())
			var failed *imap.StageError
			if !errors.As(err, &failed) || failed.Stage != row.want {
				t.Fatalf("got %v, want the stage %q", err, row.want)
			}
			if stage, ok := imap.StatusStage(err.Error()); !ok || stage != row.want {
				t.Errorf("got the stage %q of the status %q", stage, err)
			}
			for _, method := range []dmarcd.LoginMethod{dmarcd.LoginPassword, dmarcd.LoginOAuth} {
				if field, message := failed.Stage.Explain(method); field == "" || message == "" {
					t.Errorf("%s: got no explanation for %s", row.want, method)
				}
			}
		})
	}
}
