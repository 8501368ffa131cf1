package mmdb_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

func one(err error) func(yield func(mmdb.Range, error) bool) {
	return func(yield func(mmdb.Range, error) bool) {
		r := mmdb.Range{First: netip.MustParseAddr("192.0.2.0"), Last: netip.MustParseAddr("192.0.2.9"), Number: 64496, Name: "One"}
		if yield(r, nil) && err != nil {
			yield(mmdb.Range{}, err)
		}
	}
}

func TestWriteGivesTheSameBytesAgain(t *testing.T) {
	t.Parallel()
	options := mmdb.Options{Type: "Test", Description: "A test.", Built: time.Unix(1781654400, 0)}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := mmdb.Write(w, options, one(nil)); err != nil {
			t.Fatalf("got %v, want a database", err)
		}
	}
	if first.Len() == 0 || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("got %d and %d bytes that differ, want the same", first.Len(), second.Len())
	}
}

// full is a writer without room.
type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

func TestWriteReturnsErrors(t *testing.T) {
	t.Parallel()
	want := errors.New("cut off")
	if err := mmdb.Write(&bytes.Buffer{}, mmdb.Options{}, one(want)); !errors.Is(err, want) {
		t.Errorf("got %v from the ranges, want %v", err, want)
	}
	if err := mmdb.Write(full{want}, mmdb.Options{}, one(nil)); !errors.Is(err, want) {
		t.Errorf("got %v from the writer, want %v", err, want)
	}
}
