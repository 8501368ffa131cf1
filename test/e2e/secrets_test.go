package e2e_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// finish stops all processes, and searches their logs, output and data for secrets and
// errors.
func (in *installation) finish() {
	in.t.Helper()
	in.mu.Lock()
	servers := slices.Clone(in.servers)
	in.mu.Unlock()
	places := map[string]string{}
	for _, s := range servers {
		if s.Running() && s.HTTP != "" {
			places["the metrics"] += s.outside("/metrics").text()
		}
	}
	for _, s := range servers {
		if s.Running() {
			s.Stop()
		}
		places["a log"] += s.Log()
		places["standard output"] += s.Printed()
	}
	places["the output of commands"] = strings.Join(in.outputs, "\n")
	places["the database"] = in.dump()

	if in.token != "" && !strings.Contains(places["the database"], "default") {
		in.t.Error("the dump of the database does not show the team default, so it shows too little")
	}
	for _, sign := range []string{"DATA RACE", "panic", `"status":500`} {
		if strings.Contains(places["a log"], sign) {
			in.t.Errorf("a log has a %s:\n%s", sign, linesWith(places["a log"], sign))
		}
	}
	if !in.mayLogErrors {
		if lines := linesWith(places["a log"], `"level":"ERROR"`); lines != "" {
			in.t.Errorf("a log has errors:\n%s", lines)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		in.searchSecrets(place, places[place])
	}
}

// searchSecrets checks that the text contains no token, with or without its prefix. The
// first start may print its token on standard output, once.
func (in *installation) searchSecrets(place, text string) {
	in.t.Helper()
	for token := range in.secrets {
		allowed := 0
		if place == "standard output" && token == in.token {
			allowed = 1
		}
		if got := strings.Count(text, strings.TrimPrefix(token, "dmd_")); got > allowed {
			in.t.Errorf("%s holds a token %d times, want %d", place, got, allowed)
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
