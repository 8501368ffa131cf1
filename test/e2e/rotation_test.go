package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestSecretKeyIsRotated replaces the key that encrypts secrets while dmarcd serves, and then passes it
// in the environment and by a command. Each time it uses the URL of a chat service, which is encrypted.
func TestSecretKeyIsRotated(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		var messages atomic.Int32
		chat := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { messages.Add(1) }))
		t.Cleanup(chat.Close)
		file := filepath.Join(in.data, "secret.key")
		s := in.serve()
		created := s.post("/webhooks", fmt.Sprintf(`{"url": "%s/services/first", "format": "slack"}`, chat.URL))
		created.wantStatus(t, http.StatusCreated)
		var hook struct{ ID string }
		musttest.Do(t, json.Unmarshal(created.body, &hook))
		old := string(musttest.Get(os.ReadFile(file))(t))
		deliver := func(when string) {
			t.Helper()
			before := messages.Load()
			s.post("/webhooks/"+hook.ID+"/test", "").wantStatus(t, http.StatusOK)
			if messages.Load() != before+1 {
				t.Errorf("%s: the test was not delivered", when)
			}
		}
		if out := in.do("secret", "rotate"); !strings.Contains(out, "1 secret encrypted") {
			t.Errorf("got %q, want that of one secret", out)
		}
		deliver("with the old key behind the new one")
		keys, ok := strings.CutSuffix(string(musttest.Get(os.ReadFile(file))(t)), old)
		if !ok || keys == "" {
			t.Fatal("want the old key behind the new one")
		}
		musttest.Do(t, os.WriteFile(file, []byte(keys), 0o600))
		deliver("without the old key")
		if out := in.do("secret", "rotate", "--present"); !strings.Contains(out, "0 secrets encrypted") {
			t.Errorf("got %q, want that there is nothing to do", out)
		}

		if got := in.run(command{args: []string{"doctor", "--json"}}); !strings.Contains(got.Stdout, "No entry was changed or removed.") {
			t.Errorf("doctor: got %+v, want that it finds the earlier key of the audit log", got)
		}

		s.Stop()
		moved := file + ".moved"
		musttest.Do(t, os.Rename(file, moved))
		s = in.serve("DMARCD_SECRET_KEY=" + strings.TrimSpace(keys))
		deliver("with the key in the environment")
		s.Stop()
		fromCommand := "DMARCD_SECRET_COMMAND=/bin/cat " + moved
		s = in.serve(fromCommand)
		deliver("with the key from a command")
		if got := in.run(command{args: []string{"secret", "rotate"}, settings: []string{fromCommand}}); got.Status != 2 || !strings.Contains(got.Stderr, "--present") {
			t.Errorf("got %+v, want that a key of a command is not replaced", got)
		}
		musttest.Do(t, os.WriteFile(moved, []byte(old), 0o600))
		if got := in.run(command{args: []string{"secret", "rotate", "--present"}, settings: []string{fromCommand}}); got.Status != 2 || !strings.Contains(got.Stderr, "2 secrets can be decrypted with none") {
			t.Errorf("with the old key alone: got %+v, want that the webhook's and the earlier key of the audit log are lost", got)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("a key file was created beside another source")
		}
		if status, output := in.start("DMARCD_SECRET_KEY=hello").FailedStart(); status != 2 || !strings.Contains(output, "secret.key must consist of keys") {
			t.Errorf("a wrong key: got status %d and %q", status, output)
		}
	})
}
