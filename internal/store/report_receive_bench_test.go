package store_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const (
	benchRecords = 50 // per report
	benchBatch   = 20 // reports per transaction
)

// BenchmarkReceive stores reports of 50 records, 20 per transaction. Compare its rows per
// second with BenchmarkBareInserts.
func BenchmarkReceive(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		s := db.Open(b, store.Options{})
		created := storetest.Team(b, s, "a")
		team := s.Team(created.ID)
		addDomain(b, team, "example.com")
		id := 0
		b.Run(db.Engine, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				deliveries := make([]*dmarcd.Delivery, benchBatch)
				for i := range deliveries {
					id++
					deliveries[i] = storetest.Delivery(storetest.Aggregate(fmt.Sprint(id), "example.com", dmarcd.Day(id%365), benchRows(id)...))
				}
				b.StartTimer()
				if _, err := team.Receive(b.Context(), deliveries); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*benchBatch*benchRecords)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func benchRows(report int) []aggregate.Record {
	rows := make([]aggregate.Record, benchRecords)
	for i := range rows {
		rows[i] = storetest.Passed("example.com", int64(i))
		rows[i].Source = fmt.Sprintf("192.0.%d.%d", report%256, i)
	}
	return rows
}

// BenchmarkBareInserts inserts the same rows with one prepared statement, 1,000 rows per
// transaction.
func BenchmarkBareInserts(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		db.Open(b, store.Options{})
		raw := db.SQL(b)
		raw.SetMaxOpenConns(1)
		for _, statement := range []string{
			`INSERT INTO teams (id, name, api, created_at) VALUES (1, 'a', TRUE, 0)`,
		} {
			if _, err := raw.ExecContext(b.Context(), statement); err != nil {
				b.Fatal(err)
			}
		}
		id := 0
		b.Run(db.Engine, func(b *testing.B) {
			for b.Loop() {
				tx, err := raw.BeginTx(b.Context(), nil)
				musttest.Do(b, err)
				//nolint:sqlclosecheck // the transaction closes it
				report, err := tx.PrepareContext(b.Context(), `INSERT INTO reports (id, team_id, kind, identity, content, organization, external_id,
					domain, begin_at, end_at, records, messages, compliant, quirks, damage, intake, genuine, authentication, received_at, original, member, document)
					VALUES ($1, 1, 'aggregate', $2, $2, 'receiver.example', '1', 'example.com', 0, 0, 50, 50, 50, '', '', 'import', 'unknown', '', 0, $2, '', '{}')`)
				musttest.Do(b, err)
				//nolint:sqlclosecheck // the transaction closes it
				record, err := tx.PrepareContext(b.Context(), `INSERT INTO records (team_id, report_id, share, n, source, count, disposition, dkim, spf, details)
					VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9)`)
				musttest.Do(b, err)
				for range benchBatch {
					id++
					if _, err := report.ExecContext(b.Context(), id, fmt.Append(nil, id)); err != nil {
						b.Fatal(err)
					}
					for n := range benchRecords {
						if _, err := record.ExecContext(b.Context(), id, 0, n, fmt.Sprintf("192.0.%d.%d", id%256, n), n, "none", "pass", "fail",
							`{"f":"example.com","d":[["example.com","s1","pass",""]]}`); err != nil {
							b.Fatal(err)
						}
					}
				}
				musttest.Do(b, tx.Commit())
			}
			b.ReportMetric(float64(b.N*benchBatch*benchRecords)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
