package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/config"
)

func TestBadFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, content string
		want                string // FILE stands for the path
	}{
		{"unknown key with a neighbour", "a.toml", `lissten = ":80"`, `file FILE: unknown key "lissten": did you mean "listen"?`},
		{"unknown key in a section", "a.yaml", "http: {cors_origin: x}", `file FILE: unknown key "http.cors_origin": did you mean "http.cors_origins"?`},
		{"removed setting", "a.toml", "[quota]\ndomains = 7", "file FILE: quota.domains is set, but this setting no longer exists; remove it"},
		{"removed setting of a section", "a.yaml", "log: {format: json}", "file FILE: log.format is set, but this setting no longer exists; remove it"},
		{"unknown key like no other", "a.toml", `colour = "blue"`, `file FILE: unknown key "colour"`},
		{"unknown section", "a.toml", "[webhooks]\nretries = 3", `file FILE: unknown key "webhooks.retries"`},
		{"case counts", "a.yaml", "Listen: :80", `file FILE: unknown key "Listen": did you mean "listen"?`},
		{"section below a setting", "a.yaml", "listen: {port: 80}", `file FILE: unknown key "listen.port"`},
		{"text for a section", "a.toml", `http = "x"`, `file FILE: "http" is a section: write its settings below it`},
		{"boolean for text", "a.yaml", "listen: true", `file FILE: "listen" must be text, a number, or a list of text`},
		{"date for text", "a.toml", "listen = 2026-11-15", `file FILE: "listen" must be text, a number, or a list of text`},
		{"list of numbers", "a.yaml", "dns: [1, 2]", `file FILE: "dns" must be text, a number, or a list of text`},
		{"list of tables", "a.toml", "[[dns]]\nhost = \"x\"", `file FILE: "dns" must be text, a number, or a list of text`},
		{"one setting in two ways", "a.yaml", "log: {level: warn}\nlog.level: info", `file FILE: "log.level" is set twice`},
		{
			"two mistakes", "a.toml", "lisdten = 1\ndatta = 2",
			`file FILE: unknown key "datta": did you mean "data"?` + "\n" + `file FILE: unknown key "lisdten": did you mean "listen"?`,
		},
		{"two documents", "a.yaml", "listen: :80\n---\nlisten: :81", "file FILE: yaml: the file must contain one document only"},
		{"another kind of file", "a.json", "{}", "file FILE: its name must end in .toml, .yaml or .yml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, tt.file, tt.content)
			_, err := config.Load(config.Input{File: path})
			if want := strings.ReplaceAll(tt.want, "FILE", path); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestBrokenFiles checks syntax errors, whose text comes from the libraries: one line that
// names the file and contains no secret.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, content string }{
		{"TOML without quotes", "a.toml", "token = " + goodToken},
		{"TOML with an open quote", "a.toml", `token = "` + goodToken},
		{"TOML key twice", "a.toml", "listen = \":1\"\nlisten = \":2\""},
		{"TOML without key", "a.toml", goodToken},
		{"YAML that is a list", "a.yaml", "- listen\n- " + goodToken},
		{"YAML that is text", "a.yaml", goodToken},
		{"YAML with a tab", "a.yaml", "http:\n\tread_timeout: 1s"},
		{"YAML key twice", "a.yaml", "token: " + goodToken + "\ntoken: " + goodToken},
		{"YAML with an open quote", "a.yaml", `token: "` + goodToken},
		{"YAML with a bad second document", "a.yaml", "listen: :80\n---\n[" + goodToken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, tt.file, tt.content)
			_, err := config.Load(config.Input{File: path})
			if err == nil {
				t.Fatal("got no error, want one")
			}
			if !strings.HasPrefix(err.Error(), "file "+path+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line that names the file", err)
			}
			if strings.Contains(err.Error(), goodToken[:20]) {
				t.Errorf("got %q, want no secret in it", err)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.toml")
	_, err := config.Load(config.Input{File: path})
	want := "read configuration: open " + path + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestEmptyFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, content string }{
		{"empty TOML", "a.toml", ""},
		{"empty YAML", "a.yaml", ""},
		{"YAML comment", "a.yaml", "# nothing yet\n"},
		{"TOML with an empty section", "a.toml", "[http]\n"},
		{"YAML with an empty section", "a.yaml", "http:\n"},
		{"YAML with an empty setting", "a.yaml", "listen:\n"},
		{"TOML with an empty setting", "a.toml", `listen = ""`},
	}
	want := load(t, config.Input{}).Config
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, config.Input{File: writeFile(t, tt.file, tt.content)}).Config
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumbersInFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, content string
		want                float64
	}{
		{"TOML whole", "a.toml", "rate_limit = 5", 5},
		{"TOML fraction", "a.toml", "rate_limit = 0.25", 0.25},
		{"TOML text", "a.toml", `rate_limit = "7"`, 7},
		{"YAML whole", "a.yaml", "rate_limit: 5", 5},
		{"YAML exponent", "a.yaml", "rate_limit: 1e3", 1000},
		{"YAML text", "a.yaml", `rate_limit: "7"`, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, config.Input{File: writeFile(t, tt.file, tt.content)}).Config.RateLimit
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
