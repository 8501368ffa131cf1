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
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// The import that is measured.
const (
	importReports = 2000
	importRecords = 50
)

// measureImport has `dmarcd import` read files, against a loop of prepared inserts of
// as many reports and records into the same tables, one transaction for every 20
// reports.
func measureImport(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	folder, err := os.MkdirTemp("", "dmarcd-bench-import-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if _, err := writeSamples(folder, importReports, importRecords); err != nil {
		return nil, err
	}
	ours := func() (float64, error) { return importFiles(ctx, s, e, folder) }
	bare := func() (float64, error) { return insertRows(ctx, e) }
	rate, bareRate, share, err := compare(s.rounds, ours, bare)
	return []figure{{
		fmt.Sprintf("`dmarcd import` of %d gzip files with %d records each, in rows a second, as a share of a loop of prepared inserts", importReports, importRecords),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, rate, bareRate), "at least 0.7",
	}}, err
}

// emptyStore makes a database with a team and a domain.
func emptyStore(ctx context.Context, e engine) (dsn string, team dmarcd.TeamID, done func() error, err error) {
	dsn, drop, err := e.create(ctx)
	if err != nil {
		return "", 0, nil, err
	}
	db, err := store.Open(ctx, dsn, store.Options{})
	if err != nil {
		return "", 0, nil, errors.Join(err, drop())
	}
	if _, err = db.Migrate(ctx); err == nil {
		var created dmarcd.Team
		if created, err = db.CreateTeam(ctx, "default", true); err == nil {
			team = created.ID
			_, err = db.Team(team).AddDomain(ctx, "example.com", time.Now().Add(24*time.Hour))
		}
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return "", 0, nil, errors.Join(err, drop())
	}
	return dsn, team, drop, nil
}

func importFiles(ctx context.Context, s settings, e engine, folder string) (_ float64, err error) {
	dsn, _, done, err := emptyStore(ctx, e)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	data, err := os.MkdirTemp("", "dmarcd-bench-data-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	command := exec.CommandContext(ctx, s.binary, "import", "--team", "default", folder) //nolint:gosec // our own program
	command.Env = []string{"DMARCD_DATABASE=" + dsn, "DMARCD_DATA=" + data}
	began := time.Now()
	if output, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("import: %w: %s", err, output)
	}
	return importReports * importRecords / time.Since(began).Seconds(), nil
}

// insertRows is the least that anything has to do that stores the same.
func insertRows(ctx context.Context, e engine) (_ float64, err error) {
	dsn, team, done, err := emptyStore(ctx, e)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	db, err := openSQL(dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	began := time.Now()
	const perTransaction = 20
	for first := 0; first < importReports; first += perTransaction {
		if err := insertSamples(ctx, db, team, first, perTransaction); err != nil {
			return 0, err
		}
	}
	return importReports * importRecords / time.Since(began).Seconds(), nil
}

func insertSamples(ctx context.Context, db *sql.DB, team dmarcd.TeamID, first, n int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	//nolint:sqlclosecheck // the transaction closes it
	report, err := tx.PrepareContext(ctx, `INSERT INTO reports (id, team_id, kind, identity, content, organization, external_id,
			domain, begin_at, end_at, records, messages, compliant, quirks, damage, intake, genuine, verdict, received_at, original, member, document)
		VALUES ($1, $2, 'aggregate', $3, $4, 'receiver.example', $5, 'example.com', $6, $7, 50, 200, 160, '', '', 'import', 'unknown', '', 0, $8, '', '{}')`)
	if err != nil {
		return err
	}
	//nolint:sqlclosecheck // the transaction closes it
	record, err := tx.PrepareContext(ctx, `INSERT INTO records (team_id, report_id, share, n, count, source, disposition, dkim, spf, details)
		VALUES ($1, $2, 0, $3, $4, $5, $6, $7, $8, $9)`)
	if err != nil {
		return err
	}
	const details = `{"f":"example.com","d":[["example.com","s1","pass",""]],"s":[["example.com","mfrom","pass",""]]}`
	for i := first; i < first+n; i++ {
		s := sample{number: i, domain: "example.com", records: importRecords}
		hash := []byte(s.id())
		if _, err := report.ExecContext(ctx, i+1, team, hash, hash, s.id(), s.begin(), s.begin()+86_399, hash); err != nil {
			return err
		}
		n := 0
		for r := range s.all() {
			if _, err := record.ExecContext(ctx, team, i+1, n, r.Count, r.Source, string(r.Disposition), string(r.DKIM), string(r.SPF), details); err != nil {
				return err
			}
			n++
		}
	}
	return tx.Commit()
}

// measureCounters asks for a summary in a database of few and of many records.
func measureCounters(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	const few = 10_000
	sides := make([]side, 2)
	for i, records := range []int{few, s.records} {
		d, err := startDaemon(ctx, s, e)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.close()) }()
		if err := addRecords(ctx, d, 100, records, 0); err != nil {
			return nil, err
		}
		ask := request(http.MethodGet, "/api/reports/"+domainName(5), d.token, "")
		sides[i] = func() (float64, error) {
			return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(int64) []byte { return ask })
		}
	}
	rate, _, slower, err := compare(s.rounds, sides[0], sides[1])
	return []figure{{
		fmt.Sprintf("`GET /reports/{domain}`: time with %d records stored over time with %d", s.records, few),
		fmt.Sprintf("%.2f (%.0f/s)", slower, rate), "at most 1.25",
	}}, err
}

// addRecords stores about as many records, in turn for so many domains.
func addRecords(ctx context.Context, d *daemon, domains, records int, later int64) error {
	if err := addDomains(ctx, d, domains); err != nil {
		return err
	}
	return receiveSamples(ctx, d, records/sampleRecords, func(i int) sample {
		return sample{number: i, domain: domainName(i % domains), records: sampleRecords, later: later}
	})
}

// sampleRecords are the records of each report of a large database.
const sampleRecords = 100

// receiveSamples stores n reports, in large transactions.
func receiveSamples(ctx context.Context, d *daemon, n int, next func(i int) sample) error {
	const perTransaction = 50
	var deliveries []*dmarcd.Delivery
	for i := range n {
		deliveries = append(deliveries, next(i).delivery())
		if len(deliveries) < perTransaction && i < n-1 {
			continue
		}
		if _, err := d.team.Receive(ctx, deliveries); err != nil {
			return err
		}
		deliveries = deliveries[:0]
	}
	return nil
}

// measureMail sends mails with a report of 50 records each by SMTP, and waits until
// all are counted.
func measureMail(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	domain, err := d.team.AddDomain(ctx, "example.com", time.Now().Add(24*time.Hour))
	if err != nil {
		return nil, err
	}
	const mails = 2000
	content := make([][]byte, mails)
	messages := int64(0)
	for i := range content {
		report := sample{number: i, domain: "example.com", records: importRecords}
		for r := range report.all() {
			messages += r.Count
		}
		file, err := report.file()
		if err != nil {
			return nil, err
		}
		content[i] = mailWith(file)
	}
	to := domain.ReportAddress(benchReportDomain)
	began := time.Now()
	if err := sendAll(d.mail, to, content, s.clients); err != nil {
		return nil, err
	}
	accepted := time.Since(began)
	for {
		sum, err := d.team.DomainSummary(ctx, "example.com", dmarcd.Days{})
		if err != nil {
			return nil, err
		}
		if sum.Total() == messages {
			break
		}
		if time.Since(began) > 5*time.Minute {
			return nil, fmt.Errorf("%d of %d messages counted", sum.Total(), messages)
		}
	}
	return []figure{
		{fmt.Sprintf("mails of %d records by SMTP, on disk and acknowledged", importRecords), fmt.Sprintf("%.0f/s", mails/accepted.Seconds()), ""},
		{"the same, verified and counted", fmt.Sprintf("%.0f/s", mails/time.Since(began).Seconds()), ""},
	}, nil
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

// sendAll sends mails over some connections at once.
func sendAll(address, to string, mails [][]byte, clients int) error {
	work := make(chan []byte)
	failed := make(chan error, clients)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() { failed <- sendSome(address, to, work) })
	}
	for _, mail := range mails {
		select {
		case work <- mail:
		case err := <-failed:
			return err
		}
	}
	close(work)
	group.Wait()
	var errs []error
	for range clients {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

func sendSome(address, to string, work <-chan []byte) error {
	client, err := smtp.Dial(address)
	if err != nil {
		return err
	}
	for mail := range work {
		if err := sendMail(client, to, mail); err != nil {
			return err
		}
	}
	return client.Quit()
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
