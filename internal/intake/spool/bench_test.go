package spool_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// BenchmarkSpool accepts a message of 4 KiB and removes it, without the work in between.
func BenchmarkSpool(b *testing.B) {
	text := strings.Repeat("0123456789abcdef", 256)
	for _, name := range []string{"files", "postgres"} {
		b.Run(name, func(b *testing.B) {
			config := configuration(b.TempDir())
			if name == "postgres" {
				config.Database = storetest.Postgres(b).Open(b, store.Options{})
			}
			s := musttest.Get(spool.Open(config))(b)
			defer func() { _ = s.Close() }() // empty
			for b.Loop() {
				musttest.Do(b, put(s, text, envelope("a")))
				musttest.Do(b, s.Remove(s.List()[0]))
			}
		})
	}
}
