package spf_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

// slowZone answers later the earlier a question comes, and notes how many
// questions were open at a time.
type slowZone struct {
	*dnstest.Zone

	mu         sync.Mutex
	asked      int
	open, most int
}

func (z *slowZone) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	z.mu.Lock()
	z.asked++
	delay := time.Second / time.Duration(z.asked)
	z.open++
	z.most = max(z.most, z.open)
	z.mu.Unlock()
	time.Sleep(delay)
	z.mu.Lock()
	z.open--
	z.mu.Unlock()
	return z.Zone.Resolve(ctx, q)
}

// wideZone has n records beside one another, each with lookups of its own.
func wideZone(n int) *dnstest.Zone {
	zone := dnstest.New("")
	record := "v=spf1"
	for i := range n {
		name := fmt.Sprintf("n%d.example", i)
		record += " include:" + name
		zone.Add(
			dns.Record{Name: name, Type: dns.TXT, Text: []string{"v=spf1 a mx include:n0.example -all"}},
			dns.Record{Name: name, Type: dns.MX, Host: "mx." + name},
		)
	}
	zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{record + " -all"}})
	return zone
}

// TestExplainIsDeterministic asks one question at a time, and then many whose
// answers come out of order, with a budget that does not reach for all.
func TestExplainIsDeterministic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := spf.Limits{Questions: 50, Concurrency: 1}
		want := spf.Explain(context.Background(), wideZone(20), "example.com", limits)
		limits.Concurrency = 7
		zone := &slowZone{Zone: wideZone(20)}
		got := spf.Explain(context.Background(), zone, "example.com", limits)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got another explanation:\n%s\nwant\n%s", sketch(got), sketch(want))
		}
		if zone.most != 7 || zone.asked != 50 {
			t.Errorf("got %d questions, %d at a time, want 50 and 7", zone.asked, zone.most)
		}
	})
}

func TestExplainStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x := spf.Explain(ctx, wideZone(3), "example.com", spf.Limits{})
	if x.Status != spf.StatusInconclusive || x.Questions != 1 {
		t.Errorf("got %q after %d questions, want inconclusive after 1", x.Status, x.Questions)
	}
}
