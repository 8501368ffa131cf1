package adversary_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
)

// TestManySignIns tries many passwords at once, for the victim and for users
// that do not exist, from many addresses: each try costs the daemon memory and
// time on purpose.
func TestManySignIns(t *testing.T) {
	const clients, tries = 20, 4
	onSQLite(t, func(t *testing.T, a *arena) {
		a.watch("many sign-ins", func() {
			var attacking sync.WaitGroup
			for i := range clients {
				attacking.Go(func() {
					attacker := *a.mallory
					attacker.client = newClient(t, fmt.Sprintf("127.1.%d.1", i))
					for n := range tries {
						form := url.Values{"email": {fmt.Sprintf("user%d-%d@elsewhere.test", i, n)}, "password": {"guess"}}
						got, err := attacker.try(t.Context(), http.MethodPost, "/app/sign-in", "application/x-www-form-urlencoded", []byte(form.Encode()))
						if err != nil {
							t.Errorf("sign in: %v", err)
							return
						}
						if got.status == http.StatusSeeOther || got.status == http.StatusInternalServerError {
							t.Errorf("sign in: got %v want it refused", got)
						}
					}
				})
			}
			attacking.Wait()
		})
		a.d.Stop()
	})
}
