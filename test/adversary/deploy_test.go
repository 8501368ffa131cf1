package adversary_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestDeploymentsAreContained wants the files that operators start from to
// bound what any bug can take.
func TestDeploymentsAreContained(t *testing.T) {
	t.Parallel()
	for file, settings := range map[string][]string{
		"dmarcd.service": {`(?m)^MemoryMax=\d+[MG]$`, `(?m)^TasksMax=\d+$`, `(?m)^LimitNOFILE=\d+`, `(?m)^Restart=(on-failure|always)$`},
		"compose.yaml":   {`(?m)^\s+(mem_limit|memory): \d+[mg]`, `(?m)^\s+(pids_limit|pids): \d+`, `(?m)^\s+nofile:`, `(?m)^\s+restart: unless-stopped`},
	} {
		content := musttest.Get(os.ReadFile(filepath.Join("..", "..", "deploy", file)))(t)
		for _, setting := range settings {
			if !regexp.MustCompile(setting).Match(content) {
				t.Errorf("%s: got no line %s", file, setting)
			}
		}
	}
}
