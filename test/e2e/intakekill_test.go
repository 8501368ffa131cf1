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

// workOffLimit is how long the server may take to process what it accepted before it was
// killed.
const workOffLimit = 10 * time.Minute

// outcome is the answer to a sender.
type outcome int

const (
	silence      outcome = iota // no answer; the report may have arrived
	acknowledged                // stored
	deferred                    // to be sent again later
	rejected                    // rejected for good
)

// intakeLoad is a transport under load.
type intakeLoad struct {
	name string
	// deliver sends a report to the server, by mail to the address.
	deliver func(s *server, address string, report feedback) outcome
}

// intakeLoads returns the transports that push to a running server.
func intakeLoads() []intakeLoad {
	return []intakeLoad{{"upload", deliverUpload}, {"smtp", deliverMail}}
}

func deliverUpload(s *server, _ string, report feedback) outcome {
	r := uploading(s.in.token, report.xml())
	r.undocumented = true // the comparison takes longer than the upload; other tests do it
	a, err := s.try(r)
	switch {
	case err != nil:
		return silence
	case a.status == http.StatusCreated || a.status == http.StatusOK:
		return acknowledged
	case a.status == http.StatusServiceUnavailable:
		return deferred
	}
	return rejected
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
	return rejected
}

// reportLedger records the answers to senders. It is safe for concurrent use.
type reportLedger struct {
	mu           sync.Mutex
	acknowledged map[string]bool            // by report id
	reported     map[outcome]map[string]int // number of answers by transport
}

func newReportLedger() *reportLedger {
	reported := map[outcome]map[string]int{}
	for _, o := range []outcome{silence, acknowledged, deferred, rejected} {
		reported[o] = map[string]int{}
	}
	return &reportLedger{acknowledged: map[string]bool{}, reported: reported}
}

func (l *reportLedger) note(way, id string, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported[o][way]++
	if o == acknowledged {
		l.acknowledged[id] = true
	}
}

// times returns the number of answers of a kind by transport.
func (l *reportLedger) times(o outcome) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.reported[o])
}

// loader sends reports one by one over one transport. Like every sender, it retries
// unacknowledged ones.
type loader struct {
	load    intakeLoad
	ledger  *reportLedger
	address string
	name    string
	sent    int
}

// run sends until the process ends or stop is closed.
func (l *loader) run(s *server, stop <-chan struct{}) {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for s.Running() {
		id := fmt.Sprintf("%s-%d", l.name, l.sent)
		report := about("example.com", id, int64(1+l.sent%7), int64(l.sent%3))
		reported := l.load.deliver(s, l.address, report)
		l.ledger.note(l.load.name, id, reported)
		if reported == acknowledged {
			l.sent++
		}
		select {
		case <-stop:
			return
		case <-pause.C:
		}
	}
}

// loaders returns loaders for each transport.
func loaders(ledger *reportLedger, ways []intakeLoad, address string, each int) []*loader {
	var list []*loader
	for _, load := range ways {
		for i := range each {
			list = append(list, &loader{load: load, ledger: ledger, address: address, name: fmt.Sprintf("%s%d", load.name, i)})
		}
	}
	return list
}

// settle waits until all acknowledged reports are listed, and checks that each exists
// once and that the summary is the sum of the list.
func (l *reportLedger) settle(s *server) {
	t := s.in.t
	t.Helper()
	times := map[string]int{}
	var messages, compliant int64
	daemon.Eventually(t, workOffLimit, "every acknowledged report is there, and the summaries are the sum of the reports", func() bool {
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
		// Unacknowledged reports may still be in the spool, and counted after the list was read.
		sum := summary(compliant, messages-compliant)
		return s.counted("") == sum && s.counted("example.com") == sum
	})
	for id, n := range times {
		if n != 1 {
			t.Errorf("report %s is there %d times", id, n)
		}
	}
}

// wantNoRefusals checks that no report was rejected for good.
func (l *reportLedger) wantNoRefusals(t *testing.T) {
	t.Helper()
	if got := l.times(rejected); len(got) > 0 {
		t.Errorf("reports were refused for good: %v", got)
	}
}

// healthy checks that the doctor finds no problem.
func (in *installation) healthy(settings ...string) {
	in.t.Helper()
	if r := in.run(command{args: []string{"doctor"}, settings: settings}); r.Status != 0 {
		in.t.Errorf("dmarcd doctor: got status %d want 0: %s%s", r.Status, r.Stdout, r.Stderr)
	}
}

// TestKillLosesNoAcknowledgedReports kills the process at random times while reports arrive
// over every transport.
func TestKillLosesNoAcknowledgedReports(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		settings := receiving()
		s := in.serve(settings...)
		s.add("example.com")
		ledger := newReportLedger()
		mailbox := newMailStore(t)
		mailbox.read(in, settings...)
		ways := append(intakeLoads(), mailbox.load())
		senders := loaders(ledger, ways, in.reportAddress("default", "example.com", reporting), 2)
		// A round takes about three times as long as in the other kill test.
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
			// The time must be random, so there is no condition to wait for.
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
