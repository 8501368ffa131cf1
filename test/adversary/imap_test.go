package adversary_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestHostileMailboxes has a team read mailboxes whose hosts send answers
// without bounds, three at a time.
func TestHostileMailboxes(t *testing.T) {
	const growth = 64 << 20 // what all three may add to the daemon at rest
	attacks := imapAttacks()
	for first := 0; first < len(attacks); first += 3 {
		three := attacks[first : first+3]
		t.Run(three[0].name, func(t *testing.T) {
			onSQLite(t, func(t *testing.T, a *arena) {
				a.watch("at rest", func() { a.work(4) })
				idle := a.d.Memory.Peak()
				var hosts []*imapHost
				for _, attack := range three {
					hosts = append(hosts, startIMAP(t, attack))
				}
				attacked := func(again int64) bool {
					for _, h := range hosts {
						if h.attacked.Load() < again || h.ended.Load() < h.attacked.Load() {
							return false
						}
					}
					return true
				}
				a.watch("hostile mailboxes", func() {
					for _, h := range hosts {
						if r := read(t, a.in, "mallory", "127.0.0.1", h.port); r.Status != 0 {
							t.Fatalf("mailbox add: got status %d want 0: %s", r.Status, r.Stderr)
						}
					}
					eventually(t, mailboxLimit, "every host has attacked", func() bool { return attacked(1) || !a.d.Running() })
				})
				if got := a.d.Memory.Peak() - idle; got > growth {
					t.Errorf("the mailboxes: added %d MiB to %d at rest want at most %d", got>>20, idle>>20, growth>>20)
				}
				shown := func() bool {
					for _, problem := range mailboxes(t, a.in, "mallory") {
						if problem == "" {
							return false
						}
					}
					return true
				}
				eventually(t, mailboxLimit, "the reason is shown for every mailbox", shown)
				for _, problem := range mailboxes(t, a.in, "mallory") {
					if len(problem) > 1000 || strings.Contains(problem, "((((") || strings.Contains(problem, "aaaa") {
						t.Errorf("the reason: got %.200q want a sentence without the bytes of the host", problem)
					}
				}
				a.restart()
				a.watch("after a restart", func() { a.work(4) })
				if !shown() {
					t.Error("after a restart: a mailbox shows no reason")
				}
				a.d.Stop()
			})
		})
	}
}

// stage is a point of an IMAP session at which a host begins its attack.
type stage string

const (
	greeting   stage = "greeting"
	capability stage = "CAPABILITY"
	login      stage = "LOGIN"
	selecting  stage = "SELECT"
	searching  stage = "SEARCH"
	fetching   stage = "FETCH"
)

// imapAttack is what a hostile IMAP host sends instead of an answer.
type imapAttack struct {
	name  string
	at    stage
	begin string // once
	block string // again and again after it
	total int    // bytes of blocks
}

const mega = 1 << 20

// imapAttacks are answers that a client must not read whole.
func imapAttacks() []imapAttack {
	const endless = 192 * mega
	return []imapAttack{
		{"a nested body structure instead of a search", searching, "* 1 FETCH (BODYSTRUCTURE ", strings.Repeat("(", 64<<10), 12 * mega},
		{"one line without end", searching, "* OK ", strings.Repeat("a", 64<<10), endless},
		{"a literal of 2 GiB", fetching, "* 1 FETCH (UID 1 BODY[] {2147483647}\r\n", strings.Repeat("a", 64<<10), endless},

		{"search results without end", searching, "* SEARCH", strings.Repeat(" 1234567890", 4<<10), endless},
		{"untagged answers without end", selecting, "", strings.Repeat("* 1 EXISTS\r\n", 4<<10), endless},
		{"a greeting without end", greeting, "* OK ", strings.Repeat("a", 64<<10), endless},

		{"capabilities without end", capability, "* CAPABILITY IMAP4rev1", strings.Repeat(" X-A=B", 8<<10), endless},
		{"a nested envelope", fetching, "* 1 FETCH (ENVELOPE ", strings.Repeat("(", 64<<10), 12 * mega},
		{"a nested search result", searching, "* ESEARCH ", strings.Repeat("(", 64<<10), 12 * mega},

		{"flags without end", fetching, "* 1 FETCH (FLAGS (", strings.Repeat("flag1234 ", 8<<10), endless},
		{"messages without end", fetching, "", strings.Repeat("* 1 FETCH (UID 1 FLAGS ())\r\n", 2<<10), endless},
		{"a quoted string without end", login, "* LIST () \"/\" \"", strings.Repeat("a", 64<<10), endless},
	}
}

// imapHost is a hostile IMAP host. It logs every client in, has one message,
// and attacks at a stage of every session.
type imapHost struct {
	port     int
	attack   imapAttack
	attacked atomic.Int64 // how often it began the attack
	ended    atomic.Int64 // how often the client ended it, or took all of it
}

func startIMAP(t testing.TB, attack imapAttack) *imapHost {
	t.Helper()
	h := &imapHost{attack: attack}
	h.port = listen(t, h.serve)
	return h
}

func (h *imapHost) serve(conn net.Conn) {
	strike := func() {
		h.attacked.Add(1)
		_, _ = io.WriteString(conn, h.attack.begin) // the flood sees the end
		flood(conn, h.attack.block, h.attack.total)
		h.ended.Add(1)
	}
	if h.attack.at == greeting {
		strike()
		return
	}
	reply := func(format string, values ...any) { _, _ = fmt.Fprintf(conn, format+"\r\n", values...) }
	reply("* OK [CAPABILITY IMAP4rev1] ready")
	lines := bufio.NewReader(conn)
	for {
		_ = conn.SetReadDeadline(deadline(patience)) // it fails with the read
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(strings.ToUpper(line))
		if len(words) < 2 {
			return
		}
		tag, command := words[0], words[1]
		if command == "UID" && len(words) > 2 {
			command = words[2]
		}
		if command == "EXAMINE" || command == "STATUS" {
			command = string(selecting)
		}
		if command == "AUTHENTICATE" {
			command = string(login)
			reply("+ ")
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
		}
		if command == string(h.attack.at) {
			strike()
			return
		}
		switch command {
		case "CAPABILITY":
			reply("* CAPABILITY IMAP4rev1")
		case "SELECT":
			reply("* FLAGS (\\Seen)\r\n* 1 EXISTS\r\n* 0 RECENT\r\n* OK [UIDVALIDITY 1] ok\r\n* OK [UIDNEXT 2] ok\r\n* OK [PERMANENTFLAGS (\\Seen)] ok")
		case "SEARCH":
			reply("* SEARCH 1")
		case "LOGOUT":
			reply("* BYE\r\n%s OK done", tag)
			return
		}
		reply("%s OK done", tag)
	}
}

// listedMailbox is a mailbox as the command line lists it.
type listedMailbox struct {
	ID    string  `json:"id"`
	Host  string  `json:"host"`
	Port  int     `json:"port"`
	Error *string `json:"error"`
}

// read has the daemon read a mailbox of a team.
func read(t testing.TB, in daemon.Installation, team, host string, port int) daemon.Result {
	t.Helper()
	return in.Run(t, password, "mailbox", "add", "--team", team, "--host", host, "--port", strconv.Itoa(port),
		"--security", "none", "--user", "reports", "--password-file", "-", "--no-try")
}

// mailboxes returns the errors of the mailboxes of a team by port.
func mailboxes(t testing.TB, in daemon.Installation, team string) map[int]string {
	t.Helper()
	var all []listedMailbox
	in.List(t, &all, "mailbox", "list", "--team", team)
	errors := map[int]string{}
	for _, m := range all {
		errors[m.Port] = ""
		if m.Error != nil {
			errors[m.Port] = *m.Error
		}
	}
	return errors
}

// mailboxLimit is how long reading a hostile mailbox may take until it fails.
const mailboxLimit = 10 * time.Minute
