package store

import (
	"slices"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// leastRecent is how many records are worth remembering: fewer are read faster
	// than anybody notices.
	leastRecent = 5000
	// maxRecent is how many are remembered in all, which takes some 60 MB.
	maxRecent = 2_000_000
	// recentAge is how long they are, after they were asked for last.
	recentAge = 5 * time.Minute
)

// recentMail remembers what was read last: whoever looks at the sources of some days
// goes from group to group, and from source to source. It is safe for concurrent use.
type recentMail struct {
	mu   sync.Mutex
	kept []recent // in the order of their use
}

// recentKey is what was asked for, and the state of the records then. What it leads to
// belongs to the team.
type recentKey struct {
	team     dmarcd.TeamID
	domain   string
	from, to dmarcd.Day
	state    string
}

type recent struct {
	key     recentKey
	mail    *dmarcd.SentMail
	records int
	usedAt  time.Time
}

// get returns what is remembered, or nil.
func (m *recentMail) get(key recentKey) (mail *dmarcd.SentMail, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.kept, func(r recent) bool { return r.key == key })
	if at < 0 {
		return nil, 0
	}
	found := m.kept[at]
	found.usedAt = time.Now()
	m.kept = append(slices.Delete(m.kept, at, at+1), found)
	return found.mail, found.records
}

// put remembers what was read, in place of what the same question led to before.
func (m *recentMail) put(key recentKey, mail *dmarcd.SentMail) {
	records := 0
	for i := range mail.Shares {
		records += len(mail.Shares[i].Records)
	}
	if records < leastRecent || records > maxRecent {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(r recent) bool {
		r.key.state = key.state
		return r.key == key
	})
	m.kept = append(m.kept, recent{key, mail, records, time.Now()})
	sum := 0
	for i, r := range slices.Backward(m.kept) {
		if sum += r.records; sum > maxRecent {
			m.kept = slices.Delete(m.kept, 0, i+1)
			break
		}
	}
	time.AfterFunc(recentAge, m.forget)
}

// forget forgets what nobody asked for since some time.
func (m *recentMail) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(r recent) bool { return time.Since(r.usedAt) >= recentAge })
}
