package dmarcd_test

import (
	"errors"
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestParseQuota(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"domains=5": 5, "stored=10 GiB": 10 << 30, "stored=10GiB": 10 << 30, "unreadable=256MiB": 256 << 20,
		"stored=1000": 1000, "reports=none": 0, "mailboxes=default": dmarcd.QuotaDefault,
	} {
		name, got, err := dmarcd.ParseQuota(text)
		if err != nil || got != want {
			t.Errorf("%s: got %s %d and error %v, want %d", text, name, got, err, want)
		}
	}
	for _, text := range []string{"", "domains", "domains=", "domains=-1", "domains=0", "domains=5MiB", "domains=1.5", "users=5", "stored=9999999999999GiB", "stored=GiB"} {
		if name, got, err := dmarcd.ParseQuota(text); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("%q: got %s %d and error %v, want an InvalidError", text, name, got, err)
		}
	}
}

func TestQuotaCheck(t *testing.T) {
	t.Parallel()
	quota := dmarcd.Quota{dmarcd.QuotaStored: 3 << 20, dmarcd.QuotaReports: 0}
	for _, tt := range []struct {
		name string
		used dmarcd.Usage
		want string
	}{
		{"below", dmarcd.Usage{dmarcd.QuotaStored: 3<<20 - 1, dmarcd.QuotaReports: 1 << 40}, ""},
		{"used up", dmarcd.Usage{dmarcd.QuotaStored: 3 << 20}, "The team has reached its storage quota (3 MiB). Delete domains or reports, or ask the operator to raise the quota."},
	} {
		err := quota.Check(tt.used, dmarcd.QuotaReports, dmarcd.QuotaStored)
		if got := err != nil; got != (tt.want != "") || got && (err.Error() != tt.want || !errors.Is(err, dmarcd.ErrForbidden)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestFullestQuota(t *testing.T) {
	t.Parallel()
	quota := dmarcd.Quota{dmarcd.QuotaDomains: 10, dmarcd.QuotaStored: 100, dmarcd.QuotaReports: 0}
	for _, tt := range []struct {
		name  string
		quota dmarcd.Quota
		used  dmarcd.Usage
		want  dmarcd.QuotaName
		share float64
	}{
		{"nothing is limited", dmarcd.Quota{dmarcd.QuotaReports: 0}, dmarcd.Usage{dmarcd.QuotaReports: 5}, "", 0},
		{"nothing is used", quota, nil, dmarcd.QuotaDomains, 0},
		{"the largest share", quota, dmarcd.Usage{dmarcd.QuotaDomains: 2, dmarcd.QuotaStored: 50, dmarcd.QuotaReports: 1000}, dmarcd.QuotaStored, 0.5},
	} {
		if got, share := tt.quota.Fullest(tt.used); got != tt.want || share != tt.share {
			t.Errorf("%s: got %q with %v, want %q with %v", tt.name, got, share, tt.want, tt.share)
		}
	}
}
