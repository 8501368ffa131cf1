package e2e_test

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// finish stops all processes, and searches their logs, output and data for secrets and
// errors.
func (in *installation) finish() {
	in.t.Helper()
	in.mu.Lock()
	servers := slices.Clone(in.servers)
	in.mu.Unlock()
	outputs := map[string]string{}
	for _, s := range servers {
		if s.Running() && s.HTTP != "" {
			outputs["the metrics"] += s.outside("/metrics").text()
		}
	}
	for _, s := range servers {
		if s.Running() {
			s.Stop()
		}
		outputs["a log"] += s.Log()
		outputs["standard output"] += s.Printed()
	}
	outputs["the output of commands"] = strings.Join(in.outputs, "\n")
	outputs["the database"] = in.dump()

	if in.token != "" && !strings.Contains(outputs["the database"], "default") {
		in.t.Error("the dump of the database does not show the team default, so it shows too little")
	}
	for _, sign := range []string{"DATA RACE", "panic", `"status":500`} {
		if strings.Contains(outputs["a log"], sign) {
			in.t.Errorf("a log has a %s:\n%s", sign, linesWith(outputs["a log"], sign))
		}
	}
	if !in.mayLogErrors {
		if lines := linesWith(outputs["a log"], `"level":"ERROR"`); lines != "" {
			in.t.Errorf("a log has errors:\n%s", lines)
		}
	}
	for _, output := range slices.Sorted(maps.Keys(outputs)) {
		in.searchSecrets(output, outputs[output])
	}
}

// searchSecrets checks that the text contains no token, with or without its prefix. The
// first start may print its token on standard output, once.
func (in *installation) searchSecrets(output, text string) {
	in.t.Helper()
	for token := range in.secrets {
		allowed := 0
		if output == "standard output" && token == in.token {
			allowed = 1
		}
		if got := strings.Count(text, strings.TrimPrefix(token, "dmd_")); got > allowed {
			in.t.Errorf("%s holds a token %d times, want %d", output, got, allowed)
		}
	}
}

// dump returns all rows of the database, and for SQLite the bytes of its files, which may
// contain deleted rows.
func (in *installation) dump() string {
	in.t.Helper()
	if in.t.Context().Err() != nil {
		return ""
	}
	text := in.db.Dump(in.t)
	if in.db.Engine == "sqlite" {
		for _, suffix := range []string{"", "-wal"} {
			content, err := os.ReadFile(in.db.DSN + suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				in.t.Error(err)
			}
			text += string(content)
		}
	}
	return text
}

// linesWith returns the lines that contain a word.
func linesWith(text, word string) string {
	var found strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			found.WriteString(line)
		}
	}
	return found.String()
}

// misplacedTokenIsNotRepeated sends a token where none belongs, and searches the answers
// for it. finish searches everything else.
func misplacedTokenIsNotRepeated(t *testing.T, s *server) {
	in := s.in
	secret := in.newToken("default", "--name", "misplaced")
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	rows := []struct {
		name string
		request
	}{
		{"in the query", request{method: http.MethodGet, path: "/domains?access_token=" + secret}},
		{"in the query, with a good token", request{method: http.MethodGet, path: "/domains?limit=" + secret, token: in.token}},
		{"as a day", request{method: http.MethodGet, path: "/reports?from=" + secret, token: in.token}},
		{"as a path", request{method: http.MethodGet, path: "/" + secret, token: in.token}},
		{"as a domain", request{method: http.MethodGet, path: "/domains/" + secret, token: in.token}},
		{"as a domain to verify", request{method: http.MethodPost, path: "/domains/" + secret + "/verify", token: in.token}},
		{"as a method", request{method: secret, path: "/domains", token: in.token}},
		{"as a name", adding(in.token, secret)},
		{"as a body", request{method: http.MethodPost, path: "/domains", token: in.token, body: secret, header: jsonType()}},
		{"as a media type", request{method: http.MethodPost, path: "/domains", token: in.token, body: "{}", header: map[string]string{"Content-Type": secret}}},
		{"as a request id", request{method: http.MethodGet, path: "/domains", token: in.token, header: map[string]string{"X-Request-Id": secret}}},
		{"as a user agent", request{method: http.MethodGet, path: "/domains", token: in.token, header: map[string]string{"User-Agent": secret}}},
		{"without a scheme", request{method: http.MethodGet, path: "/domains", header: map[string]string{"Authorization": secret}}},
		{"in another scheme", request{method: http.MethodGet, path: "/domains", header: map[string]string{"Authorization": "Basic " + basic}}},
		{"in a cookie", request{method: http.MethodGet, path: "/domains", header: map[string]string{"Cookie": "token=" + secret}}},
	}
	for _, row := range rows {
		a := s.send(row.request)
		text := a.text()
		for name, values := range a.header {
			text += name + strings.Join(values, "")
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s: the answer repeats the token", row.name)
		}
	}
	if strings.Contains(s.Log(), basic) {
		t.Error("the log holds an Authorization header")
	}
}
