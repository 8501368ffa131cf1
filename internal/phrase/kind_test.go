package phrase_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// TestEveryKindCanBeChosen wants each kind in one group, with a name and a line for users.
func TestEveryKindCanBeChosen(t *testing.T) {
	t.Parallel()
	var chosen []dmarcd.EventKind
	for _, group := range phrase.KindGroups() {
		chosen = append(chosen, group.Kinds...)
	}
	names := map[string]bool{}
	for _, kind := range dmarcd.EventKinds() {
		automatic := kind == dmarcd.AlertsGrouped || kind == dmarcd.AlertTest || kind == dmarcd.WebhookTest
		count := 0
		for _, c := range chosen {
			if c == kind {
				count++
			}
		}
		if automatic != (count == 0) || count > 1 {
			t.Errorf("%s is in %d groups", kind, count)
		}
		name, help := phrase.Kind(kind), phrase.KindHelp(kind)
		if strings.Contains(name, ".") || !strings.HasSuffix(help, ".") || names[name] && !automatic {
			t.Errorf("%s: got the name %q and the line %q", kind, name, help)
		}
		names[name] = true
	}
	if slices.ContainsFunc(chosen, func(k dmarcd.EventKind) bool { return !slices.Contains(dmarcd.EventKinds(), k) }) {
		t.Error("a group has an unknown kind")
	}
}
