package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestREADMEHasEverySetting compares the table in the README with the settings.
func TestREADMEHasEverySetting(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../README.md", "<!-- settings", "<!-- /settings -->"
	readme := musttest.Get(os.ReadFile(file))(t)
	before, rest, found := strings.Cut(string(readme), begin)
	marker, rest, hasMarker := strings.Cut(rest, "\n")
	_, after, hasEnd := strings.Cut(rest, end)
	if !found || !hasMarker || !hasEnd {
		t.Fatal("the README has no markers for the settings")
	}
	goldentest.Check(t, file, before+begin+marker+"\n"+settingsTable()+end+after)
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("\n| environment | in a file | default | meaning |\n|---|---|---|---|\n")
	for _, s := range config.Settings() {
		def := s.Default
		if !strings.Contains(def, " ") && def != "empty" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.Env(), s.Key, def, s.Help)
	}
	b.WriteString("\n")
	return b.String()
}
