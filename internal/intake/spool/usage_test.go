package spool_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// mailTo returns the envelope of a message from a client to teams.
func mailTo(client string, teams ...dmarcd.TeamID) spool.Envelope {
	e := envelope("a")
	e.RemoteIP = netip.MustParseAddr(client)
	e.Recipients = nil
	for _, team := range teams {
		e.Recipients = append(e.Recipients, spool.Recipient{Mailbox: "abc", Team: team})
	}
	return e
}

// TestFloodLeavesSpace fills the spool as far as one team or one network can. The message
// of another team and network must still be accepted.
func TestFloodLeavesSpace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		const plenty = 1 << 40
		// manyNetworks sends every message from another network to the same teams.
		manyNetworks := func(teams ...dmarcd.TeamID) func(int) spool.Envelope {
			return func(n int) spool.Envelope {
				return mailTo(netip.AddrFrom4([4]byte{192, 0, byte(n), 1}).String(), teams...)
			}
		}
		tests := []struct {
			name   string
			limits spool.Limits
			free   int64
			flood  func(n int) spool.Envelope
			most   int
		}{
			{
				"a team by entries",
				spool.Limits{Bytes: 1 << 20, Entries: 20},
				plenty, manyNetworks(1), 10,
			},
			{
				"a team by bytes",
				spool.Limits{Bytes: 200, Entries: 1000},
				plenty, manyNetworks(1), 10,
			},
			{
				"a team by free disk space",
				spool.Limits{Bytes: 1 << 20, Entries: 1000, FreeBytes: 1000},
				1100, manyNetworks(1), 10,
			},
			{
				"a network",
				spool.Limits{Bytes: 1 << 20, Entries: 20},
				plenty, func(n int) spool.Envelope { return mailTo("192.0.2.1", dmarcd.TeamID(100+n)) }, 10,
			},
			{
				"teams together",
				spool.Limits{Bytes: 1 << 20, Entries: 20},
				plenty, manyNetworks(1, 3, 4), 15,
			},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				config := on.configuration(t, t.TempDir())
				config.Limits = test.limits
				free := test.free
				s := openFaulty(t, config, &spool.Faults{FreeBytes: &free})
				taken := 0
				for put(s, "0123456789", test.flood(taken)) == nil {
					taken++
					free -= 10
				}
				if err := put(s, "0123456789", test.flood(taken)); !errors.Is(err, spool.ErrFull) {
					t.Errorf("got %v want %v", err, spool.ErrFull)
				}
				if taken < test.most/2 || taken > test.most {
					t.Errorf("got %d messages of the flood want %d to %d", taken, test.most/2, test.most)
				}
				if err := put(s, "0123456789", mailTo("198.51.100.1", 2)); err != nil {
					t.Errorf("a message of another team and network: %v", err)
				}
				for _, e := range s.List() {
					musttest.Do(t, s.Remove(e))
				}
				if err := put(s, "0123456789", test.flood(0)); err != nil {
					t.Errorf("after the flood: %v", err)
				}
			})
		}
	})
}

// TestMailToManyTeamsIsShared sends messages to many teams. Each team is charged for a share of them: what
// others are sent leaves a team its own half of the space.
func TestMailToManyTeamsIsShared(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		for name, limits := range map[string]spool.Limits{"entries": {Bytes: 1 << 20, Entries: 40}, "bytes": {Bytes: 400, Entries: 1000}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				config := on.configuration(t, t.TempDir())
				config.Limits = limits
				s := open(t, config)
				teams := []dmarcd.TeamID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
				const shared = 15
				for n := range shared {
					musttest.Do(t, put(s, "0123456789", mailTo(netip.AddrFrom4([4]byte{192, 0, byte(n), 1}).String(), teams...)))
				}
				// Of 40, 15 are taken. A team is charged for 1.5 of them, and gets the half of the rest.
				taken := 0
				for put(s, "0123456789", mailTo(netip.AddrFrom4([4]byte{198, 51, byte(taken), 1}).String(), 1)) == nil {
					taken++
				}
				if taken != 11 {
					t.Errorf("got %d messages of a team after those to many, want 11", taken)
				}
				for _, e := range s.List() {
					musttest.Do(t, s.Remove(e))
				}
				for n := range 20 {
					if err := put(s, "0123456789", mailTo(netip.AddrFrom4([4]byte{192, 0, byte(n), 1}).String(), 1)); err != nil {
						t.Errorf("message %d after all were removed: %v", n, err)
					}
				}
			})
		}
	})
}

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
