package insight

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

const (
	// cachedRecords is the least number of records for which an answer is cached: it takes a scan of
	// all of them.
	cachedRecords = 20_000
	// cachedParts is the least number of records for which small parts are cached: they may have been
	// read row by row.
	cachedParts = 1000
	// answerAge is how long an answer is reused while the records are the same: the names of
	// addresses and the first and last days of senders change without them.
	answerAge = time.Minute
	// maxAnswers limits the cache for all teams, maxTeamAnswers for one team, in bytes. Parts may use
	// half of either: an answer saves more time and takes less memory.
	maxAnswers     = 16 << 20
	maxTeamAnswers = 2 << 20
	// entryBytes is the overhead of an entry.
	entryBytes = 1 << 10
	// sweepEvery limits how often a full cache is searched for expired answers.
	sweepEvery = time.Second
)

// basis identifies the input of an answer: equal bases give equal answers.
type basis struct {
	team     dmarcd.TeamID
	domain   string
	from, to dmarcd.Day
	state    dmarcd.SentState
	sample   bool
	senders  [sha256.Size]byte // of the team
}

// newBasis returns the basis of answers, nil if they must not be cached.
func newBasis(team dmarcd.TeamID, domain string, days dmarcd.Days, state dmarcd.SentState, sample bool, own []dmarcd.TeamSender) *basis {
	if state.Records < cachedParts || state.Days == 0 || days.From == nil || days.To == nil {
		return nil
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q", own) // a hash has no errors
	return &basis{team, domain, *days.From, *days.To, state, sample, [sha256.Size]byte(sum.Sum(nil))}
}

type answerKey struct {
	basis
	question string
	query    Query
	known    [sha256.Size]byte // of the domains
}

type answer struct {
	value any
	bytes int
	until time.Time
}

// answers caches answers. An answer is never changed. One that does not fit is not cached:
// others expire soon. The zero value is ready to use.
type answers struct {
	mu    sync.Mutex
	known map[answerKey]answer
	// bytes is the size of known, ofTeam the size by team, swept the time of the last sweep.
	bytes  int
	ofTeam map[dmarcd.TeamID]int
	swept  time.Time
}

func (a *answers) get(key answerKey, now time.Time) (any, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[key]
	return found.value, ok && now.Before(found.until)
}

func (a *answers) put(key answerKey, value any, bytes int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes += entryBytes
	divisor := 1
	if key.question == parts {
		divisor = 2
	}
	fits := func() bool {
		return a.bytes+bytes <= maxAnswers/divisor && a.ofTeam[key.team]+bytes <= maxTeamAnswers/divisor
	}
	if since := now.Sub(a.swept); since >= answerAge || since >= sweepEvery && !fits() {
		a.sweep(now)
	}
	a.charge(key.team, -a.known[key].bytes)
	delete(a.known, key)
	if fits() {
		a.known[key] = answer{value, bytes, now.Add(answerAge)}
		a.charge(key.team, bytes)
	}
}

func (a *answers) charge(team dmarcd.TeamID, bytes int) {
	a.bytes += bytes
	a.ofTeam[team] += bytes
}

// sweep removes the answers that have expired.
func (a *answers) sweep(now time.Time) {
	known := a.known
	a.known, a.bytes, a.ofTeam, a.swept = make(map[answerKey]answer), 0, make(map[dmarcd.TeamID]int), now
	for key, old := range known {
		if now.Before(old.until) {
			a.known[key] = old
			a.charge(key.team, old.bytes)
		}
	}
}

// answered returns the answer to a question from the cache, or computes it.
func answered[T any](m *Mail, question string, q Query, compute func() (T, error)) (T, error) {
	if m.basis == nil || m.records < cachedRecords {
		return compute()
	}
	key := answerKey{*m.basis, question, q, knowledge(m.about)}
	if found, ok := m.service.answers.get(key, time.Now()); ok {
		value, _ := found.(T)
		return value, nil
	}
	value, err := compute()
	if err != nil {
		return value, err
	}
	if text, err := json.Marshal(value); err == nil { // about as long as what it takes
		m.service.answers.put(key, value, len(question)+len(text), time.Now())
	}
	return value, nil
}

// knowledge hashes the knowledge about domains. The ids of checks stand for their facts, which do not
// change.
func knowledge(about []Domain) [sha256.Size]byte {
	sum := sha256.New()
	for _, d := range about {
		_, _ = fmt.Fprintf(sum, "%d %q %d %q", d.ID, d.Name, d.Check, d.Classes) // a hash has no errors
		for _, check := range d.Checks {
			_, _ = fmt.Fprintf(sum, " %d %d", check.ID, check.FirstAt.Unix())
		}
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// cachedParts returns cached parts that include some days, nil if there are none.
func (m *Mail) cachedParts(days dmarcd.Days) []rollup.Part {
	if m.parts != nil && m.partDays.Covers(days) {
		return m.parts
	}
	if m.basis == nil {
		return nil
	}
	for _, read := range []dmarcd.Days{m.window, m.days} {
		if !read.Covers(days) {
			continue
		}
		if found, ok := m.service.answers.get(m.partsKey(read), time.Now()); ok {
			m.parts, _ = found.([]rollup.Part)
			m.partDays = read
			return m.parts
		}
	}
	return nil
}

// cacheParts caches the parts of some days for the next scan, of this mail or another.
func (m *Mail) cacheParts(days dmarcd.Days, read []rollup.Part, bytes int) {
	m.parts, m.partDays = read, days
	if m.basis != nil {
		m.service.answers.put(m.partsKey(days), read, bytes, time.Now())
	}
}

// parts is the question for the parts of some days.
const parts = "parts"

func (m *Mail) partsKey(days dmarcd.Days) answerKey {
	key := answerKey{basis: *m.basis, question: parts}
	key.from, key.to = *days.From, *days.To // a basis has no open ends
	return key
}
