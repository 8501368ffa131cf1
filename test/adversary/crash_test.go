package adversary_test

import (
	"strings"
	"testing"
	"time"
)

// TestMailThatEndsTheProcess ends the process whenever a certain mail is handled, as a
// mail could whose content overflows a stack or exhausts the memory: twice while it is
// verified and once while it is read. After that it is set aside, and the daemon stays.
func TestMailThatEndsTheProcess(t *testing.T) {
	const restLimit = 10 * time.Minute // the daemon waits longer after every crash
	onSQLite(t, func(t *testing.T, a *arena) {
		to, sender := a.address("mallory", "mallory.test"), "poison"+silentSuffix
		content := mailFrom(sender, string(closings(t, 200*mega)),
			"DKIM-Signature: v=1; a=rsa-sha256; d="+sender+"; s=s1; h=from; bh=AAAA; b=AAAA")
		asked := a.dns.silent.Load()
		a.mail("127.1.0.1", "x@"+sender, to, content)
		for crash := range 2 {
			eventually(t, restLimit, "the mail is verified", func() bool { return a.dns.silent.Load() > asked })
			a.d.Kill()
			asked = a.dns.silent.Load()
			a.serve()
			if crash == 0 {
				a.watch("after a crash", func() { a.work(1) })
			}
		}
		// Nothing else takes so much processor time.
		const reading = 700 * time.Millisecond
		rest := a.d.CPU()
		eventually(t, restLimit, "the mail is read", func() bool {
			now := a.d.CPU()
			if !strings.Contains(a.d.Log(), "crashes") {
				rest = now // it is still starting
			}
			return now-rest > reading
		})
		a.d.Kill()
		a.serve()
		type rejection struct {
			Reason string `json:"reason"`
		}
		var rejected []rejection
		a.watch("after the last crash", func() {
			eventually(t, restLimit, "the mail is set aside", func() bool {
				rejected = list[rejection](a.mallory, "/insights/rejected")
				return len(rejected) > 0
			})
			a.work(1)
		})
		if len(rejected) != 1 || !strings.Contains(rejected[0].Reason, "could not be handled") {
			t.Errorf("got %+v want one item that could not be handled", rejected)
		}
		a.restart()
		a.watch("after a restart", func() { a.work(1) })
		a.reported("after a mail that ends the process", a.address("victim", "victim.test"), 1)
		a.d.Stop()
	})
}
