package export_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// header matches the header of a message (RFC 5424 §6).
var header = regexp.MustCompile(`^<134>1 2026-11-01T00:00:0\dZ \S+ dmarcd \d+ (record|event) - `)

// frames reads messages framed by octet counting (RFC 6587 §3.4.1) until the client closes the
// connection.
func frames(conn net.Conn) (messages []string, err error) {
	in := bufio.NewReader(conn)
	for {
		length, err := in.ReadString(' ')
		if err == io.EOF && length == "" {
			return messages, nil
		}
		n, wrong := strconv.Atoi(strings.TrimSuffix(length, " "))
		if err != nil || wrong != nil {
			return messages, fmt.Errorf("a frame begins with %q", length)
		}
		message := make([]byte, n)
		if _, err := io.ReadFull(in, message); err != nil {
			return messages, err
		}
		messages = append(messages, string(message))
	}
}

func message(i int, json string) export.Message {
	return export.Message{Kind: "record", ID: fmt.Sprint("rep_1.0.", i), At: time.Date(2026, 11, 1, 1, 0, i%10, 0, time.FixedZone("", 3600)), JSON: []byte(json)}
}

func TestSyslogOverTCPReconnects(t *testing.T) {
	t.Parallel()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	s := musttest.Get(export.NewSyslog("tcp://" + listener.Addr().String()))(t)
	second, received := make(chan struct{}), make(chan []string, 1)
	go func() {
		defer close(received)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.Close() // the server restarts
		if conn, err = listener.Accept(); err != nil {
			return
		}
		close(second)
		defer func() { _ = conn.Close() }()
		messages, err := frames(conn)
		if err != nil {
			t.Error(err)
		}
		received <- messages
	}()
	long := `{"text":"` + strings.Repeat("ü", 50_000) + `"}`
	batch := []export.Message{message(1, `{"id":1}`+"\n"), message(2, long)}
	// Send connects again once the client notices that the server has closed the first
	// connection.
	for connected := false; !connected; {
		musttest.Do(t, s.Send(t.Context(), nil))
		select {
		case <-second:
			connected = true
		case <-time.After(time.Millisecond):
		}
	}
	musttest.Do(t, s.Send(t.Context(), batch))
	musttest.Do(t, s.Close())
	got := <-received
	if len(got) != 2 || !header.MatchString(got[0]) || !strings.HasSuffix(got[0], ` record - {"id":1}`) || !strings.HasSuffix(got[1], long) {
		t.Errorf("got %.200q, want both messages", got)
	}
}

func TestSyslogOverUDP(t *testing.T) {
	t.Parallel()
	conn := musttest.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer func() { _ = conn.Close() }()
	s := musttest.Get(export.NewSyslog("udp://" + conn.LocalAddr().String()))(t)
	musttest.Do(t, s.Send(t.Context(), []export.Message{message(1, `{"id":1}`), message(2, strings.Repeat("x", 70_000))}))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	buffer := make([]byte, 1<<16)
	for _, want := range []string{` record - {"id":1}`, ` record - {"id":"rep_1.0.2","truncated":true}`} {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil || !bytes.HasSuffix(buffer[:n], []byte(want)) || !header.Match(buffer[:n]) {
			t.Errorf("got %v and %.200q, want a message that ends with %q", err, buffer[:n], want)
		}
	}
}

func TestInvalidSyslogServers(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"", "siem.example", "http://siem.example", "tcp://", "tcp://siem.example/path", "tls://user@siem.example", "tcp://[::1"} {
		if _, err := export.NewSyslog(target); err == nil || !strings.Contains(err.Error(), "tls://siem.example:6514") {
			t.Errorf("%q: got %v, want an error that shows a valid URL", target, err)
		}
	}
}

func TestUnreachableSyslogServers(t *testing.T) {
	t.Parallel()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	_ = listener.Close()
	for _, scheme := range []string{"tcp", "tls"} {
		s := musttest.Get(export.NewSyslog(scheme + "://" + address))(t)
		if err := s.Send(t.Context(), []export.Message{message(1, "{}")}); err == nil || !strings.Contains(err.Error(), address) {
			t.Errorf("got %v, want an error about %s", err, address)
		}
	}
}
