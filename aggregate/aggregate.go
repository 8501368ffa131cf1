// Package aggregate reads DMARC aggregate reports (RFC 9990, RFC 7489 and earlier drafts)
// as a stream of records in constant memory. The time is linear in the length of the
// document.
//
// Many reports violate every schema. The reader accepts what it can understand and counts
// each kind of deviation as a Quirk of the report; quirk.go lists them. Of a damaged
// report it returns the complete records. A document that is not a report, or not usable,
// is rejected with a *RejectedError.
//
// Report.Key and Report.Content identify duplicates and versions of a report. Render
// writes a report in canonical form.
//
// Containers (gzip, zip, mail) and limits on total bytes and time are left to the caller
// and its io.Reader.
package aggregate

import "cmp"

// Limits limits the resources for one report. A zero or negative field means the value of
// DefaultLimits.
type Limits struct {
	// TextBytes limits one value. A report with a longer one is rejected, as is one with
	// a run of text or a tag eight times as long.
	TextBytes int
	// Depth limits the nesting of elements.
	Depth int
	// Records limits the records of a report, including skipped and incomplete ones.
	Records int
	// AuthResults limits the DKIM results and the SPF results of one record; further ones
	// are dropped with a quirk. RFC 9990 allows 100 DKIM results.
	AuthResults int
	// Reasons limits the override reasons of one record, and the errors in the metadata.
	Reasons int
	// RecordBytes limits the texts of all results and reasons of one record, and those of the
	// errors in the metadata. Further ones are dropped with a quirk.
	RecordBytes int
	// Latest is the latest plausible time, in seconds since 1970. A later one is a quirk.
	// 0 means no limit.
	Latest int64
}

// DefaultLimits returns limits far above those of real reports.
func DefaultLimits() Limits {
	return Limits{TextBytes: 64 << 10, Depth: 64, Records: 1_000_000, AuthResults: 100, Reasons: 100, RecordBytes: 16 << 10}
}

// runFactor is how much longer than a value its escaped text may be. Render writes
// nothing longer.
const runFactor = 8

// orDefault fills in defaults.
func (l Limits) orDefault() Limits {
	standard := DefaultLimits()
	l.TextBytes = cmp.Or(max(l.TextBytes, 0), standard.TextBytes)
	l.Depth = cmp.Or(max(l.Depth, 0), standard.Depth)
	l.Records = cmp.Or(max(l.Records, 0), standard.Records)
	l.AuthResults = cmp.Or(max(l.AuthResults, 0), standard.AuthResults)
	l.Reasons = cmp.Or(max(l.Reasons, 0), standard.Reasons)
	l.RecordBytes = cmp.Or(max(l.RecordBytes, 0), standard.RecordBytes)
	return l
}
