package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Retention is how long data is stored; 0 means forever.
type Retention struct {
	// Originals is for the original bytes.
	Originals time.Duration
	// Rejected is for rejected items with their originals.
	Rejected time.Duration
	// Records is for the records of reports, from the end of the period; failure and TLS
	// reports lose their document then.
	Records time.Duration
	// Counters is for daily counters and the rows of their reports: until then a report is
	// recognized as a duplicate.
	Counters time.Duration
	// Failure is for failure reports with their originals. They describe single messages and
	// are not counted.
	Failure time.Duration
	// Audit is for the audit log. Entries limits the entries of a team in each of the audit log,
	// the events and the deliveries; 0 is no limit. Both are settings of the installation.
	Audit   time.Duration
	Entries int64
}

// AsConfigured in a team's Retention means the setting of the installation.
const AsConfigured = -time.Second

// SetRetention sets the team's retention. The other fields are ignored: they are settings of
// the installation.
func (t *Team) SetRetention(ctx context.Context, keep Retention, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE teams SET keep_originals = $1, keep_records = $2, keep_counters = $3 WHERE id = $4`,
		int64(keep.Originals/time.Second), int64(keep.Records/time.Second), int64(keep.Counters/time.Second), t.id)
}

// Retention returns the team's retention, AsConfigured for unset fields.
func (t *Team) Retention(ctx context.Context) (Retention, error) {
	return scanRetention(rowOf(ctx, t.store, `SELECT keep_originals, keep_records, keep_counters FROM teams WHERE id = $1`, t.id))
}

func scanRetention(scan scanner) (Retention, error) {
	var originals, records, counters int64
	err := scan(&originals, &records, &counters)
	return Retention{
		Originals: time.Duration(originals) * time.Second, Rejected: AsConfigured, Failure: AsConfigured,
		Records: time.Duration(records) * time.Second, Counters: time.Duration(counters) * time.Second,
	}, err
}

// records returns how long records are stored: at most as long as their reports.
func (keep Retention) records() time.Duration {
	if keep.Records == 0 || keep.Counters > 0 && keep.Counters < keep.Records {
		return keep.Counters
	}
	return keep.Records
}

// Or fills unset fields from the settings of the installation.
func (keep Retention) Or(configured Retention) Retention {
	choose := func(own, other time.Duration) time.Duration {
		if own < 0 {
			return other
		}
		return own
	}
	return Retention{
		Originals: choose(keep.Originals, configured.Originals), Rejected: choose(keep.Rejected, configured.Rejected),
		Records: choose(keep.Records, configured.Records), Counters: choose(keep.Counters, configured.Counters),
		Failure: choose(keep.Failure, configured.Failure), Audit: configured.Audit, Entries: configured.Entries,
	}
}
