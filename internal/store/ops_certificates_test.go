package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		musttest.Do(t, s.SaveCertificateFile(t.Context(), "a/key", []byte("first")))
		musttest.Do(t, s.SaveCertificateFile(t.Context(), "a/key", []byte("second")))
		musttest.Do(t, s.SaveCertificateFile(t.Context(), "B", []byte{0}))
		replaced := musttest.Get(s.ReplaceSecrets(t.Context(), func(sealed []byte, context string) []byte {
			if context == "a/key" {
				return append(sealed, " again"...)
			}
			return nil
		}, dmarcd.AuditEntry{Action: "secret.rotate"}))(t)
		if got := musttest.Get(s.CertificateFile(t.Context(), "a/key"))(t); string(got) != "second again" || replaced != 1 {
			t.Errorf("got %q, %d replaced", got, replaced)
		}
		if names := musttest.Get(s.CertificateFiles(t.Context()))(t); !slices.Equal(names, []string{"B", "a/key"}) {
			t.Errorf("got %q", names)
		}
		for range 2 {
			musttest.Do(t, s.DeleteCertificateFile(t.Context(), "B"))
		}
		if _, err := s.CertificateFile(t.Context(), "B"); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
		}
	})
}
