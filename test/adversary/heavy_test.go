package adversary_test

import (
	"net/http"
	"sync"
	"testing"
)

// TestHeavyUploads has one team read much at once, by every entrance that reads
// for it.
func TestHeavyUploads(t *testing.T) {
	const uploads = 8
	size := 32 * mega
	if soak {
		size = 240 * mega
	}
	onSQLite(t, func(t *testing.T, a *arena) {
		bomb := closings(t, size)
		box := a.mailbox("mallory", "mallory.test")
		address := a.address("mallory", "mallory.test")
		a.watch("end tags that close nothing", func() {
			var attacking sync.WaitGroup
			for i := range uploads {
				attacking.Go(func() {
					path := "/reports"
					switch i % 4 {
					case 1:
						path = "/tlsrpt/" + box
					case 2:
						if err := a.tryMail("127.1.0.1", "x@mallory.test", address, mailFrom("mallory.test", string(bomb))); smtpCode(err) == 0 {
							t.Errorf("a heavy mail: %v", err)
						}
						return
					}
					got, err := a.mallory.try(t.Context(), http.MethodPost, path, "application/octet-stream", bomb)
					if err != nil {
						t.Errorf("a heavy upload to %s: %v", path, err)
					}
					if got.status == http.StatusInternalServerError {
						t.Errorf("a heavy upload to %s: got %v", path, got)
					}
				})
			}
			attacking.Wait()
		})
		a.d.Stop()
	})
}
