package service_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSearchFinds looks for what users paste.
func TestSearchFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, service.CommandLine())
	for text, want := range map[string]service.Hit{
		"https://" + ours + "/contact": {Kind: service.HitDomain, Key: ours},
		"info@" + ours:                 {Kind: service.HitDomain, Key: ours},
		"192.0.2.1":                    {Kind: service.HitAddress, Key: "192.0.2.1"},
		"receiver.example":             {Kind: service.HitReport, Key: w.report.String()},
	} {
		hits, err := team.Search(t.Context(), text, 10)
		if err != nil || len(hits) != 1 || hits[0].Kind != want.Kind || hits[0].Key != want.Key {
			t.Errorf("%s: got %+v, %v, want %+v", text, hits, err, want)
		}
	}
	for _, text := range []string{"192.0.2.99", "192.0.2.1 198.51.100.7", "elsewhere.example"} {
		if hits, err := team.Search(t.Context(), text, 10); err != nil || len(hits) > 0 {
			t.Errorf("%s: got %+v, %v, want nothing", text, hits, err)
		}
	}
}
