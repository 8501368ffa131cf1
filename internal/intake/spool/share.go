package spool

import (
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

type usage struct {
	entries int
	bytes   int64
}

func (u usage) plus(entries int, bytes int64) usage {
	return usage{u.entries + entries, u.bytes + bytes}
}

// others is what other replicas have in a shared spool.
type others struct {
	total usage
	held  map[holder]usage
}

// add adds messages that are charged to holders.
func (o *others) add(holders []holder, entries int, bytes int64) {
	o.total = o.total.plus(entries, bytes)
	for _, h := range holders {
		o.held[h] = o.held[h].plus(entries, bytes)
	}
}

// holdersOf returns the holders that a message is charged to: each recipient's team, in
// full, and the client network.
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

// reserve charges entries and bytes to all holders. It returns ErrFull and charges nothing
// if a holder would then have more than the space that is left. So one flooding holder
// gets at most half of the space, a second one half of the rest, and so on.
func (s *Spool) reserve(holders []holder, entries int, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	leftEntries := s.config.Limits.Entries - s.total.entries - s.others.total.entries - entries
	leftBytes := min(s.config.Limits.Bytes-s.total.bytes-s.others.total.bytes, s.free-s.config.Limits.FreeBytes) - bytes
	for _, h := range holders {
		others := s.others.held[h]
		held := s.held[h].plus(entries+others.entries, bytes+others.bytes)
		if held.entries > leftEntries || held.bytes > leftBytes {
			return ErrFull
		}
	}
	s.count(holders, entries, bytes)
	return nil
}

// release undoes reserve.
func (s *Spool) release(holders []holder, entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(holders, -entries, -bytes)
}

// count adds entries and bytes, which may be negative, to the usage of holders. The caller
// holds s.mu.
func (s *Spool) count(holders []holder, entries int, bytes int64) {
	s.total = s.total.plus(entries, bytes)
	for _, h := range holders {
		if held := s.held[h].plus(entries, bytes); held != (usage{}) {
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
