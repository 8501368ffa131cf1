package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// blocks returns the blocks of code of docs/api.md in a language, joined.
func blocks(t *testing.T, language string) string {
	t.Helper()
	document := string(musttest.Get(os.ReadFile("../../docs/api.md"))(t))
	var all strings.Builder
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(document, -1) {
		all.WriteString(match[1] + "\n")
	}
	if all.Len() == 0 {
		t.Fatalf("docs/api.md has no block in %s", language)
	}
	return all.String()
}

// TestDocumentOfTheAPIRuns runs the commands and programs of docs/api.md against a server.
func TestDocumentOfTheAPIRuns(t *testing.T) {
	t.Parallel()
	onSQLite(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(reporting)
		folder := t.TempDir()
		musttest.Do(t, os.WriteFile(filepath.Join(folder, "report.xml"), []byte(about("example.com", "1", 1, 1).xml()), 0o600))
		script := strings.NewReplacer("http://127.0.0.1:8080/api", s.baseURL, "dmd_...", in.token).Replace(blocks(t, "sh"))
		run := func(name, file, content string, args ...string) string {
			t.Helper()
			musttest.Do(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600))
			command := exec.CommandContext(t.Context(), name, append(args, file)...)
			command.Dir, command.Env = folder, append(os.Environ(), "DMARCD_URL="+s.baseURL, "DMARCD_API_TOKEN="+in.token)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, out)
			}
			return string(out)
		}
		out := run("bash", "api.sh", script, "-eu")
		for _, want := range []string{`"scopes"`, `"domain":"example.com"`, `"purpose":"dmarc"`, `"total":2`, `"effective_policy"`} {
			if !strings.Contains(out, want) {
				t.Errorf("curl: got an output without %s, want it:\n%s", want, out)
			}
		}
		for file, want := range map[string]string{"records.zone": "_dmarc.example.com. 3600 IN TXT", "records.tf": `resource "dns_txt_record_set"`} {
			if got := string(musttest.Get(os.ReadFile(filepath.Join(folder, file)))(t)); !strings.Contains(got, want) {
				t.Errorf("%s: got %s want %s", file, got, want)
			}
		}
		if got := run("go", "main.go", blocks(t, "go"), "run"); !strings.HasPrefix(got, "example.com ") {
			t.Errorf("Go: got %q want the domain", got)
		}
		if got := run("node", "dashboard.mjs", blocks(t, "ts")); !strings.HasPrefix(got, "example.com ") {
			t.Errorf("TypeScript: got %q want the domain", got)
		}
	})
}
