package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// workOffLimit is how long the server may take for what it took before it was killed.
const workOffLimit = 30 * time.Second

// outcome is what a sender is told about a report.
type outcome int

const (
	silence      outcome = iota // no answer; the report may have arrived all the same
	acknowledged                // it is here
	deferred                    // it is to come again later
	refused                     // it is not wanted
)

// intakeLoad is a way in under load.
type intakeLoad struct {
	name string
	// deliver sends a report to the server, by mail to the address.
	deliver func(s *server, address string, report feedback) outcome
}

// intakeLoads returns the ways in which others send to a server that runs.
func intakeLoads() []intakeLoad {
	return []intakeLoad{{"upload", deliverUpload}, {"smtp", deliverMail}}
}

func deliverUpload(s *server, _ string, report feedback) outcome {
	r := uploading(s.in.token, report.xml())
	r.undocumented = true // other tests compare it with the document, which takes longer than the upload
	a, err := s.try(r)
	switch {
	case err != nil:
		return silence
	case a.status == http.StatusCreated || a.status == http.StatusOK:
		return acknowledged
	case a.status == http.StatusServiceUnavailable:
		return deferred
	}
	return refused
}

func deliverMail(s *server, address string, report feedback) outcome {
	switch code := smtpCode(s.tryMail("bounce@reporter.example", address, mailWith(report.xml()))); {
	case code == 0:
		return silence
	case code == 250:
		return acknowledged
	case code < 500:
		return deferred
	}
	return refused
}

// reportLedger keeps what senders were told. It is safe for concurrent use.
type reportLedger struct {
	mu           sync.Mutex
	acknowledged map[string]bool            // by report id
	told         map[outcome]map[string]int // how often, by way in
}

func newReportLedger() *reportLedger {
	told := map[outcome]map[string]int{}
	for _, o := range []outcome{silence, acknowledged, deferred, refused} {
		told[o] = map[string]int{}
	}
	return &reportLedger{acknowledged: map[string]bool{}, told: told}
}

func (l *reportLedger) note(way, id string, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[o][way]++
	if o == acknowledged {
		l.acknowledged[id] = true
	}
}

// times returns how often senders were told something, by way in.
func (l *reportLedger) times(o outcome) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.told[o])
}

// loader sends one report after the other in one way. What was not acknowledged it
// sends again, as every sender does.
type loader struct {
	load    intakeLoad
	ledger  *reportLedger
	address string
	name    string
	sent    int
}

// run sends until the process has ended, or until it is told to stop.
func (l *loader) run(s *server, stop <-chan struct{}) {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for s.Running() {
		id := fmt.Sprintf("%s-%d", l.name, l.sent)
		report := about("example.com", id, int64(1+l.sent%7), int64(l.sent%3))
		told := l.load.deliver(s, l.address, report)
		l.ledger.note(l.load.name, id, told)
		if told == acknowledged {
			l.sent++
		}
		select {
		case <-stop:
			return
		case <-pause.C:
		}
	}
}

// loaders returns so many loaders for each way in.
func loaders(ledger *reportLedger, ways []intakeLoad, address string, each int) []*loader {
	var list []*loader
	for _, load := range ways {
		for i := range each {
			list = append(list, &loader{load: load, ledger: ledger, address: address, name: fmt.Sprintf("%s%d", load.name, i)})
		}
	}
	return list
}

// settle waits until all that was acknowledged is listed, and demands that it is there
// once and that the summary is the sum of the list.
func (l *reportLedger) settle(s *server) {
	t := s.in.t
	t.Helper()
	times := map[string]int{}
	var messages, compliant int64
	daemon.Eventually(t, workOffLimit, "every acknowledged report is there", func() bool {
		clear(times)
		messages, compliant = 0, 0
		for _, r := range all[listedReport](s, "/insights/reports", 1000) {
			times[*r.ReportID]++
			messages, compliant = messages+r.Messages, compliant+r.Compliant
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for id := range l.acknowledged {
			if times[id] == 0 {
				return false
			}
		}
		// What was not acknowledged may still be on its way from the spool.
		return s.counted("") == summary(compliant, messages-compliant)
	})
	for id, n := range times {
		if n != 1 {
			t.Errorf("report %s is there %d times", id, n)
		}
	}
	if got, want := s.counted("example.com"), summary(compliant, messages-compliant); got != want {
		t.Errorf("the summary: got %s want the sum of the reports, %s", got, want)
	}
}

// wantNoRefusals demands that no report was refused for good.
func (l *reportLedger) wantNoRefusals(t *testing.T) {
	t.Helper()
	if got := l.times(refused); len(got) > 0 {
		t.Errorf("reports were refused for good: %v", got)
	}
}

// healthy demands that the doctor finds nothing wrong.
func (in *installation) healthy(settings ...string) {
	in.t.Helper()
	if r := in.run(command{args: []string{"doctor"}, settings: settings}); r.Status != 0 {
		in.t.Errorf("dmarcd doctor: got status %d want 0: %s%s", r.Status, r.Stdout, r.Stderr)
	}
}

// TestKillKeepsAcknowledgedReports kills the process at random moments while reports
// come in by every way.
func TestKillKeepsAcknowledgedReports(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		settings := receiving()
		s := in.serve(settings...)
		s.add("example.com")
		ledger := newReportLedger()
		mailbox := newMailStore(t)
		mailbox.read(in, settings...)
		ways := append(intakeLoads(), mailbox.load())
		senders := loaders(ledger, ways, in.reportAddress("default", "example.com", reporting), 2)
		// A round takes about three times as long as one of the other kill test.
		for round := range max(2, kills(t)/3) {
			var sending sync.WaitGroup
			for _, l := range senders {
				sending.Go(func() { l.run(s, nil) })
			}
			if round == 0 {
				daemon.Eventually(t, workOffLimit, "reports come in by every way", func() bool {
					return len(ledger.times(acknowledged)) == len(ways)
				})
			}
			// No wait for a condition: the moment must be any.
			<-time.After(time.Duration(50+rand.IntN(800)) * time.Millisecond)
			s.Kill()
			sending.Wait()
			dropLease(in)
			s = in.serve(settings...)
			ledger.settle(s)
		}
		ledger.wantNoRefusals(t)
		s.Stop()
		in.healthy(settings...)
		t.Logf("acknowledged %v", ledger.times(acknowledged))
	})
}
