package spool

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// The waits between two tries of a mail, each twice the one before.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// List returns the mails in the spool, oldest first.
func (s *Spool) List() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}

// Remove removes a mail that was handled. That need not be durable: a mail that comes
// back after a crash is handled again, and what it brings is known by then.
func (s *Spool) Remove(entry *Entry) error {
	if err := os.Remove(entry.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("remove a spooled mail", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, found := slices.BinarySearchFunc(s.entries, entry.Name, byName); found {
		s.entries = slices.Delete(s.entries, at, at+1)
		s.bytes -= entry.Size
	}
	return nil
}

// Fail keeps a mail that could not be handled for another try, and returns how long
// that will wait. The count of tries is forgotten when the process ends.
func (s *Spool) Fail(entry *Entry) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := lastRetry
	// Shifting further would only pass the bound, and in the end the integer.
	if entry.failures < 16 {
		wait = min(firstRetry<<entry.failures, lastRetry)
	}
	entry.failures++
	entry.notBefore = s.config.Now().Add(wait)
	return wait
}

// due returns the oldest mails whose turn it is: at most a number, and no more than a
// number of bytes unless the first alone has more. Where there are none it returns
// how long it is until the first, 0 if the spool is empty.
func (s *Spool) due(maxEntries int, maxBytes int64) (batch []*Entry, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	var bytes int64
	for _, entry := range s.entries {
		if left := entry.notBefore.Sub(now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		if len(batch) == maxEntries || len(batch) > 0 && bytes+entry.Size > maxBytes {
			break
		}
		batch = append(batch, entry)
		bytes += entry.Size
	}
	return batch, wait
}
