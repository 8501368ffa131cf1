package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/smtp"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// The size of the measured import.
const (
	importReports = 2000
	importRecords = 50
)

// measureImport measures `dmarcd import`, compared with a loop of prepared inserts of the same
// reports and records into the same tables, in transactions of 20 reports.
func measureImport(ctx context.Context, s settings, e engine) []figure {
	folder := get(os.MkdirTemp("", "dmarcd-bench-import-"))
	defer func() { must(os.RemoveAll(folder)) }()
	writeSamples(folder, importReports, importRecords)
	ours := func() float64 { return importFiles(ctx, s, e, folder) }
	bare := func() float64 { return insertRows(ctx, e) }
	rate, bareRate, share := compare(s.rounds, ours, bare)
	return []figure{{
		fmt.Sprintf("`dmarcd import` of %d gzip files with %d records each, in rows a second, as a share of a loop of prepared inserts", importReports, importRecords),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, rate, bareRate), "at least 0.7",
	}}
}

// emptyStore creates a database with a team and a domain.
func emptyStore(ctx context.Context, e engine) (dsn string, team dmarcd.TeamID, done func() error) {
	dsn, drop := e.create(ctx)
	db := get(store.Open(ctx, dsn, store.Options{}))
	get(db.Migrate(ctx))
	team = get(db.CreateTeam(ctx, "default", true)).ID
	get(db.Team(team).AddDomain(ctx, "example.com", time.Now().Add(24*time.Hour)))
	must(db.Close())
	return dsn, team, drop
}

func importFiles(ctx context.Context, s settings, e engine, folder string) float64 {
	dsn, _, done := emptyStore(ctx, e)
	defer func() { must(done()) }()
	data := get(os.MkdirTemp("", "dmarcd-bench-data-"))
	defer func() { must(os.RemoveAll(data)) }()
	command := exec.CommandContext(ctx, s.binary, "import", "--team", "default", folder) //nolint:gosec // our own program
	command.Env = []string{"DMARCD_DATABASE=" + dsn, "DMARCD_DATA=" + data}
	began := time.Now()
	if output, err := command.CombinedOutput(); err != nil {
		must(fmt.Errorf("import: %w: %s", err, output))
	}
	return importReports * importRecords / time.Since(began).Seconds()
}

// insertRows inserts the rows with the least possible work.
func insertRows(ctx context.Context, e engine) float64 {
	dsn, team, done := emptyStore(ctx, e)
	defer func() { must(done()) }()
	db := openSQL(dsn)
	defer func() { must(db.Close()) }()
	db.SetMaxOpenConns(1)
	began := time.Now()
	const perTransaction = 20
	for first := 0; first < importReports; first += perTransaction {
		insertSamples(ctx, db, team, first, perTransaction)
	}
	return importReports * importRecords / time.Since(began).Seconds()
}

func insertSamples(ctx context.Context, db *sql.DB, team dmarcd.TeamID, first, n int) {
	tx := get(db.BeginTx(ctx, nil))
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	//nolint:sqlclosecheck // the transaction closes it
	report := get(tx.PrepareContext(ctx, `INSERT INTO reports (id, team_id, kind, identity, content, organization, external_id,
			domain, begin_at, end_at, records, messages, compliant, quirks, damage, intake, genuine, authentication, received_at, original, member, document)
		VALUES ($1, $2, 'aggregate', $3, $4, 'receiver.example', $5, 'example.com', $6, $7, 50, 200, 160, '', '', 'import', 'unknown', '', 0, $8, '', '{}')`))
	record := get(tx.PrepareContext(ctx, `INSERT INTO records (team_id, report_id, share, n, count, source, disposition, dkim, spf, details)
		VALUES ($1, $2, 0, $3, $4, $5, $6, $7, $8, $9)`))
	const details = `{"f":"example.com","d":[["example.com","s1","pass",""]],"s":[["example.com","mfrom","pass",""]]}`
	for i := first; i < first+n; i++ {
		s := sample{number: i, domain: "example.com", records: importRecords}
		hash := []byte(s.id())
		get(report.ExecContext(ctx, i+1, team, hash, hash, s.id(), s.begin(), s.begin()+86_399, hash))
		n := 0
		for r := range s.all() {
			get(record.ExecContext(ctx, team, i+1, n, r.Count, r.Source, string(r.Disposition), string(r.DKIM), string(r.SPF), details))
			n++
		}
	}
	must(tx.Commit())
}

// measureCounters requests a summary in a database with few and with many records.
func measureCounters(ctx context.Context, s settings, e engine) []figure {
	const few = 10_000
	sides := make([]side, 2)
	for i, records := range []int{few, s.records} {
		d := startDaemon(ctx, s, e)
		defer d.close()
		addRecords(ctx, d, 100, records, 0)
		ask := request(http.MethodGet, "/api/reports/"+domainName(5), d.token, "")
		sides[i] = func() float64 {
			return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(int) []byte { return ask })
		}
	}
	rate, _, slower := compare(s.rounds, sides[0], sides[1])
	return []figure{{
		fmt.Sprintf("`GET /reports/{domain}`: time with %d records stored over time with %d", s.records, few),
		fmt.Sprintf("%.2f (%.0f/s)", slower, rate), "at most 1.25",
	}}
}

// addRecords stores about that many records, spread over the domains.
func addRecords(ctx context.Context, d *daemon, domains, records int, later int64) {
	addDomains(ctx, d, domains)
	receiveSamples(ctx, d, records/sampleRecords, func(i int) sample {
		return sample{number: i, domain: domainName(i % domains), records: sampleRecords, later: later}
	})
}

// sampleRecords is the number of records in each report of a large database.
const sampleRecords = 100

// receiveSamples stores n reports, in large transactions.
func receiveSamples(ctx context.Context, d *daemon, n int, next func(i int) sample) {
	const perTransaction = 50
	var deliveries []*dmarcd.Delivery
	for i := range n {
		deliveries = append(deliveries, next(i).delivery())
		if len(deliveries) < perTransaction && i < n-1 {
			continue
		}
		get(d.team.Receive(ctx, deliveries))
		deliveries = deliveries[:0]
	}
}

// measureMail sends mails with a report of 50 records each by SMTP, and waits until all are
// counted.
func measureMail(ctx context.Context, s settings, d *daemon) []figure {
	domain := get(d.team.AddDomain(ctx, "example.com", time.Now().Add(24*time.Hour)))
	const mails = 2000
	content := make([][]byte, mails)
	messages := int64(0)
	for i := range content {
		report := sample{number: i, domain: "example.com", records: importRecords}
		for r := range report.all() {
			messages += r.Count
		}
		content[i] = mailWith(report.file())
	}
	to := domain.ReportAddress(benchReportDomain)
	began := time.Now()
	must(sendAll(d.mail, to, content, s.clients))
	accepted := time.Since(began)
	for {
		sum := get(d.team.DomainSummary(ctx, "example.com", dmarcd.Days{}))
		if sum.Total() == messages {
			break
		}
		if time.Since(began) > 5*time.Minute {
			must(fmt.Errorf("%d of %d messages counted", sum.Total(), messages))
		}
	}
	return []figure{
		{fmt.Sprintf("mails of %d records by SMTP, on disk and acknowledged", importRecords), fmt.Sprintf("%.0f/s", mails/accepted.Seconds()), ""},
		{"the same, verified and counted", fmt.Sprintf("%.0f/s", mails/time.Since(began).Seconds()), ""},
	}
}

func mailWith(report []byte) []byte {
	var b bytes.Buffer
	b.WriteString("From: dmarc@receiver.example\r\nTo: reports@example.net\r\nSubject: Report Domain: example.com\r\n" +
		"MIME-Version: 1.0\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n")
	text := base64.StdEncoding.EncodeToString(report)
	for len(text) > 76 {
		b.WriteString(text[:76] + "\r\n")
		text = text[76:]
	}
	b.WriteString(text + "\r\n")
	return b.Bytes()
}

// sendAll sends mails over several connections.
func sendAll(address, to string, mails [][]byte, clients int) error {
	var group errgroup.Group
	for part := range slices.Chunk(mails, (len(mails)+clients-1)/clients) {
		group.Go(func() error {
			client, err := smtp.Dial(address)
			if err != nil {
				return err
			}
			for _, mail := range part {
				if err := sendMail(client, to, mail); err != nil {
					return err
				}
			}
			return client.Quit()
		})
	}
	return group.Wait()
}

func sendMail(client *smtp.Client, to string, mail []byte) error {
	if err := errors.Join(client.Mail("dmarc@receiver.example"), client.Rcpt(to)); err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	_, err = w.Write(mail)
	return errors.Join(err, w.Close())
}

const (
	// growthRecords is the number of records of the last 30 days, which is all that the first
	// step has.
	growthRecords = 1_000_000
	growthDomains = 1000
	growthDays    = 30
	perDay        = growthRecords / growthDays
)

// measureGrowth grows a database tenfold in each step with the mail of earlier years, and
// measures reads of the last 30 days, whose mail stays the same.
func measureGrowth(ctx context.Context, s settings, d *daemon) []figure {
	addDomains(ctx, d, growthDomains)
	today := dmarcd.DayOf(time.Now())
	period := fmt.Sprintf("from=%s&to=%s", today-growthDays, today-1)
	reads := []string{
		"/reports/" + domainName(5), "/domains?limit=100", "/insights/reports?limit=100",
		"/insights/senders?" + period + "&domain=" + domainName(5), "/insights/senders?" + period,
	}
	values := make([]string, len(reads))
	steps, number := "", 0
	for total, before := growthRecords, 0; total <= s.records; total, before = total*10, total {
		began := time.Now()
		// All days have the same amount of mail, and the mail of a day arrives together, as in
		// reality: a job that reads a day must not read the whole table.
		last, days, samples := before/perDay, (total-before)/perDay, (total-before)/sampleRecords
		receiveSamples(ctx, d, samples, func(i int) sample {
			number++
			return sample{
				number: number, domain: domainName(number % growthDomains), records: sampleRecords,
				day: int64(today) - int64(last+days) + int64(i*days/samples),
			}
		})
		fmt.Fprintf(os.Stderr, "%d records after %.0f s\n", total, time.Since(began).Seconds())
		buildRollups(ctx, d)
		steps += fmt.Sprintf(", %.0e", float64(total))
		for i, path := range reads {
			_, p50, _, _ := timeAnswers(ctx, "http://"+d.address+"/api"+path, &http.Cookie{}, d.token)
			median := fmt.Sprintf("%.1f ms", p50)
			fmt.Fprintf(os.Stderr, "GET %s: %s\n", path, median)
			values[i] += ", " + median
		}
	}
	var figures []figure
	for i, path := range reads {
		figures = append(figures, figure{"`GET " + path + "` with " + steps[2:] + " records: p50", values[i][2:], "flat"})
	}
	return figures
}
