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
	s := newSQLite(t)
	slow, end := context.WithCancel(t.Context())
	connections := s.reader.Stats().MaxOpenConnections
	begun := make(chan struct{}, 2*connections)
	var group sync.WaitGroup
	for range 2 * connections {
		group.Go(func() {
			_ = s.Team(1).store.longRead(slow, func(tx) error { // an error is that of the context
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

// TestReadersDoNotWaitForTheWriter opens all reading connections while a transaction writes.
func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	s.reader.SetMaxIdleConns(0) // each read opens a connection
	err := s.tx(t.Context(), func(tx tx) error {
		if _, err := tx.exec(t.Context(), `UPDATE schema_compatibility SET oldest = oldest`); err != nil {
			return err
		}
		_, err := s.Teams(t.Context())
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var mode int
	if err := s.own().queryRow(t.Context(), `PRAGMA auto_vacuum`, nil, &mode); err != nil || mode != 2 {
		t.Errorf("got auto_vacuum %d, %v want 2, incremental", mode, err)
	}
}

// newSQLite returns an empty store that is closed after the test.
func newSQLite(t *testing.T) *Store {
	t.Helper()
	s := musttest.Get(Open(t.Context(), filepath.Join(t.TempDir(), "dmarcd.db"), Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	musttest.Get(s.Migrate(t.Context()))(t)
	return s
}
