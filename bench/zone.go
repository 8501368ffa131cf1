package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/store"
	harness "github.com/dmarcd/dmarcd/test/daemon"
)

const (
	benchZone = "dns.bench.example"
	// recordsOfDomain is the number of managed records of a domain.
	recordsOfDomain = 2
	benchRecord     = "v=DMARC1; p=quarantine; rua=mailto:0123456789abcdef@reports.bench.example"
	// answerWait limits the wait for one answer.
	answerWait = 10 * time.Second
)

// measureZone measures the DNS server for managed records, side by side with Knot DNS.
func measureZone(ctx context.Context, s settings, e engine) []figure {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort()))
	d := startDaemon(ctx, s, e, "DMARCD_ZONE="+benchZone, "DMARCD_ZONE_LISTEN="+address, "DMARCD_ZONE_NAMESERVERS=ns1.bench.example,ns2.bench.example")
	defer d.close()
	empty, _ := d.memory()
	names := s.domains * recordsOfDomain
	var began time.Time
	d.whileStopped(ctx, func() {
		insertNames(ctx, d.dsn, names)
		began = time.Now()
	})
	ready := time.Since(began)
	full, _ := d.memory()

	knot := startKnot(ctx, names)
	defer func() {
		must(errors.Join(knot.process.Process.Kill(), ignoreExit(knot.process.Wait()), os.RemoveAll(knot.folder)))
	}()
	var ours, theirs []float64
	for range s.rounds {
		ours = append(ours, answersPerSecond(ctx, s, address, d.process.Process.Pid, names))
		theirs = append(theirs, answersPerSecond(ctx, s, knot.address, knot.process.Process.Pid, names))
	}
	return []figure{
		{fmt.Sprintf("start with %d names until they are served", names), fmt.Sprintf("%.1f s", ready.Seconds()), "10 s for 100,000 domains"},
		{"resident memory for each of them", fmt.Sprintf("%d bytes", max(0, full-empty)/int64(names)), "under 1 KiB"},
		{"answers for each second of processor time", fmt.Sprintf("%.0f", median(ours)), "at least 25,000"},
		{"the same, relative to Knot DNS", fmt.Sprintf("%.2f", median(ours)/median(theirs)), ""},
	}
}

func benchLabel(i int) string { return fmt.Sprintf("n%023d", i) }

// insertNames inserts names of a zone into the database of a daemon that does not run.
func insertNames(ctx context.Context, dsn string, names int) {
	const rows = 500
	driver := "sqlite"
	if store.IsPostgres(dsn) {
		driver = "pgx"
	}
	db := get(sql.Open(driver, dsn))
	defer func() { must(db.Close()) }()
	for first := 0; first < names; first += rows {
		var values []string
		for i := first; i < min(first+rows, names); i++ {
			values = append(values, fmt.Sprintf("('%s', 'dmarc', '1\n@ 16 %s', 'x', 1)", benchLabel(i), benchRecord))
		}
		get(db.ExecContext(ctx, `INSERT INTO zone_names (label, kind, content, source, serial) VALUES `+strings.Join(values, ", ")))
	}
}

// knotServer is Knot DNS with the same zone.
type knotServer struct {
	address, folder string
	process         *exec.Cmd
}

func startKnot(ctx context.Context, names int) knotServer {
	port := harness.FreePort()
	k := knotServer{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), folder: get(os.MkdirTemp("", "dmarcd-bench-knot-"))}
	var file strings.Builder
	fmt.Fprintf(&file, "$ORIGIN %s.\n$TTL 300\n@ SOA ns1.bench.example. hostmaster 1 900 300 2419200 60\n@ NS ns1.bench.example.\n", benchZone)
	for i := range names {
		fmt.Fprintf(&file, "%s TXT %q\n", benchLabel(i), benchRecord)
	}
	must(os.WriteFile(filepath.Join(k.folder, "bench.zone"), []byte(file.String()), 0o600))
	configuration := filepath.Join(k.folder, "knot.conf")
	must(os.WriteFile(configuration, fmt.Appendf(nil, "server:\n    rundir: %[1]s\n    listen: 127.0.0.1@%[2]d\ndatabase:\n    storage: %[1]s\nzone:\n  - domain: %[3]s\n    storage: %[1]s\n    file: bench.zone\n    zonefile-sync: -1\n",
		k.folder, port, benchZone), 0o600))
	program := "knotd"
	if _, err := exec.LookPath(program); err != nil {
		program = "/usr/sbin/knotd" // where the PATH of a user need not lead
	}
	k.process = exec.CommandContext(ctx, program, "--config", configuration) //nolint:gosec // our own arguments
	must(k.process.Start())
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(time.Minute); ; {
		reply, err := mdns.Exchange(new(mdns.Msg).SetQuestion(benchLabel(0)+"."+benchZone+".", mdns.TypeTXT), k.address)
		if err == nil && len(reply.Answer) == 1 {
			return k
		}
		if time.Now().After(end) {
			must(fmt.Errorf("knotd does not serve the zone: %w", err))
		}
		<-poll.C
	}
}

// ignoreExit returns no error for a process that was killed.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// answersPerSecond asks a server from addresses all over 127.0.0.0/8, and returns its answers for each
// second of its processor time.
func answersPerSecond(ctx context.Context, s settings, address string, pid, names int) float64 {
	server := get(net.ResolveUDPAddr("udp", address))
	conns := make([]*net.UDPConn, s.clients)
	for i := range conns {
		from := net.IPv4(127, byte(rand.IntN(256)), byte(rand.IntN(256)), byte(1+rand.IntN(254))) //nolint:gosec // no secret
		conns[i] = get(net.DialUDP("udp", &net.UDPAddr{IP: from}, server))
		defer func() { _ = conns[i].Close() }() // nothing is written any more
	}
	answers := make([]int, s.clients)
	before := get(harness.ProcessorTime(pid))
	repeat(ctx, s.clients, s.duration, func(client, _ int) error {
		query := new(mdns.Msg).SetQuestion(benchLabel(rand.IntN(names))+"."+benchZone+".", mdns.TypeTXT) //nolint:gosec // no secret
		packed, err := query.SetEdns0(1232, false).Pack()
		if err != nil {
			return err
		}
		buffer := make([]byte, 1500)
		if _, err := conns[client].Write(packed); err != nil {
			return err
		}
		if err := conns[client].SetReadDeadline(time.Now().Add(answerWait)); err != nil {
			return err
		}
		n, err := conns[client].Read(buffer)
		if err != nil {
			return err
		}
		if n < 12 || buffer[7] != 1 {
			return fmt.Errorf("got an answer of %d bytes without a record", n)
		}
		answers[client]++
		return nil
	})
	took, sum := get(harness.ProcessorTime(pid))-before, 0
	for _, n := range answers {
		sum += n
	}
	return float64(sum) / took.Seconds()
}
