package imap_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// hostile is an IMAP server with one message that attacks on a given command.
type hostile struct {
	// at is the command to attack on, in upper case; "" is the greeting.
	at string
	// attack writes until it is done or the client disconnects.
	attack func(out *bufio.Writer, tag string) error
	// opened is the response to SELECT; "" is one message.
	opened string
	// fetched, if set, sees each FETCH; its error closes the connection.
	fetched func(command string) error
}

func (h hostile) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // at the end
	in, out := bufio.NewScanner(conn), bufio.NewWriterSize(conn, 64<<10)
	if h.at == "" {
		_ = errors.Join(h.attack(out, "*"), out.Flush()) // the client may disconnect
		return
	}
	_, _ = out.WriteString("* OK [CAPABILITY IMAP4rev1 IDLE UIDPLUS MOVE] ready\r\n")
	for out.Flush() == nil && in.Scan() {
		tag, command, _ := strings.Cut(in.Text(), " ")
		if strings.HasPrefix(command, h.at) {
			if h.attack(out, tag) != nil {
				return
			}
			continue
		}
		if h.fetched != nil && strings.HasPrefix(command, "UID FETCH") && h.fetched(command) != nil {
			return
		}
		_, _ = out.WriteString(h.answer(command) + tag + " OK done\r\n")
	}
}

// answer returns the response before the OK.
func (h hostile) answer(command string) string {
	switch {
	case strings.HasPrefix(command, "CAPABILITY"):
		return "* CAPABILITY IMAP4rev1 IDLE UIDPLUS MOVE\r\n"
	case strings.HasPrefix(command, "SELECT"):
		if h.opened != "" {
			return h.opened
		}
		return "* 1 EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT 2] x\r\n"
	case strings.HasPrefix(command, "UID SEARCH"):
		return "* SEARCH 1\r\n"
	case strings.Contains(command, "RFC822.SIZE"):
		return "* 1 FETCH (UID 1 RFC822.SIZE 40 INTERNALDATE \"01-Jan-2024 00:00:00 +0000\")\r\n"
	case strings.HasPrefix(command, "UID FETCH"):
		return "* 1 FETCH (UID 1 BODY[] {5}\r\nhello)\r\n"
	}
	return ""
}

// flood writes head once, and body until the client disconnects.
func flood(head, body string) func(*bufio.Writer, string) error {
	body = strings.Repeat(body, 1+4096/len(body))
	return func(out *bufio.Writer, _ string) error {
		_, err := out.WriteString(head)
		for sent := 0; err == nil && sent < 256<<20; sent += len(body) {
			_, err = out.WriteString(body)
		}
		return errors.Join(err, io.EOF)
	}
}

// reply writes text, with TAG replaced, and continues as a good server.
func reply(text string) func(*bufio.Writer, string) error {
	return func(out *bufio.Writer, tag string) error {
		_, err := out.WriteString(strings.ReplaceAll(text, "TAG", tag))
		return err
	}
}

const (
	tooMuch   = "the server sent more data than requested"
	tooMany   = "the server returned more messages than requested"
	malformed = "the server violates the IMAP protocol"
)

// attacks are what a hostile server may send, and the expected status.
func attacks() map[string]struct {
	hostile
	message string
} {
	nested := strings.Repeat("(", 12<<20)
	type row = struct {
		hostile
		message string
	}
	return map[string]row{
		"nested lists in BODYSTRUCTURE":   {hostile{at: "UID SEARCH", attack: reply("* 1 FETCH (BODYSTRUCTURE " + nested)}, tooMuch},
		"a short BODYSTRUCTURE":           {hostile{at: "UID SEARCH", attack: reply("* 1 FETCH (BODYSTRUCTURE ((\"a\")))\r\n* SEARCH 1\r\nTAG OK done\r\n")}, "<nil>"},
		"nested lists in BODY":            {hostile{at: "UID FETCH", attack: reply("* 1 FETCH (UID 1 BODY " + nested[:10_000] + "\r\n")}, malformed},
		"nested lists in FLAGS":           {hostile{at: "UID FETCH", attack: reply("* 1 FETCH (UID 1 FLAGS " + nested[:10_000] + "\r\n")}, malformed},
		"nested lists in THREAD":          {hostile{at: "SELECT", attack: reply("* THREAD " + nested)}, tooMuch},
		"nested lists hidden by a text":   {hostile{at: "SELECT", attack: reply("* OK see {12582912}\r\n* 1 FETCH (BODYSTRUCTURE " + nested)}, tooMuch},
		"nested lists hidden by a quote":  {hostile{at: "UID FETCH", attack: reply("* OK \"\r\n* 1 FETCH (BODYSTRUCTURE " + nested[:10_000] + "\r\n")}, malformed},
		"nested lists hidden in a body":   {hostile{at: "UID FETCH", attack: reply("* 1 FETCH (UID 1 BODY[] \"{9}\r\n* 1 FETCH (BODYSTRUCTURE " + nested[:10_000] + "\r\n")}, malformed},
		"an endless greeting":             {hostile{attack: flood("* OK ", "and on ")}, tooMuch},
		"endless lines before a greeting": {hostile{attack: flood("", "* LIST () \"/\" x\r\n")}, tooMuch},
		"endless status":                  {hostile{at: "LOGIN", attack: flood("", "* OK and on\r\n")}, tooMuch},
		"an endless line to drop":         {hostile{at: "LOGIN", attack: flood("* LIST () \"/\" ", "x")}, tooMuch},
		"endless capabilities":            {hostile{at: "LOGIN", attack: flood("* CAPABILITY", " X1 X2 X3")}, tooMuch},
		"capabilities in a code":          {hostile{at: "LOGIN", attack: flood("* OK [CAPABILITY", " X1 X2 X3")}, tooMuch},
		"many capabilities":               {hostile{at: "LOGIN", attack: flood("", "* CAPABILITY X1 X2 X3\r\n")}, tooMuch},
		"endless flags":                   {hostile{at: "SELECT", attack: flood("* FLAGS (", "\\Seen ")}, tooMuch},
		"many flags":                      {hostile{at: "SELECT", attack: flood("", "* OK [PERMANENTFLAGS (\\Seen)] x\r\n")}, tooMuch},
		"endless COPYUID":                 {hostile{at: "SELECT", attack: flood("* OK [COPYUID 1 ", "9,7,5,3,1,")}, tooMuch},
		"endless folders":                 {hostile{at: "SELECT", attack: flood("", "* LIST () \"/\" \"folder\"\r\n")}, tooMuch},
		"a literal that was not asked":    {hostile{at: "SELECT", attack: flood("* LIST () \"/\" {1000000000}\r\n", "x")}, tooMuch},
		"a message that was not asked":    {hostile{at: "SELECT", attack: flood("* 1 FETCH (BODY[] {1000000000}\r\n", "x")}, tooMuch},
		"messages that were not asked":    {hostile{at: "UID SEARCH", attack: flood("", "* 1 FETCH (UID 1 BODY[] {5}\r\nhello)\r\n")}, tooMuch},
		"messages asked for, many times":  {hostile{at: "UID FETCH", attack: flood("", "* 1 FETCH (UID 1 BODY[] {5}\r\nhello)\r\n")}, tooMuch},
		"a message without end":           {hostile{at: "UID FETCH 1 (UID BODY", attack: flood("* 1 FETCH (UID 1 BODY[] {9000000000000000000}\r\n", "x")}, tooMuch},
		"a message beyond any number":     {hostile{at: "UID FETCH", attack: flood("* 1 FETCH (UID 1 BODY[] {99999999999999999999}\r\n", "x")}, malformed},
		"a message in a quoted string":    {hostile{at: "UID FETCH", attack: flood("* 1 FETCH (UID 1 BODY[] \"", "x")}, tooMuch},
		"items of a message, many":        {hostile{at: "UID FETCH", attack: flood("* 1 FETCH (", "UID 1 ")}, tooMuch},
		"an endless search":               {hostile{at: "UID SEARCH", attack: flood("* SEARCH", " 1")}, tooMuch},
		"endless searches":                {hostile{at: "UID SEARCH", attack: flood("", "* SEARCH 1\r\n")}, tooMany},
		"every UID there is":              {hostile{at: "UID SEARCH", attack: reply("* ESEARCH UID ALL 1:4294967295\r\nTAG OK done\r\n"), opened: "* 9 EXISTS\r\n* OK [UIDNEXT 4294967295] x\r\n"}, tooMany},
		"every UID, one after another":    {hostile{at: "UID SEARCH", attack: flood("* ESEARCH UID ALL 1", ",1")}, tooMuch},
		"continuations":                   {hostile{at: "LOGIN", attack: flood("", "+ go on\r\n")}, "continuation request"},
		"an endless continuation":         {hostile{at: "LOGIN", attack: flood("+ ", "go on ")}, tooMuch},
		"a tag that is not ours":          {hostile{at: "LOGIN", attack: reply("T99 OK done\r\n")}, "unknown tag"},
		"no IMAP":                         {hostile{attack: reply("SSH-2.0-server\r\n")}, malformed},
		"an open response code":           {hostile{attack: reply("* OK [CAPABILITY\r\n")}, malformed},
		"empty lines":                     {hostile{attack: flood("", "\r\n")}, malformed},
	}
}

// listenHostile serves until the end of the test, and returns a dialer.
func listenHostile(t *testing.T, h hostile) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop below
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { h.serve(conn) })
		}
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
}

// untilStatus runs the reader until its first status.
func (d *testReader) untilStatus() string {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	statuses := make(chan string, 1)
	d.reader.Status = func(_ context.Context, err error) {
		select {
		case statuses <- fmt.Sprint(err):
		default: // one is enough
		}
	}
	done := make(chan error, 1)
	go func() { done <- d.reader.Run(ctx) }()
	status := <-statuses
	stop()
	<-done
	return status
}

// TestHostileServers attacks over TCP. Three servers of each kind at once may add at most 64
// MiB to the memory of the process.
func TestHostileServers(t *testing.T) {
	const hosts, limit = 3, 64 << 20
	for name, row := range attacks() {
		t.Run(name, func(t *testing.T) {
			dial := listenHostile(t, row.hostile)
			watch := watchMemory()
			var all sync.WaitGroup
			for range hosts {
				d := newTestReader(t, &server{})
				d.reader.Dial, d.reader.MaxBytes = dial, 1<<20
				all.Go(func() {
					if got := d.untilStatus(); !strings.Contains(got, row.message) {
						t.Errorf("got %q, want %q", got, row.message)
					}
				})
			}
			all.Wait()
			if added := watch(); added > limit {
				t.Errorf("got %d MiB more, want at most %d", added>>20, limit>>20)
			}
		})
	}
}

// watchMemory samples the memory of the process; the returned function returns its growth.
func watchMemory() func() uint64 {
	runtime.GC()
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before, most := used(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			most = max(most, used())
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return max(most, before) - before
	}
}

// TestHostileOrder returns search results in the order that is quadratic in the library.
// Messages are fetched in order.
func TestHostileOrder(t *testing.T) {
	var found strings.Builder
	for uid := 60_000; uid > 0; uid -= 2 {
		fmt.Fprintf(&found, "* SEARCH %d\r\n", uid)
	}
	d := newTestReader(t, &server{})
	asked := make(chan string, 1)
	d.reader.Dial = listenHostile(t, hostile{
		at: "UID SEARCH", attack: func(out *bufio.Writer, tag string) error {
			_, err := out.WriteString(found.String() + tag + " OK done\r\n")
			return err
		},
		opened: "* 60000 EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT 60001] x\r\n",
		fetched: func(command string) error {
			asked <- command
			return io.EOF
		},
	})
	d.untilStatus()
	if got, want := <-asked, "UID FETCH 2,4,6,8,10,12,14,"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q first", got, want)
	}
}

// TestHostileHeaders sends the header of a message that is too large many times, and those of
// other messages. No file is left, open or not.
func TestHostileHeaders(t *testing.T) {
	const header = `BODY[HEADER] "Subject: x"`
	again := "UID 1 " + header + strings.Repeat(" UID 1 "+header, 99)
	d := newTestReader(t, &server{})
	d.reader.MaxBytes = 10 // the server announces 40
	d.reader.Dial = listenHostile(t, hostile{
		at:     "UID FETCH 1 (UID BODY",
		attack: reply("* 1 FETCH (UID 2 " + header + ")\r\n* 1 FETCH (" + again + ")\r\n* 1 FETCH (UID 1 " + header + ")\r\nTAG OK done\r\n"),
	})
	if got := d.untilStatus(); got != "<nil>" {
		t.Errorf("got the status %q, want success", got)
	}
	want := []got{{1, "Subject: x", "The message has 40 bytes; 10 are taken."}}
	if !slices.Equal(d.messages, want) {
		t.Errorf("got %v, want %v", d.messages, want)
	}
	if left := musttest.Get(os.ReadDir(d.reader.Folder))(t); len(left) > 0 {
		t.Errorf("got %d files left, want none", len(left))
	}
}

// TestHostileSilence announces data that never arrives, or arrives byte by byte. The
// connection must time out.
func TestHostileSilence(t *testing.T) {
	drip := func(head, body string, every time.Duration) func(*bufio.Writer, string) error {
		return func(out *bufio.Writer, _ string) error {
			_, err := out.WriteString(head)
			for err == nil {
				if err = out.Flush(); err == nil {
					<-time.After(every) // the clock of the bubble
					_, err = out.WriteString(body)
				}
			}
			return err
		}
	}
	for _, row := range []struct {
		name string
		hostile
		limit time.Duration
	}{
		{"a literal that never comes", hostile{at: "UID FETCH 1 (UID BODY", attack: reply("* 1 FETCH (UID 1 BODY[] {1000}\r\n")}, 11 * time.Minute},
		{"half a line", hostile{at: "SELECT", attack: reply("* OK half a ")}, 3 * time.Minute},
		{"a dripping greeting", hostile{attack: drip("* OK ", "x", time.Second)}, 2 * time.Minute},
		{"a dripping answer", hostile{at: "SELECT", attack: drip("", "* OK x\r\n", 10*time.Second)}, 2 * time.Minute},
		{"a dripping message", hostile{at: "UID FETCH 1 (UID BODY", attack: drip("* 1 FETCH (UID 1 BODY[] {1000}\r\n", "x", time.Minute)}, 11 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newTestReader(t, &server{})
				var serving sync.WaitGroup
				defer serving.Wait()
				d.reader.Dial = func(context.Context, string, string) (net.Conn, error) {
					client, remote := net.Pipe()
					serving.Go(func() { row.serve(remote) })
					return client, nil
				}
				began := time.Now()
				if got := d.untilStatus(); !strings.Contains(got, "timed out") || time.Since(began) > row.limit {
					t.Errorf("got %q after %s, want that it is silent within %s", got, time.Since(began), row.limit)
				}
			})
		})
	}
}

// TestHostileNews announces messages without end during IDLE.
func TestHostileNews(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTestReader(t, &server{})
		var mu sync.Mutex
		looks := 0
		d.reader.Status = func(context.Context, error) {
			mu.Lock()
			defer mu.Unlock()
			looks++
		}
		h := hostile{at: "IDLE", attack: reply("+ idling\r\n* 2 EXISTS\r\n* 3 EXISTS\r\nTAG OK done\r\n")}
		d.reader.Dial = func(context.Context, string, string) (net.Conn, error) {
			client, remote := net.Pipe()
			go h.serve(doneless{remote})
			return client, nil
		}
		d.run(func() { after(time.Minute) })
		if looks < 10 || looks > 61 {
			t.Errorf("got %d looks in a minute, want at most one a second", looks)
		}
	})
}

// doneless hides the DONE line of IDLE, which has no tag.
type doneless struct{ net.Conn }

func (d doneless) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	return copy(b, bytes.ReplaceAll(b[:n], []byte("DONE\r\n"), nil)), err
}
