package spool

import (
	"net/netip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// holder is what the space of the spool is shared between: a team, or the network of a
// client. The other field is zero.
type holder struct {
	team    dmarcd.TeamID
	network netip.Prefix
}

// usage is space in the spool.
type usage struct {
	entries int
	bytes   int64
}

func (u usage) plus(entries int, bytes int64) usage {
	return usage{u.entries + entries, u.bytes + bytes}
}

// holdersOf returns whom the space of a mail is counted for: the teams of its
// recipients, each in full, and the client's network.
func holdersOf(e Envelope) []holder {
	holders := make([]holder, 0, len(e.Recipients)+1)
	for _, r := range e.Recipients {
		holders = append(holders, holder{team: r.Team})
	}
	return append(holders, holder{network: clientaddr.SiteOf(e.RemoteIP)})
}

// reserve counts more entries and bytes for holders. It returns ErrFull, and counts
// nothing, if one of them would then hold more than is left: a flood stops at half of
// the space, the next one at half of the rest.
func (s *Spool) reserve(holders []holder, entries int, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	leftEntries := s.config.Limits.Entries - s.total.entries - entries
	leftBytes := min(s.config.Limits.Bytes-s.total.bytes, s.free-s.config.Limits.FreeBytes) - bytes
	for _, h := range holders {
		held := s.held[h].plus(entries, bytes)
		if held.entries > leftEntries || held.bytes > leftBytes {
			return ErrFull
		}
	}
	s.count(holders, entries, bytes)
	return nil
}

// release takes entries and bytes out of the count.
func (s *Spool) release(holders []holder, entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(holders, -entries, -bytes)
}

// count changes what holders have. The caller holds the mutex.
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

// checkFree returns ErrFull if too little is free on the disk.
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
