package resolver

import (
	"slices"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/cache"
)

// Maximum cache times, whatever the TTL. RFC 2308 §5 recommends one to three hours for
// negative answers.
const (
	maxPositiveTTL = 24 * time.Hour
	maxNegativeTTL = time.Hour
)

// bytesPerEntry bounds the memory of the cache: the average size per allowed entry. A long
// answer takes the space of several short ones.
const bytesPerEntry = 1024

// answerCache stores answers for their TTL, those that were used last.
type answerCache struct {
	now   func() time.Time
	cache *cache.Cache[dns.Question, storedAnswer]
}

type storedAnswer struct {
	dns.Answer

	at time.Time
}

func newAnswerCache(entries int, now func() time.Time) *answerCache {
	return &answerCache{now, cache.New[dns.Question, storedAnswer](entries * bytesPerEntry)}
}

// find returns the cached answer with its remaining TTLs.
func (a *answerCache) find(q dns.Question) (dns.Answer, bool) {
	stored, ok := a.cache.Get(q)
	age := a.now().Sub(stored.at)
	if !ok || age >= stored.TTL {
		return dns.Answer{}, false
	}
	return aged(stored.Answer, age), true
}

// store caches a conclusive answer, replacing an older one.
func (a *answerCache) store(answer dns.Answer) {
	if answer.Outcome == dns.Inconclusive {
		return // a failure says nothing about the name: do not cache it
	}
	if answer.TTL <= 0 {
		a.cache.Delete(answer.Question)
		return
	}
	a.cache.Put(answer.Question, storedAnswer{answer, a.now()}, max(size(answer), bytesPerEntry))
}

// aged returns a copy of the answer with TTLs reduced by age, in whole seconds.
func aged(answer dns.Answer, age time.Duration) dns.Answer {
	age = age.Truncate(time.Second)
	answer.TTL -= age
	answer.Records = slices.Clone(answer.Records)
	for i := range answer.Records {
		answer.Records[i].TTL = max(0, answer.Records[i].TTL-age)
	}
	return answer
}

// size returns the approximate size of a cached answer in bytes: its strings plus an
// allowance for structures.
func size(answer dns.Answer) int {
	const perEntry, perRecord, perString = 384, 176, 16
	bytes := perEntry + len(answer.Name)
	for _, alias := range answer.Aliases {
		bytes += perString + len(alias)
	}
	for _, r := range answer.Records {
		bytes += perRecord + len(r.Name) + len(r.Host) + len(r.Raw)
		for _, text := range r.Text {
			bytes += perString + len(text)
		}
	}
	return bytes
}
