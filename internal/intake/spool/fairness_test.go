package spool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestSlowMailsDelayNoOther floods the spool with messages that take long to verify or to
// store. A message for another team, or for the same team from another network, must not
// wait for them.
func TestSlowMailsDelayNoOther(t *testing.T) {
	t.Parallel()
	const (
		slow  = 10 * time.Second
		flood = 120
	)
	oneNetwork := func(n int) spool.Envelope { return mailTo("192.0.2.1", dmarcd.TeamID(1+n%20)) }
	tests := []struct {
		name   string
		flood  func(n int) spool.Envelope
		victim spool.Envelope
		within map[string]time.Duration // how long the victim may wait, by stage
	}{
		{"another team", func(int) spool.Envelope { return mailTo("192.0.2.1", 1) }, mailTo("198.51.100.1", 2), nil},
		{"another team, from the same network", func(int) spool.Envelope { return mailTo("192.0.2.1", 1) }, mailTo("192.0.2.2", 2), nil},
		{"the same team", func(int) spool.Envelope { return mailTo("192.0.2.1", 1) }, mailTo("198.51.100.1", 1), nil},
		{"many teams attacked from one network", oneNetwork, mailTo("198.51.100.1", 100), nil},
		{"many teams and networks", func(n int) spool.Envelope {
			return mailTo(fmt.Sprintf("192.0.%d.1", n%10), dmarcd.TeamID(1+n/10%10))
		}, mailTo("198.51.100.1", 100), map[string]time.Duration{"verify": slow}},
	}
	for _, test := range tests {
		for _, stage := range []string{"verify", "store"} {
			t.Run(test.name+", "+stage, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					config := configuration(t.TempDir())
					config.Limits.Entries = 1000
					s := open(t, config)
					r := newRecorder(t)
					wait := func(text string) {
						if strings.HasPrefix(text, "flood") {
							time.Sleep(slow)
						}
					}
					if stage == "verify" {
						r.verify = wait
					} else {
						r.answer = func(text string, _ dmarcd.TeamID, _ int) error {
							wait(text)
							return nil
						}
					}
					for i := range flood {
						musttest.Do(t, put(s, fmt.Sprint("flood ", i), test.flood(i)))
					}
					stop := work(t, s, r)
					defer stop()
					synctest.Wait()
					musttest.Do(t, put(s, "victim", test.victim))
					time.Sleep(test.within[stage])
					synctest.Wait()
					if got := r.all(); !slices.Contains(got, fmt.Sprint("victim for ", test.victim.Recipients[0].Team)) {
						t.Errorf("got %d messages stored after %s want the victim among them", len(got), test.within[stage])
					}
					time.Sleep(2 * time.Hour) // the flood is stored too
					synctest.Wait()
					if got := len(r.all()); got != flood+1 {
						t.Errorf("got %d messages stored want %d", got, flood+1)
					}
				})
			})
		}
	}
}
