package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Retention is how long data is kept; 0 is for ever.
type Retention struct {
	// Originals is the age to which the bytes that were sent are kept.
	Originals time.Duration
	// Rejected is the same for what could not be used, with its bytes.
	Rejected time.Duration
	// Records is the same for the records of reports, by the end of the report;
	// failure and TLS reports lose their document then.
	Records time.Duration
	// Counters is the same for the messages of a day, and for the reports that
	// counted them: a report that is sent again is recognised until then.
	Counters time.Duration
	// Failure is the age at which failure reports are removed, read or not, with
	// their originals. They are about single messages of people, and count nothing.
	Failure time.Duration
}

// AsConfigured in a field of a team's Retention stands for the setting of the
// installation.
const AsConfigured = -time.Second

// SetRetention sets how long the team's data is kept. Rejected and Failure are
// ignored: they are settings of the installation.
func (t *Team) SetRetention(ctx context.Context, keep Retention, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE teams SET keep_originals = $1, keep_records = $2, keep_counters = $3 WHERE id = $4`,
		int64(keep.Originals/time.Second), int64(keep.Records/time.Second), int64(keep.Counters/time.Second), t.id)
}

// Retention returns how long the team's data is kept, AsConfigured where the team
// has no setting of its own.
func (t *Team) Retention(ctx context.Context) (Retention, error) {
	var originals, records, counters int64
	err := t.store.queryRow(ctx, `SELECT keep_originals, keep_records, keep_counters FROM teams WHERE id = $1`,
		[]any{t.id}, &originals, &records, &counters)
	return Retention{
		Originals: time.Duration(originals) * time.Second, Rejected: AsConfigured, Failure: AsConfigured,
		Records: time.Duration(records) * time.Second, Counters: time.Duration(counters) * time.Second,
	}, err
}

// Or returns keep with the settings of the installation where it has none.
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
		Failure: choose(keep.Failure, configured.Failure),
	}
}
