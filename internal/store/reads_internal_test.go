package store

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestSlowReadsLeaveConnections has one team make more slow reads than there are connections.
// Another reads meanwhile.
func TestSlowReadsLeaveConnections(t *testing.T) {
	t.Parallel()
	s := musttest.Get(Open(t.Context(), filepath.Join(t.TempDir(), "dmarcd.db"), Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	musttest.Get(s.Migrate(t.Context()))(t)
	slow, end := context.WithCancel(t.Context())
	reader, _ := s.db.Pools()
	connections := reader.MaxOpenConnections
	begun := make(chan struct{}, 2*connections)
	var group sync.WaitGroup
	for range 2 * connections {
		group.Go(func() {
			_ = s.Team(1).store.longRead(slow, func(tx) error { // it can only be the error of the context
				begun <- struct{}{}
				<-slow.Done()
				return nil
			})
		})
	}
	for range connections * 3 / 4 {
		<-begun
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Team(2).LastEvent(limited); err != nil {
		t.Errorf("another team: %v", err)
	}
	if _, err := s.Teams(limited); err != nil {
		t.Errorf("the program: %v", err)
	}
	end()
	group.Wait()
}
