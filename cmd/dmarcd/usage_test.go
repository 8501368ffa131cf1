package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// eachCommand calls f with every executable command of ours.
func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		eachCommand(sub, f)
	}
	if !cmd.HasSubCommands() {
		f(cmd)
	}
}

// redirected matches what the shell removes from a line.
var redirected = regexp.MustCompile(`\s+([<>|#]|&&).*`)

// wantRight checks that a line is valid usage.
func wantRight(t *testing.T, line string) *cobra.Command {
	t.Helper()
	var words []string
	for i, part := range strings.Split(redirected.ReplaceAllString(line, ""), `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	cmd, args, err := (&program{}).rootCommand().Find(words[1:])
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	for _, check := range []func() error{
		func() error { return cmd.ValidateArgs(cmd.Flags().Args()) }, cmd.ValidateRequiredFlags, cmd.ValidateFlagGroups,
	} {
		if err == nil {
			err = check()
		}
	}
	if err != nil {
		t.Errorf("%q: got %v, want a line that can be run", line, err)
	}
	return cmd
}

func TestEveryCommandShowsHowItIsCalled(t *testing.T) {
	t.Parallel()
	eachCommand((&program{}).rootCommand(), func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s: got no example in its help", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  "+cmd.CommandPath()) || wantRight(t, line).CommandPath() != cmd.CommandPath() {
				t.Errorf("%s: got the example %q, want one of itself", cmd.CommandPath(), line)
			}
		}
	})
}

func TestDocumentsCallCommandsRightly(t *testing.T) {
	t.Parallel()
	for document, least := range map[string]int{"README.md": 4, "docs/commands.md": 20} {
		content := musttest.Get(os.ReadFile("../../" + document))(t)
		lines := regexp.MustCompile(`(?m)^bin/dmarcd .*`).FindAllString(string(content), -1)
		if len(lines) < least {
			t.Errorf("%s: got %d lines with commands, want at least %d", document, len(lines), least)
		}
		for _, line := range lines {
			wantRight(t, line)
		}
	}
}

// TestWrongUsageLeadsToTheHelp checks that usage errors refer to the help and that other
// errors do not.
func TestWrongUsageLeadsToTheHelp(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	for _, tt := range []struct {
		line   string
		status int
		see    string // "" for no hint
	}{
		{"nothing", exitFailed, "dmarcd"},
		{"team nothing", exitFailed, "dmarcd team"},
		{"parse", exitFailed, "dmarcd parse"},
		{"serve now", exitFailed, "dmarcd serve"},
		{"serve --listn :80", exitFailed, "dmarcd serve"},
		{"token create", exitFailed, "dmarcd token create"},
		{"mailbox add --team acme --host a --user b", exitFailed, "dmarcd mailbox add"},
		{"parse --json --csv x", exitFailed, "dmarcd parse"},
		{"parse missing.xml", exitFailed, ""},
		{"parse ../../internal/intake/unpack/testdata/no-report.eml", exitProblem, ""},
		{"config --listen nowhere", exitFailed, ""},
	} {
		status, _, stderr := runProgram(t, server, "", strings.Fields(tt.line)...)
		advice := `; see "` + tt.see + ` --help"` + "\n"
		if got := strings.HasSuffix(stderr, advice); status != tt.status || got != (tt.see != "") || tt.see == "" && strings.Contains(stderr, "--help") {
			t.Errorf("%s: got status %d and %q, want %d and advice about %q", tt.line, status, stderr, tt.status, tt.see)
		}
	}
}

// TestErrorsListTheChoices checks that errors say in words what can be given instead.
func TestErrorsListTheChoices(t *testing.T) {
	t.Parallel()
	server, data := resolvertest.Start(t, ""), "--data="+t.TempDir()
	for _, line := range []string{"team create acme", "domain add --team acme example.com"} {
		if status, _, stderr := runProgram(t, server, "", append(strings.Fields(line), data)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	kinds := "There are no events of the kind \"foo\". The kind must be one of record.appeared, record.changed, "
	for _, tt := range []struct {
		line   string
		status int
		want   string
	}{
		{"webhook add --team acme --kind foo https://example.com/", exitProblem, kinds},
		{"alert list --team acme --kind foo", exitFailed, kinds},
		{"event list --team acme --kind foo", exitFailed, "digest.monthly or digest.managers.\n"},
		{"domain sender --team acme example.com AS64496 foo", exitFailed, "must be yours, forwarder, unknown, spoofing or automatic"},
		{"domain sender --team acme example.com bad_key yours", exitProblem, "such as sendgrid or AS64496:yours, an address, or a network of at least /8 for IPv4 and /32 for IPv6"},
		{"domain sender --team acme example.com nosuch yours", exitProblem, "There is no such sender"},
		{"domain sender --team acme example.com 10.0.0.0/7 yours", exitProblem, "a network of at least /8 for IPv4"},
		{"domain answer --team acme example.com sendgrid:rest not_yours", exitFailed, "must be yours or not-yours"},
		{"domain answer --team acme example.com sendgrid:rest yours", exitProblem, "There is no open question about this sender"},
		{"domain forwarding --team acme example.com many", exitFailed, "must be a whole number"},
		{"domain parked --team acme example.com maybe", exitFailed, "must be yes or no"},
		{"domain parked --team acme example.com yess", exitFailed, `(did you mean "yes"?)`},
		{"domain purpose --team acme example.com persnal", exitFailed, `nonprofit or none (did you mean "personal"?)`},
		{"report list --team acme --state foo", exitFailed, "counted, excluded, replaced or held"},
		{"report list --team acme --state exclude", exitFailed, `--state "exclude" is not valid (did you mean "excluded"?); see "dmarcd report list --help"`},
		{"alert list --team acme --kind policy.weakend", exitFailed, `(did you mean "policy.weakened"?)`},
		{"webhook add --team acme --kind policy.weakened,spoofing.bust https://example.com/", exitFailed, `"spoofing.bust" is not valid (did you mean "spoofing.burst"?)`},
		{"doctr", exitFailed, `unknown command "doctr" (did you mean "doctor"?)`},
		{"domain lits", exitFailed, `unknown command "lits" (did you mean "list"?)`},
		{"domain lits --team acme", exitFailed, `unknown command "lits" (did you mean "list"?); see "dmarcd domain --help"`},
		{"serv --listen :80", exitFailed, `unknown command "serv" (did you mean "serve"?)`},
		{"domain list --team acme --jsno", exitFailed, "unknown flag: --jsno (did you mean --json?)"},
		{"serve --mx-probe onn", exitFailed, `(did you mean "on"?)`},
		{"token create --team acme --expires 30x", exitFailed, "unknown unit"},
		{"domain sender --team acme example.com AS64496 forwader", exitFailed, `automatic (did you mean "forwarder"?)`},
		{"report delete --team acme rej_x rep_x foo", exitProblem, `"foo": A report's id`},
		{"report exclude --team acme rep_x foo", exitProblem, `"foo": A report's id`},
		{"report retry --team acme rej_x foo", exitProblem, `"foo": The id of`},
		{"parse --json --csv x", exitFailed, "dmarcd: use only one of --json, --csv and --summary;"},
		{"export --team acme --syslog udp://x --output y", exitFailed, "dmarcd: use only one of --syslog and --output;"},
		{"mailbox add --team acme --host a --user b --password-file c --oauth-file d", exitFailed, "dmarcd: use only one of --password-file and --oauth-file;"},
	} {
		status, _, stderr := runProgram(t, server, "", append(strings.Fields(tt.line), data)...)
		if status != tt.status || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: got status %d and %q, want %d and %q", tt.line, status, stderr, tt.status, tt.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	database := "--database=" + t.TempDir() + "/dmarcd.db"
	offered := func(words ...string) []string {
		t.Helper()
		var out, errors bytes.Buffer
		p := &program{in: strings.NewReader(""), out: &out, err: &errors}
		if status := p.run(t.Context(), append([]string{"__complete"}, words...)); status != exitDone {
			t.Fatalf("%v: got status %d: %s", words, status, errors.String())
		}
		return strings.Fields(out.String())
	}
	const files, noFiles, byExtension = ":0", ":4", ":8"
	if got := offered("token", "create", database, "--team", ""); !cmp.Equal(got, []string{noFiles}) {
		t.Errorf("teams without a database: got %v, want none", got)
	}
	if _, err := os.Stat(strings.TrimPrefix(database, "--database=")); !os.IsNotExist(err) {
		t.Errorf("got %v, want that asking made no database", err)
	}
	for _, name := range []string{"acme", "beta"} {
		if status, _, stderr := runProgram(t, resolvertest.Start(t, ""), "", "team", "create", name, database); status != exitDone {
			t.Fatal(stderr)
		}
	}
	for _, tt := range []struct {
		name  string
		words []string
		want  []string
	}{
		{"teams", []string{"token", "create", database, "--team", ""}, []string{"acme", "beta", noFiles}},
		{"teams as arguments", []string{"team", "deny", database, ""}, []string{"acme", "beta", noFiles}},
		{"scopes", []string{"token", "create", "--scope", ""}, []string{"read", "write", "admin", "publish", noFiles}},
		{"roles", []string{"user", "invite", "--role="}, []string{"owner", "editor", "viewer", noFiles}},
		{"kinds of reports", []string{"report", "list", "--kind", ""}, []string{"aggregate", "failure", "tls", noFiles}},
		{"kinds of alerts", []string{"alert", "list", "--kind", ""}, append(convert(dmarcd.EventKinds(), func(k dmarcd.EventKind) string { return string(k) }), noFiles)},
		{"formats of files", []string{"export", "--format", ""}, []string{"parquet", "ndjson", "csv", noFiles}},
		{"formats of webhooks", []string{"webhook", "add", "--format", ""}, []string{"standard", "json", "slack", "teams", "discord", "pagerduty", "email", noFiles}},
		{"purposes", []string{"domain", "purpose", "--team=acme", "example.com", ""}, []string{"business", "personal", "education", "nonprofit", "none", noFiles}},
		{"a domain", []string{"domain", "purpose", "--team=acme", ""}, []string{noFiles}},
		{"words of a setting", []string{"serve", "--mx-probe", ""}, []string{config.ProbeOn, config.ProbeOff, noFiles}},
		{"a number", []string{"serve", "--rate-limit", ""}, []string{noFiles}},
		{"the configuration", []string{"serve", "--config", ""}, []string{"toml", "yaml", "yml", byExtension}},
		{"a password", []string{"mailbox", "add", "--password-file", ""}, []string{files}},
		{"reports", []string{"parse", ""}, []string{files}},
		{"a domain to check", []string{"check", ""}, []string{noFiles}},
		{"a file for a setting", []string{"backup", "--database", ""}, []string{files}},
	} {
		if got := offered(tt.words...); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: got %v want %v", tt.name, got, tt.want)
		}
	}
}

// TestErrorsStateWhatIsMissing checks that errors are sentences for users, without the text of
// their kind, and lead to the next step.
func TestErrorsStateWhatIsMissing(t *testing.T) {
	t.Parallel()
	server, folder := resolvertest.Start(t, ""), t.TempDir()
	for _, line := range []string{"team create acme", "domain add --team acme example.com"} {
		if status, _, stderr := runProgram(t, server, "", append(strings.Fields(line), "--data="+folder)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	for _, tt := range []struct{ line, want string }{
		{"team create acme", `the team "acme" already exists`},
		{"team allow nope", "there is no team \"nope\"; `dmarcd team list` lists all teams"},
		{"domain verify --team acme nope.example", "the team has no domain nope.example; `dmarcd domain list` lists its domains"},
		{"export --team acme --domain nope.example", "the team has no domain nope.example; `dmarcd domain list` lists its domains"},
		{"webhook add --team acme --domain nope.example https://example.com/", "the team has no domain nope.example; `dmarcd domain list` lists its domains"},
		{"token revoke tok_1omg", "there is no token tok_1omg; `dmarcd token list` lists those of a team"},
		{"mailbox remove box_1omg", "there is no mailbox box_1omg; `dmarcd mailbox list` lists those of a team"},
		{"webhook remove whk_1omg", "there is no webhook whk_1omg; `dmarcd webhook list` lists those of a team"},
		{"sender remove --team acme nope", "the team did not add a sender nope; `dmarcd sender list` shows those it added"},
		{"user reset-factor ann@example.com", "there is no user ann@example.com; `dmarcd user list` lists all users"},
		{"user remove ann@example.com", "there is no user ann@example.com; `dmarcd user list` lists all users"},
	} {
		status, _, stderr := runProgram(t, server, "", append(strings.Fields(tt.line), "--data="+folder)...)
		if want := "dmarcd: " + tt.want + "\n"; status != exitProblem || stderr != want {
			t.Errorf("%s: got status %d and %q, want %d and %q", tt.line, status, stderr, exitProblem, want)
		}
	}
}

// TestTokenOfATeamThatMayNotUseTheAPI checks that a note on standard error says so.
func TestTokenOfATeamThatMayNotUseTheAPI(t *testing.T) {
	t.Parallel()
	server, data := resolvertest.Start(t, ""), "--data="+t.TempDir()
	for _, tt := range []struct{ line, want string }{
		{"team create acme", ""},
		{"token create --team acme", "The team \"acme\" may not use the API yet. `dmarcd team allow \"acme\"` allows it.\n"},
		{"team allow acme", ""},
		{"token create --team acme", ""},
	} {
		status, stdout, stderr := runProgram(t, server, "", append(strings.Fields(tt.line), data)...)
		if status != exitDone || strings.HasPrefix(tt.line, "token") && (stderr != tt.want || !regexp.MustCompile(`^dmd_\w{40}\n$`).MatchString(stdout)) {
			t.Errorf("%s: got status %d, %q and %q, want %q on standard error", tt.line, status, stdout, stderr, tt.want)
		}
	}
}

// TestAlertTestStatesWhoReceivesIt tests the alerts of a team without and with a webhook that
// does not select tests.
func TestAlertTestStatesWhoReceivesIt(t *testing.T) {
	t.Parallel()
	_, run := installation(t)
	run(exitDone, "", "team", "create", "acme")
	run(exitDone, "not sent: no channel of the team is on; `dmarcd webhook add` adds one (event 1)\n", "alert", "test", "--team", "acme")
	run(exitDone, "", "webhook", "add", "--team", "acme", "--kind", "policy.weakened", "https://example.com/")
	run(exitDone, "waiting: event 2 will be sent to 1 channel\n", "alert", "test", "--team", "acme")
	if got := run(exitDone, "", "alert", "list", "--team", "acme"); !strings.Contains(got, "  not sent  ") || !strings.Contains(got, "  waiting  ") || !strings.Contains(got, "No channel selects it.") {
		t.Errorf("got %q, want the state of both tests", got)
	}
}

// TestFlagsOfSettings checks which commands have a flag for which settings, and what is said
// about the others.
func TestFlagsOfSettings(t *testing.T) {
	t.Parallel()
	root := (&program{}).rootCommand()
	for _, tt := range []struct {
		line string
		has  func(key string) bool
	}{
		{"serve", func(string) bool { return true }},
		{"config", func(string) bool { return true }},
		{"check", func(key string) bool { return ofEveryCommand(key) || key == "dns" }},
		{"import", func(key string) bool { return ofEveryCommand(key) || ofReading(key) }},
		{"team list", ofEveryCommand},
	} {
		cmd := musttest.Get(find(root, tt.line))(t)
		for _, s := range config.Settings() {
			if got, want := cmd.Flag(s.Flag()) != nil, tt.has(s.Key); got != want {
				t.Errorf("%s --%s: got %t, want %t", tt.line, s.Flag(), got, want)
			}
		}
	}
	server := resolvertest.Start(t, "")
	for line, want := range map[string]string{
		"team list --listen :80":       "unknown flag: --listen; set DMARCD_LISTEN instead",
		"serve --http-read-timeout 5s": "--http-read-timeout is set, but this setting no longer exists; remove it",
	} {
		if status, _, stderr := runProgram(t, server, "", strings.Fields(line)...); status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: got status %d and %q, want %q", line, status, stderr, want)
		}
	}
}

func find(root *cobra.Command, line string) (*cobra.Command, error) {
	cmd, _, err := root.Find(strings.Fields(line))
	return cmd, err
}

// TestManualPages writes a page for each command, and checks that no text of a command is read as a
// request of roff.
func TestManualPages(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if status, _, stderr := runProgram(t, resolvertest.Start(t, ""), "", "man", folder); status != exitDone {
		t.Fatal(stderr)
	}
	request := regexp.MustCompile(`^\.(TH|SH|B|BR|PP|TP|nf|fi)\b`)
	eachCommand((&program{}).rootCommand(), func(cmd *cobra.Command) {
		page := string(musttest.Get(os.ReadFile(folder + "/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"))(t))
		for line := range strings.Lines(page) {
			if (line[0] == '.' && !request.MatchString(line)) || line[0] == '\'' {
				t.Errorf("%s: got the line %q, want no unknown request", cmd.CommandPath(), line)
			}
		}
		for _, want := range []string{".SH NAME\n", ".SH SYNOPSIS\n", ".SH EXAMPLES\n", ".SH EXIT STATUS\n", roff(cmd.Short)} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: got %q, want %q in it", cmd.CommandPath(), page, want)
			}
		}
	})
}

// TestExitStatuses compares the table of docs/commands.md with the commands: what their help says, and
// what they return for the help, for wrong usage, for a team that does not exist and without a database.
func TestExitStatuses(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(string(musttest.Get(os.ReadFile("../../docs/commands.md"))(t)), "| Command | Exit status 0 | 1 | 2 |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			documented[name[1]] = true
		}
	}
	_, run := installation(t)
	run(exitDone, "", "team", "create", "acme")
	server, folder := resolvertest.Start(t, ""), t.TempDir()
	musttest.Do(t, os.WriteFile(folder+"/dmarcd.db", []byte("no database"), 0o600))
	commands := 0
	eachCommand((&program{}).rootCommand(), func(cmd *cobra.Command) {
		commands++
		name := strings.TrimPrefix(cmd.CommandPath(), "dmarcd ")
		if states := strings.Contains(cmd.Short+cmd.Long, "xit status"); states != documented[name] {
			t.Errorf("%s: got a help with an exit status: %t, want it if the table of docs/commands.md has the command", name, states)
		}
		delete(documented, name)
		words := strings.Fields(name)
		run(exitDone, "", append(words, "--help")...)
		run(exitFailed, "", append(words, "--no-such-flag")...)
		if cmd.Flag("team") == nil || name == "check" { // which checks names first
			return
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.Contains(line, "--team acme") || strings.ContainsAny(line, `<|"`) {
				continue
			}
			args := strings.Fields(strings.Replace(line, "--team acme", "--team nope", 1))[1:]
			run(exitProblem, "", args...)
			if status, _, stderr := runProgram(t, server, "secret\n", append(args, "--data="+folder)...); status != exitFailed {
				t.Errorf("%v without a database: got status %d and %q, want %d", args, status, stderr, exitFailed)
			}
			break
		}
	})
	if len(documented) > 0 || commands < 50 {
		t.Errorf("got %d commands, and the table has %v, want only commands in it", commands, documented)
	}
}
