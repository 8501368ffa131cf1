package config_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/goldentest"
)

// TestNames derives the names of a variable and a flag from the key of a setting. The table in
// docs/configuration.md, which TestDocumentedSettings compares, has the names themselves.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, s := range config.Settings() {
		words := strings.ReplaceAll(s.Key, ".", "_")
		if env := "DMARCD_" + strings.ToUpper(words); s.Env() != env {
			t.Errorf("%s: got the variable %s, want %s", s.Key, s.Env(), env)
		}
		if flag := strings.ReplaceAll(words, "_", "-"); s.Flag() != flag {
			t.Errorf("%s: got the flag %s, want %s", s.Key, s.Flag(), flag)
		}
	}
}

func TestEverySettingIsExplained(t *testing.T) {
	t.Parallel()
	oneLine := regexp.MustCompile(`^[^\n|]{8,120}$`)
	kinds := []string{"text", "list", "duration", "number", "size", "word"}
	var envs []string
	for _, s := range config.Settings() {
		if !oneLine.MatchString(s.Help) || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: got help %q, want one short line without a full stop", s.Key, s.Help)
		}
		if s.Default == "" {
			t.Errorf("%s: got no default, want a value or a description", s.Key)
		}
		if !slices.Contains(kinds, s.Kind) {
			t.Errorf("%s: got kind %q, want one of %v", s.Key, s.Kind, kinds)
		}
		if (s.Kind == "word") != (len(s.Words) > 1) {
			t.Errorf("%s: got the words %q, want some only for the kind word", s.Key, s.Words)
		}
		// http.max and http_max would have the same variable.
		if slices.Contains(envs, s.Env()) {
			t.Errorf("%s: got variable %s twice, want one each", s.Key, s.Env())
		}
		envs = append(envs, s.Env())
	}
}

func TestSettingsBelongToTheCaller(t *testing.T) {
	t.Parallel()
	config.Settings()[0].Key = "changed"
	if got := config.Settings()[0].Key; got != "database" {
		t.Errorf("got %q, want %q", got, "database")
	}
}

func TestUnknownEnvironment(t *testing.T) {
	t.Parallel()
	got := config.UnknownEnvironment([]string{
		"HOME=/root",
		"DMARCD_LISTEN=:80",
		"DMARCD_TEST_POSTGRES=postgres://localhost/x",
		"DMARCD_CORPUS=corpus",
		"DMARCD_TOKENS=dmd_x",
		"DMARCD_DNS_TIMEOUT=2s",
		"DMARCD_LISEN=:81",
		"DMARCD_COLOUR=blue",
		"DMARCD_X=1",
		"DMARCD_=",
		"dmarcd_listen=:82",
		"DMARCDX=1",
	})
	want := []config.UnknownName{
		{Name: "DMARCD_"},
		{Name: "DMARCD_COLOUR"},
		{Name: "DMARCD_DNS_TIMEOUT"},
		{Name: "DMARCD_LISEN", Nearest: "DMARCD_LISTEN"},
		{Name: "DMARCD_TOKENS", Nearest: "DMARCD_TOKEN"},
		{Name: "DMARCD_X"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown variables (-want +got):\n%s", diff)
	}
	if got := config.UnknownEnvironment([]string{"DMARCD_DATA=x"}); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}

func TestRemovedSettings(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Input{Environ: []string{"DMARCD_QUOTA_DOMAINS=7", "DMARCD_LOG_FORMAT=", "DMARCD_LISTEN=:80"}})
	if want := "DMARCD_QUOTA_DOMAINS is set, but this setting no longer exists; remove it"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := config.RemovedFlag("http-read-timeout"); err == nil || !strings.HasPrefix(err.Error(), "--http-read-timeout is set") {
		t.Errorf("got %v, want an error that names the flag", err)
	}
	for _, s := range config.Settings() {
		if err := config.RemovedFlag(s.Flag()); err != nil {
			t.Errorf("%s: got %v, want no error for a setting", s.Key, err)
		}
	}
}

// TestSettingsAreFew keeps what no operator would change a constant.
func TestSettingsAreFew(t *testing.T) {
	t.Parallel()
	if n := len(config.Settings()); n > 65 {
		t.Errorf("got %d settings, want at most 65", n)
	}
}

// TestDocumentedSettings compares docs/configuration.md with the settings.
func TestDocumentedSettings(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"Settings come from defaults, a file (`--config`, TOML or YAML), the environment and flags; later sources\n" +
		"override earlier ones. `dmarcd config` shows the effective values and their origins. A setting of dmarcd that\n" +
		"is not in this table stops the start with one line. Durations are such as `90s`, `12h`, `30d` or `12w`.\n\n")
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
