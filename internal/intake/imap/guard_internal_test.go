package imap

import (
	"io"
	"net"
	"strings"
	"testing"
)

// read returns what the library sees of a response.
func read(t *testing.T, sent string) (string, error) {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_, _ = io.WriteString(server, sent) // the client may disconnect
		_ = server.Close()
	}()
	defer func() { _ = client.Close() }()
	g := newGuard(client, "")
	g.fetching.Store(true)
	seen, err := io.ReadAll(g)
	return string(seen), err
}

func TestGuard(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, sent, want string }{
		{"a greeting", "* OK [CAPABILITY IMAP4rev1 IDLE] ready\r\n", "* OK [CAPABILITY IMAP4rev1 IDLE] ready\r\n"},
		{"a greeting without a text", "* OK\r\n", "* OK\r\n"},
		{"a lone line feed", "* OK ready\n", "* OK ready\r\n"},
		{"a code that is used", "* OK [UIDNEXT 12] x\r\n* OK [UIDVALIDITY 7] x\r\n", "* OK [UIDNEXT 12] x\r\n* OK [UIDVALIDITY 7] x\r\n"},
		{"a code that is not", "* OK [PERMANENTFLAGS (\\Seen \\*)] limited\r\n", "* OK limited\r\n"},
		{"a code without arguments", "T1 NO [AUTHENTICATIONFAILED] no\r\n", "T1 NO [AUTHENTICATIONFAILED] no\r\n"},
		{"the code of a COPY", "T1 OK [COPYUID 1 2:3 4:5] done\r\n", "T1 OK done\r\n"},
		{"a text that looks like a literal", "* OK {5}\r\nT1 OK done\r\n", "* OK {5}\r\nT1 OK done\r\n"},
		{"a continuation", "+ idling\r\n", "+ idling\r\n"},
		{"numbers", "* 3 EXISTS\r\n* 0 RECENT\r\n* 2 EXPUNGE\r\n", "* 3 EXISTS\r\n"},
		{"data that was not asked for", "* FLAGS (\\Seen)\r\n* LIST () \"/\" {3}\r\na b {2}\r\nxy\r\n* ENABLED X\r\nT1 OK done\r\n", "T1 OK done\r\n"},
		{"searches", "* SEARCH 1 2 3\r\n* ESEARCH (TAG \"T1\") UID ALL 1:3\r\nT1 OK done\r\n", "T1 OK done\r\n"},
		{
			"messages", "* 1 FETCH (UID 7 RFC822.SIZE 40 INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" FLAGS (\\Seen $X) MODSEQ (12))\r\n",
			"* 1 FETCH (UID 7 RFC822.SIZE 40 INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" FLAGS (\\Seen $X) MODSEQ (12))\r\n",
		},
		{"no items", "* 1 FETCH ()\r\n", "* 1 FETCH ()\r\n"},
		{"no flags", "* 1 FETCH (FLAGS ())\r\n", "* 1 FETCH (FLAGS ())\r\n"},
		{"a body", "* 1 FETCH (UID 7 BODY[] {5}\r\n(((((\r\n", ""},
		{"a body, whole", "* 1 FETCH (UID 7 BODY[] {5}\r\n((((( FLAGS (\\Seen))\r\n", "* 1 FETCH (UID 7 BODY[] {5}\r\n((((( FLAGS (\\Seen))\r\n"},
		{"two bodies", "* 1 FETCH (BODY[HEADER] {2}\r\n)) BODY[]<0> ~{3+}\r\n{9})\r\n", "* 1 FETCH (BODY[HEADER] {2}\r\n)) BODY[]<0> {3}\r\n{9})\r\n"},
		{"a body of nothing", "* 1 FETCH (BODY[] {0}\r\n)\r\n", "* 1 FETCH (BODY[] {0}\r\n)\r\n"},
		{"a quoted body", "* 1 FETCH (BODY[] \"a \\\" {5} (\")\r\n", "* 1 FETCH (BODY[] \"a \\\" {5} (\")\r\n"},
		{"no body", "* 1 FETCH (BODY[] NIL UID 7)\r\n", "* 1 FETCH (BODY[] NIL UID 7)\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := read(t, row.sent)
			if row.want == "" {
				if err == nil {
					t.Errorf("got %q, want an error", got)
				}
				return
			}
			if err != nil || got != row.want {
				t.Errorf("got %q and %v, want %q", got, err, row.want)
			}
		})
	}
}

// FuzzGuard checks that the output keeps the promises of the guard.
func FuzzGuard(f *testing.F) {
	f.Add("* OK [CAPABILITY IMAP4rev1] ready\r\n* 1 FETCH (UID 7 BODY[] {5}\r\n((((( FLAGS (\\Seen))\r\nT1 OK done\r\n")
	f.Add("* 1 FETCH (BODYSTRUCTURE ((((\r\n")
	f.Add("* 1 FETCH (BODY[] \"{5}\r\n* LIST {9}\r\n")
	f.Add("* OK {5}\r\n* 1 FETCH (FLAGS ((\\Seen)))\r\n")
	f.Fuzz(func(t *testing.T, sent string) {
		seen, _ := read(t, sent)
		again, err := read(t, seen)
		if !strings.HasPrefix(seen, again) || err == nil && again != seen {
			t.Errorf("got %q of %q, and %q (%v) of that: two readers disagree", seen, sent, again, err)
		}
		for line := range strings.SplitSeq(seen, "\r\n") {
			if len(line) > lineBytes && !strings.Contains(seen, "}\r\n") {
				t.Errorf("got a line of %d bytes", len(line))
			}
		}
	})
}
