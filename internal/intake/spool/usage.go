package spool

import (
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// holder identifies who uses space in the spool: a team or a client network. The other
// field is zero.
type holder struct {
	team    dmarcd.TeamID
	network netip.Prefix
}

// usage is the number of messages and their size. That of a holder is in units of 1/whole, so that
// charges add up exactly.
type usage struct{ entries, bytes int64 }

const whole = 1 << 20

func (u usage) plus(other usage) usage {
	return usage{u.entries + other.entries, u.bytes + other.bytes}
}

func (u usage) times(n int64) usage { return usage{u.entries * n, u.bytes * n} }

// charges yields what each holder is charged, in units of 1/whole: all for a network, and an equal
// part for each team.
func charges(holders []holder, u usage) iter.Seq2[holder, usage] {
	teams := int64(0)
	for _, h := range holders {
		if h.team != 0 {
			teams++
		}
	}
	return func(yield func(holder, usage) bool) {
		for _, h := range holders {
			part := int64(whole)
			if h.team != 0 {
				part /= teams
			}
			if !yield(h, u.times(part)) {
				return
			}
		}
	}
}

// others is what other replicas have in a shared spool.
type others struct {
	total usage
	held  map[holder]usage
}

// add adds messages that are charged to holders.
func (o *others) add(holders []holder, u usage) {
	o.total = o.total.plus(u)
	for h, share := range charges(holders, u) {
		o.held[h] = o.held[h].plus(share)
	}
}

// holdersOf returns the holders that a message is charged to: each recipient's team, and
// the client network.
func holdersOf(e Envelope) []holder {
	holders := make([]holder, 0, len(e.Recipients)+1)
	for _, r := range e.Recipients {
		holders = append(holders, holder{team: r.Team})
	}
	return append(holders, holder{network: clientaddr.SiteOf(e.RemoteIP)})
}

// charged returns holders as a text: ids of teams and networks, separated by spaces.
func charged(holders []holder) string {
	words := make([]string, len(holders))
	for i, h := range holders {
		if words[i] = h.network.String(); h.team != 0 {
			words[i] = strconv.FormatInt(int64(h.team), 10)
		}
	}
	return strings.Join(words, " ")
}

// parseCharged reverses charged. It skips words that are neither.
func parseCharged(text string) []holder {
	var holders []holder
	for word := range strings.FieldsSeq(text) {
		if team, err := strconv.ParseInt(word, 10, 64); err == nil {
			holders = append(holders, holder{team: dmarcd.TeamID(team)})
		} else if network, err := netip.ParsePrefix(word); err == nil {
			holders = append(holders, holder{network: network})
		}
	}
	return holders
}

// reserve charges messages and bytes to all holders. It returns ErrFull and charges nothing
// if a holder would then have more than the space that is left. So one flooding holder
// gets at most half of the space, a second one half of the rest, and so on.
func (s *Spool) reserve(holders []holder, u usage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.total.plus(s.others.total).plus(u)
	left := usage{
		int64(s.config.Limits.Entries) - used.entries,
		min(s.config.Limits.Bytes-used.bytes, s.free-s.config.Limits.FreeBytes-u.bytes),
	}.times(whole)
	for h, share := range charges(holders, u) {
		held := s.held[h].plus(s.others.held[h]).plus(share)
		if held.entries > left.entries || held.bytes > left.bytes {
			return ErrFull
		}
	}
	s.count(holders, u)
	return nil
}

// release undoes reserve.
func (s *Spool) release(holders []holder, u usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(holders, u.times(-1))
}

// count adds to the usage of holders; u may be negative. The caller holds s.mu.
func (s *Spool) count(holders []holder, u usage) {
	s.total = s.total.plus(u)
	for h, share := range charges(holders, u) {
		if held := s.held[h].plus(share); held != (usage{}) {
			s.held[h] = held
		} else {
			delete(s.held, h)
		}
	}
}

// checkFree updates s.free and returns ErrFull if it is below Limits.FreeBytes.
func (s *Spool) checkFree() error {
	free, err := s.disk.freeBytes(s.config.Folder)
	if err != nil {
		return temporary("check free disk space", err)
	}
	s.mu.Lock()
	s.free = free
	s.mu.Unlock()
	if free < s.config.Limits.FreeBytes {
		return ErrFull
	}
	return nil
}
