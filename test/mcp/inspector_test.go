// Package mcp calls the tools of the built binary with the inspector of the Model Context Protocol, an
// npm package run by Node.js, over both transports. The tests of internal/mcp use the client for Go.
// scripts/need-node.sh installs what it needs.
package mcp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestInspector lists and calls the tools of a team, over standard input and output and over HTTP.
func TestInspector(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log("-short: Node.js is not started")
		return
	}
	in := daemon.Installation{
		Program: musttest.Get(daemon.Build(t.TempDir()))(t),
		Settings: []string{
			"DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_DNS=127.0.0.1:1", "PATH=" + os.Getenv("PATH"),
		},
	}
	server := in.Serve(t)
	in.Do(t, "domain", "add", "--team", "default", "example.com")
	reading := strings.TrimSpace(in.Do(t, "token", "create", "--team", "default", "--name", "r", "--scope", "read"))
	writing := strings.TrimSpace(in.Do(t, "token", "create", "--team", "default", "--name", "w", "--scope", "write"))
	endpoint := "http://" + server.HTTP + "/mcp"
	overHTTP := func(token string) []string {
		return []string{endpoint, "--transport", "http", "--header", "Authorization: Bearer " + token}
	}
	for _, test := range []struct {
		name   string
		target []string
		rest   []string // arguments of the command
		writes bool
	}{
		{"streams", []string{in.Program}, []string{"mcp", "--team", "default"}, false},
		{"HTTP", overHTTP(reading), nil, false},
		{"HTTP, a token that may write", overHTTP(writing), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tools := inspect(t, in, test.target, test.rest, "--method", "tools/list")
			if !bytes.Contains(tools, []byte(`"list_domains"`)) || bytes.Contains(tools, []byte(`"verify_domain"`)) != test.writes {
				t.Errorf("got tools %s", tools)
			}
			domains := inspect(t, in, test.target, test.rest, "--method", "tools/call", "--tool-name", "list_domains", "--tool-arg", "search=example")
			var result struct {
				StructuredContent struct {
					Data struct {
						Items []struct {
							Domain string `json:"domain"`
						} `json:"items"`
					} `json:"data"`
				} `json:"structuredContent"`
			}
			if err := json.Unmarshal(domains, &result); err != nil || len(result.StructuredContent.Data.Items) != 1 || result.StructuredContent.Data.Items[0].Domain != "example.com" {
				t.Errorf("got %s, want example.com", domains)
			}
		})
	}
}

// inspect runs the inspector once and returns what it prints.
func inspect(t *testing.T, in daemon.Installation, target, rest []string, method ...string) []byte {
	t.Helper()
	arguments := slices.Concat([]string{"node_modules/@modelcontextprotocol/inspector-cli/build/index.js"}, target, method, []string{"--"}, rest)
	inspector := exec.CommandContext(t.Context(), "node", arguments...)
	inspector.Env = in.Settings
	var complaints bytes.Buffer
	inspector.Stderr = &complaints
	output, err := inspector.Output()
	if err != nil {
		t.Fatalf("the inspector (scripts/need-node.sh installs what it needs): %v\n%s\n%s", err, &complaints, output)
	}
	return output
}
