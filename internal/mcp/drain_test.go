package mcp_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestInputEnds writes calls and ends the input at once, as a script with a pipe does.
func TestInputEnds(t *testing.T) {
	t.Parallel()
	in := install(t, storetest.SQLite(t), 0)
	input := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_domains","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_check","arguments":{"domain":"example.com"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"prompts/list"}`,
	}, "\n") + "\n"
	var output bytes.Buffer
	musttest.Do(t, in.assistant.Run(t.Context(), in.service.Team(in.team, service.CommandLine()), false, io.NopCloser(strings.NewReader(input)), unclosed{&output}))
	for _, want := range []string{`"id":1,"result"`, `"id":2,"result"`, `"id":3,"result"`, `"id":4,"result"`} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("got %s, want %s in it", &output, want)
		}
	}
}

// unclosed is an output that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
