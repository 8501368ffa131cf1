package adversary_test

import (
	"strings"
	"testing"
)

// TestHostileMailboxes has a team read mailboxes whose hosts send answers
// without bounds, three at a time.
func TestHostileMailboxes(t *testing.T) {
	const growth = 64 << 20 // what all three may add to the daemon at rest
	attacks := imapAttacks()
	for first := 0; first < len(attacks); first += 3 {
		three := attacks[first : first+3]
		t.Run(three[0].name, func(t *testing.T) {
			onSQLite(t, func(t *testing.T, a *arena) {
				a.watch("at rest", func() { a.work(4) })
				idle := a.d.Memory.Peak()
				var hosts []*imapHost
				for _, attack := range three {
					hosts = append(hosts, startIMAP(t, attack))
				}
				attacked := func(again int64) bool {
					for _, h := range hosts {
						if h.attacked.Load() < again || h.ended.Load() < h.attacked.Load() {
							return false
						}
					}
					return true
				}
				a.watch("hostile mailboxes", func() {
					for _, h := range hosts {
						if r := read(t, a.in, "mallory", "127.0.0.1", h.port); r.Status != 0 {
							t.Fatalf("mailbox add: got status %d want 0: %s", r.Status, r.Stderr)
						}
					}
					eventually(t, mailboxLimit, "every host has attacked", func() bool { return attacked(1) || !a.d.Running() })
				})
				if got := a.d.Memory.Peak() - idle; got > growth {
					t.Errorf("the mailboxes: added %d MiB to %d at rest want at most %d", got>>20, idle>>20, growth>>20)
				}
				shown := func() bool {
					for _, problem := range mailboxes(t, a.in, "mallory") {
						if problem == "" {
							return false
						}
					}
					return true
				}
				eventually(t, mailboxLimit, "the reason is shown for every mailbox", shown)
				for _, problem := range mailboxes(t, a.in, "mallory") {
					if len(problem) > 1000 || strings.Contains(problem, "((((") || strings.Contains(problem, "aaaa") {
						t.Errorf("the reason: got %.200q want a sentence without the bytes of the host", problem)
					}
				}
				a.restart()
				a.watch("after a restart", func() { a.work(4) })
				if !shown() {
					t.Error("after a restart: a mailbox shows no reason")
				}
				a.d.Stop()
			})
		})
	}
}
