package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/goldentest"
)

// TestDocumentedSettings compares docs/configuration.md with the settings.
func TestDocumentedSettings(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"Settings come from defaults, a file (`--config`, TOML or YAML), the environment and flags; later sources\n" +
		"override earlier ones. `dmarcd config` shows the effective values and their origins. A setting of dmarcd that\n" +
		"is not in this table stops the start with one line.\n\n")
	b.WriteString("| environment | in a file | default | meaning |\n|---|---|---|---|\n")
	for _, s := range config.Settings() {
		def := s.Default
		if !strings.Contains(def, " ") && def != "empty" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.Env(), s.Key, def, s.Help)
	}
	goldentest.Check(t, "../../docs/configuration.md", b.String())
}
