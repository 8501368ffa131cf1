package e2e_test

import (
	"archive/zip"
	"bytes"
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

// goProxy makes a proxy of Go modules with package client of this repository as the only version of its
// module, and the modules that building the tests downloaded. It returns the environment for it.
func goProxy(t *testing.T) []string {
	t.Helper()
	const module, version = "github.com/dmarcd/dmarcd", "v0.1.0"
	folder := t.TempDir()
	versions := filepath.Join(folder, "proxy", module, "@v")
	musttest.Do(t, os.MkdirAll(versions, 0o700))
	goMod := musttest.Get(os.ReadFile("../../go.mod"))(t)
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	add := func(name string, content []byte) {
		_, err := musttest.Get(files.Create(module + "@" + version + "/" + name))(t).Write(content)
		musttest.Do(t, err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`, "../../client")
	for file := range strings.FieldsSeq(string(musttest.Get(list.Output())(t))) {
		name := musttest.Get(filepath.Rel(musttest.Get(filepath.Abs("../.."))(t), file))(t)
		add(filepath.ToSlash(name), musttest.Get(os.ReadFile(file))(t))
	}
	add("go.mod", goMod)
	musttest.Do(t, files.Close())
	for name, content := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(`{"Version": "` + version + `"}`), version + ".mod": goMod, version + ".zip": archive.Bytes(),
	} {
		musttest.Do(t, os.WriteFile(filepath.Join(versions, name), content, 0o600))
	}
	downloaded := strings.TrimSpace(string(musttest.Get(exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output())(t)))
	return []string{
		"GOPROXY=file://" + filepath.Join(folder, "proxy") + ",file://" + filepath.Join(downloaded, "cache", "download"),
		"GOMODCACHE=" + filepath.Join(folder, "modules"), "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOWORK=off",
	}
}

// TestDocumentOfTheAPIRuns runs the commands of docs/api.md, from the first to the last, against a
// server, in a folder with the programs of the document. Go and npm find what they install on this
// machine; scripts/need-node.sh installs the packages of npm.
func TestDocumentOfTheAPIRuns(t *testing.T) {
	t.Parallel()
	onSQLite(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(reporting)
		folder := t.TempDir()
		script := strings.NewReplacer("http://127.0.0.1:8080/api", s.baseURL, "dmd_...", in.token).Replace(blocks(t, "sh"))
		for file, content := range map[string]string{
			"report.xml": about("example.com", "1", 1, 1).xml(), "main.go": blocks(t, "go"), "dashboard.ts": blocks(t, "ts"), "api.sh": script,
		} {
			musttest.Do(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600))
		}
		musttest.Do(t, os.Symlink(musttest.Get(filepath.Abs("../clients/node_modules"))(t), filepath.Join(folder, "node_modules")))
		command := exec.CommandContext(t.Context(), "bash", "-eu", "api.sh")
		command.Dir, command.Env = folder, append(append(os.Environ(), goProxy(t)...), "npm_config_offline=true")
		complete, err := command.CombinedOutput()
		out := string(complete)
		if err != nil {
			t.Fatalf("docs/api.md: %v\n%s", err, out)
		}
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
		if got := strings.Count(out, "\nexample.com "); got != 2 {
			t.Errorf("got %d lines with the domain, want one of Go and one of TypeScript:\n%s", got, out)
		}
	})
}
