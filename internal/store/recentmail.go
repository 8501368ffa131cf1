package store

import (
	"slices"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// minRecent is the least number of records worth caching: fewer are read in
	// milliseconds.
	minRecent = 5000
	// maxRecentBytes bounds the cache.
	maxRecentBytes = 64 << 20
	// recentAge is how long an answer is cached after its last use.
	recentAge = 5 * time.Minute
)

// recentMail caches what was read last: users go from group to group and from source to
// source of the same days. It holds at most maxRecentBytes, and nothing that was not
// used for recentAge. It is safe for concurrent use.
type recentMail struct {
	mu     sync.Mutex
	cached []recent // the least recently used first
	bytes  int64
	// expiring tells that a timer is set for the first entry.
	expiring bool
}

// recentKey is the question, and the state of the records when it was asked. The answer
// belongs to the team.
type recentKey struct {
	team     dmarcd.TeamID
	domain   string
	from, to dmarcd.Day
	state    string
}

type recent struct {
	key    recentKey
	mail   *dmarcd.SentMail
	bytes  int64
	usedAt time.Time
}

// get returns the cached answer, or nil.
func (m *recentMail) get(key recentKey) *dmarcd.SentMail {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	at := slices.IndexFunc(m.cached, func(r recent) bool { return r.key == key })
	if at < 0 {
		return nil
	}
	found := m.cached[at]
	found.usedAt = time.Now()
	m.cached = append(slices.Delete(m.cached, at, at+1), found)
	return found.mail
}

// put caches an answer in place of the previous one to the same question.
func (m *recentMail) put(key recentKey, mail *dmarcd.SentMail) {
	if mail.Records() < minRecent || mail.Bytes() > maxRecentBytes {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	m.drop(func(r recent) bool {
		r.key.state = key.state
		return r.key == key
	})
	m.cached = append(m.cached, recent{key, mail, mail.Bytes(), time.Now()})
	for m.bytes += mail.Bytes(); m.bytes > maxRecentBytes; {
		oldest := m.cached[0].key
		m.drop(func(r recent) bool { return r.key == oldest })
	}
	m.schedule()
}

// drop removes entries; m.mu is held.
func (m *recentMail) drop(unwanted func(recent) bool) {
	m.cached = slices.DeleteFunc(m.cached, func(r recent) bool {
		if !unwanted(r) {
			return false
		}
		m.bytes -= r.bytes
		return true
	})
}

// expire removes what was not used for recentAge; m.mu is held.
func (m *recentMail) expire() {
	now := time.Now()
	m.drop(func(r recent) bool { return now.Sub(r.usedAt) >= recentAge })
}

// schedule has the first entry removed when it expires, and then the next; m.mu is held.
func (m *recentMail) schedule() {
	if m.expiring || len(m.cached) == 0 {
		return
	}
	m.expiring = true
	time.AfterFunc(time.Until(m.cached[0].usedAt.Add(recentAge)), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.expiring = false
		m.expire()
		m.schedule()
	})
}
