package mtasts_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/mtasts"
)

func TestExpiresSoon(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, row := range []struct {
		name           string
		lifetime, left time.Duration
		want           bool
	}{
		{"a quarter, just renewed", 90 * day, 89 * day, false},
		{"a quarter, due for renewal", 90 * day, 30 * day, false},
		{"a quarter, not renewed", 90 * day, 14 * day, true},
		{"a year, three weeks before", 365 * day, 21 * day, false},
		{"six days, half over", 6 * day, 3 * day, false},
		{"six days, the last hours", 6 * day, 20 * time.Hour, true},
		{"over", 90 * day, 0, false}, // the connection fails
	} {
		at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		until := at.Add(row.left)
		got := mtasts.Fetched{Certificate: &x509.Certificate{NotBefore: until.Add(-row.lifetime), NotAfter: until}}.ExpiresSoon(at)
		if (len(got) == 1) != row.want || row.want && (got[0].Kind != mtasts.CertificateExpiresSoon || got[0].Text != until.Format(time.DateOnly)) {
			t.Errorf("%s: got %v want %v", row.name, got, row.want)
		}
	}
	if got := (mtasts.Fetched{}).ExpiresSoon(time.Now()); got != nil {
		t.Errorf("without a certificate: got %v", got)
	}
}
