// Package clients checks the document of the API with the linters that others use, and generates,
// compiles and calls clients made of it: with oapi-codegen, openapi-typescript and
// @hey-api/openapi-ts. scripts/need-node.sh installs what it needs.
package clients_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// run runs a program in a folder and returns its standard output. It must succeed.
func run(t *testing.T, folder string, settings []string, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env = folder, append(os.Environ(), settings...)
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s (scripts/need-node.sh installs what it needs): %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, output, &complaints)
	}
	return string(output)
}

// npm runs a program of an npm package. None of them tells others that it runs.
func npm(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	installed := musttest.Get(filepath.Abs(filepath.Join("node_modules", ".bin", program)))(t)
	return run(t, folder, []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1"}, installed, args...)
}

// tool runs a tool of tools/go.mod.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	run(t, filepath.Join("..", ".."), nil, "go", append([]string{"tool", "-modfile=tools/go.mod", name}, args...)...)
}

// TestDocument reads the document of a running server with other programs, and calls the server.
func TestDocument(t *testing.T) {
	if testing.Short() {
		t.Log("-short: Node.js is not started")
		return
	}
	s := serve(t)
	t.Run("redocly", s.redocly)
	t.Run("spectral", s.spectral)
	t.Run("oapi-codegen", s.compileGo)
	t.Run("TypeScript", s.callTypeScript)
}

// server is a running server.
type server struct{ baseURL, token, document string }

// folder returns a new folder with the document of the server and copies of files.
func (s *server) folder(t *testing.T, files ...string) (folder, document string) {
	t.Helper()
	folder = t.TempDir()
	for _, file := range files {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, filepath.Base(file)), musttest.Get(os.ReadFile(file))(t), 0o600))
	}
	document = filepath.Join(folder, "openapi.json")
	musttest.Do(t, os.WriteFile(document, []byte(s.document), 0o600))
	return folder, document
}

// redocly holds that Redocly has nothing to say about the document.
func (s *server) redocly(t *testing.T) {
	t.Parallel()
	folder, document := s.folder(t)
	var found struct{ Problems []json.RawMessage }
	output := npm(t, folder, "redocly", "lint", "--extends=recommended", "--format=json", document)
	musttest.Do(t, json.Unmarshal([]byte(output), &found))
	for _, problem := range found.Problems {
		t.Errorf("%s", problem)
	}
}

// spectral holds that Spectral has nothing to say about the document.
func (s *server) spectral(t *testing.T) {
	t.Parallel()
	folder, document := s.folder(t, "spectral.yaml")
	npm(t, folder, "spectral", "lint", "--fail-severity=hint", "--ruleset=spectral.yaml", document)
}

// compileGo compiles a client of oapi-codegen.
func (s *server) compileGo(t *testing.T) {
	t.Parallel()
	folder, document := s.folder(t, "oapi/go.mod", "oapi/go.sum")
	tool(t, "oapi-codegen", "-generate=types,client", "-package=dmarcd", "-o="+filepath.Join(folder, "client.go"), document)
	run(t, folder, nil, "go", "build", ".")
}

// called is what an operation answered.
type called struct {
	Operation, Error string
	Status           int
	Documented       bool
}

// callTypeScript compiles clients of openapi-typescript and @hey-api/openapi-ts, and calls every
// operation with the second.
func (s *server) callTypeScript(t *testing.T) {
	t.Parallel()
	folder, document := s.folder(t, "call.ts", "tsconfig.json")
	npm(t, folder, "openapi-typescript", document, "--output=schema.ts")
	npm(t, folder, "openapi-ts", "--input="+document, "--output=hey", "--client=@hey-api/client-fetch", "--no-log-file")
	npm(t, folder, "tsc")
	tool(t, "esbuild", filepath.Join(folder, "call.ts"), "--bundle", "--platform=node", "--format=esm", "--log-level=error", "--outfile="+filepath.Join(folder, "call.mjs"))
	output := run(t, folder, []string{"TOKEN=" + s.token, "DOMAIN=example.com", "REPORT=" + report}, "node", "call.mjs")
	var answers []called
	musttest.Do(t, json.Unmarshal([]byte(output), &answers))
	for _, got := range answers {
		expected := got.Status < http.StatusBadRequest || got.Status == mayFail[got.Operation]
		if !got.Documented || !expected {
			t.Errorf("%s: got %d, documented: %t: %s", got.Operation, got.Status, got.Documented, got.Error)
		}
	}
	if want := strings.Count(s.document, `"operationId"`); len(answers) != want {
		t.Errorf("got %d answers, want those of %d operations", len(answers), want)
	}
}

// mayFail are the answers of operations that the server of the test cannot carry out: it receives no
// mail, has no question, no member, no mailbox and no zone, and may not have checked the domain yet; what
// was rejected is so again. The token manages, which does not include publishing.
var mayFail = map[string]int{
	"selfTest": http.StatusUnprocessableEntity, "answerQuestion": http.StatusUnprocessableEntity,
	"retryRejected": http.StatusUnprocessableEntity, "getLatestCheck": http.StatusNotFound,
	"setRole": http.StatusNotFound, "removeMember": http.StatusNotFound, "addMailbox": http.StatusUnprocessableEntity, "removeMailbox": http.StatusNotFound,
	"publishRecord": http.StatusForbidden, "stopRecord": http.StatusForbidden, "listRecordVersions": http.StatusNotFound,
	"setRecordTarget": http.StatusForbidden, "removeRecordTarget": http.StatusForbidden, "getRecordTarget": http.StatusNotFound,
}

// report is an aggregate report about the domain of the test.
const report = `<?xml version="1.0"?><feedback><report_metadata><org_name>receiver.example</org_name><email>dmarc@receiver.example</email>
<report_id>1</report_id><date_range><begin>1794700800</begin><end>1794787199</end></date_range></report_metadata>
<policy_published><domain>example.com</domain><p>none</p></policy_published><record><row><source_ip>192.0.2.1</source_ip><count>2</count>
<policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row><identifiers>
<header_from>example.com</header_from></identifiers><auth_results><spf><domain>example.com</domain><result>fail</result></spf></auth_results></record></feedback>`

// serve starts a server, and creates a token that may do everything.
func serve(t *testing.T) *server {
	t.Helper()
	names := resolvertest.Start(t, `
		example.com. A 192.0.2.1
		_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com;"
	`)
	data := t.TempDir()
	installation := daemon.Installation{Program: musttest.Get(daemon.Build(t.TempDir()))(t), Settings: []string{
		"DMARCD_DATABASE=" + filepath.Join(data, "dmarcd.db"), "DMARCD_DATA=" + data, "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=" + names.Addr(), "DMARCD_RATE_LIMIT=0", "DMARCD_OUTBOUND_ALLOW=127.0.0.0/8",
	}}
	running := installation.Serve(t)
	t.Cleanup(running.Stop)
	s := &server{baseURL: "http://" + running.HTTP + "/api"}
	s.token = installation.Do(t, "token", "create", "--team", "default", "--scope", "admin")
	r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.baseURL+"/openapi.json", http.NoBody))(t)
	response, err := http.DefaultClient.Do(r)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }() // it was read
	s.document = string(musttest.Get(io.ReadAll(response.Body))(t))
	return s
}
