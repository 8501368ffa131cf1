package e2e_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// The maximum cost of a hostile message.
const (
	bombTime   = 5 * time.Second // CPU time: the machine may be busy
	bombMemory = 256 << 20
	// bystanderLimit is how long another client may wait meanwhile.
	bystanderLimit = 10 * time.Second
)

// bomb is content that expands, or is large without meaning.
type bomb struct {
	name    string
	content func(t *testing.T) string
	// mail returns a mail with the content; nil means a base64 attachment.
	mail func(content string) string
}

func bombs() []bomb {
	asIs := func(content string) string { return content }
	return []bomb{
		{"4 GiB of zeros in gzip", zeroBomb, nil},
		{"a zip of 20,000 files", fileBomb, nil},
		{"an expansion of entities", entityBomb, nil},
		{"two million nested elements", func(*testing.T) string { return strings.Repeat("<a>", 2_000_000) }, nil},
		{"one element of 30 MB", func(*testing.T) string {
			return "<feedback><report_metadata><org_name>" + strings.Repeat(strings.Repeat("a", 70)+"\r\n", 30_000_000/72)
		}, textMail},
		{"gzip twelve deep", func(t *testing.T) string {
			content := about("example.com", "deep", 1, 1).xml()
			for range 12 {
				content = gzipped(content)
			}
			return content
		}, nil},
		{"a mail of 1,000 nested parts", partBomb, asIs},
	}
}

// zeroBomb returns one deflate stream of 4 GiB in gzip (RFC 1952), which repeats the same
// block.
func zeroBomb(t *testing.T) string {
	t.Helper()
	const blocks = 64
	block := make([]byte, 4<<30/blocks)
	var packed bytes.Buffer
	packed.WriteString("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
	w := musttest.Get(flate.NewWriter(&packed, flate.BestSpeed))(t)
	sum := crc32.NewIEEE()
	write := func() {
		_, _ = sum.Write(block) // a hash never fails
		musttest.Get(w.Write(block))(t)
		musttest.Do(t, w.Flush())
	}
	write()
	begin := packed.Len()
	write()
	repeated := string(packed.Bytes()[begin:])
	for range blocks - 2 {
		_, _ = sum.Write(block) // a hash never fails
		packed.WriteString(repeated)
	}
	musttest.Do(t, w.Close())
	trailer := binary.LittleEndian.AppendUint32(nil, sum.Sum32())
	packed.Write(binary.LittleEndian.AppendUint32(trailer, 0)) // length modulo 2^32
	return packed.String()
}

func fileBomb(t *testing.T) string {
	t.Helper()
	var pairs []string
	for i := range 20_000 {
		pairs = append(pairs, fmt.Sprintf("%d.xml", i), "<feedback/>")
	}
	return zipped(pairs...)
}

// entityBomb would expand to 10^10 characters.
func entityBomb(*testing.T) string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE feedback [<!ENTITY e0 \"0123456789\">\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "<!ENTITY e%d \"%s\">\n", i, strings.Repeat(fmt.Sprintf("&e%d;", i-1), 10))
	}
	b.WriteString("]>\n<feedback>&e9;</feedback>\n")
	return b.String()
}

func partBomb(t *testing.T) string {
	t.Helper()
	var begin, end strings.Builder
	begin.WriteString(mailHeader)
	for i := range 1000 {
		fmt.Fprintf(&begin, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	begin.WriteString("Content-Type: text/xml\r\n\r\n" + about("example.com", "parts", 1, 1).xml())
	for i := 999; i >= 0; i-- {
		fmt.Fprintf(&end, "\r\n--b%d--\r\n", i)
	}
	return begin.String() + end.String()
}

func textMail(text string) string {
	return mailHeader + "Content-Type: text/xml\r\n\r\n" + text + "\r\n"
}

func TestBombs(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		in.program = program // the race detector needs many times the memory
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		stop, slowest := make(chan struct{}), make(chan time.Duration)
		go func() { slowest <- s.bystand(stop) }()

		for _, b := range bombs() {
			content := b.content(t)
			before := len(s.rejected())
			began := s.CPU()
			receipts := s.upload(content, http.StatusUnprocessableEntity)
			if took := s.CPU() - began; took > bombTime {
				t.Errorf("%s by HTTP: took %v of the processor want at most %v", b.name, took, bombTime)
			}
			if len(receipts) == 0 || statuses(receipts) != "rejected" || receipts[0].Reason == nil {
				t.Errorf("%s by HTTP: got %v want it rejected with a reason", b.name, receipts)
			}
			uploaded := len(s.rejected())
			if uploaded == before {
				t.Errorf("%s by HTTP: it is not kept aside", b.name)
			}
			wrap := mailWith
			if b.mail != nil {
				wrap = b.mail
			}
			s.mail(address, wrap(content))
			daemon.Eventually(t, daemon.StartLimit, b.name+" by SMTP is kept aside", func() bool { return len(s.rejected()) > uploaded })
			if used := s.peakMemory(); used > bombMemory {
				t.Errorf("%s: the process has used %d MiB want at most %d", b.name, used>>20, bombMemory>>20)
			}
		}
		close(stop)
		got := <-slowest
		if limit := s.slow(bystanderLimit, got); got > limit {
			t.Errorf("another client waited for %v want at most %v", got, limit)
		}
		t.Logf("the process has used %d MiB at most", s.peakMemory()>>20)
		s.wantCounted("afterwards", "", 0, 0)
		s.upload(about("example.com", "1", 1, 1).xml(), http.StatusCreated)
		s.wantCounted("a report afterwards", "", 1, 1)
	})
}

// bystand requests a list until it is stopped, and returns the longest response time.
func (s *server) bystand(stop <-chan struct{}) time.Duration {
	var slowest time.Duration
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return slowest
		case <-ticker.C:
		}
		a, err := s.try(request{method: http.MethodGet, path: "/domains", token: s.in.token})
		if err != nil || a.status != http.StatusOK {
			s.in.t.Errorf("another client: got status %d, %v want 200", a.status, err)
			return slowest
		}
		slowest = max(slowest, a.took)
	}
}

// peakMemory returns the peak memory of the process in bytes.
func (s *server) peakMemory() int {
	s.in.t.Helper()
	status := musttest.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID())))(s.in.t)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 || fields[1] != "kB" {
		s.in.t.Fatalf("got %s want a line VmHWM", status)
	}
	kilobytes := musttest.Get(strconv.Atoi(fields[0]))(s.in.t)
	return kilobytes << 10
}
