// Package aggregate reads DMARC aggregate reports: RFC 9990, RFC 7489 and the
// drafts before them, as one stream of records in constant memory. The time for a
// document grows with its length and nothing else.
//
// Reporters write much that no schema allows. The reader takes what can be
// understood, and notes each kind of deviation once, with a count, as a Quirk of
// the report; the quirks are listed in one table in quirk.go. Of a damaged report
// the complete records are read. What is no report, or has nothing usable in it,
// is refused with a *RefusedError that says why.
//
// The package also says when two documents are the same report (Report.Key and
// Report.Content), and writes a report in canonical form (Render).
//
// Containers (gzip, zip, mail), the limit of all bytes and the limit of time are
// the caller's: they belong to the io.Reader that it hands in.
package aggregate

// Limits bounds what is read of one report. A field that is zero or negative
// stands for the value of DefaultLimits.
type Limits struct {
	// TextBytes is the most that one value may have. A report with a longer one is
	// refused, and so is one with a run of text or a tag eight times as long.
	TextBytes int
	// Depth is the most elements that may be open at once.
	Depth int
	// Records is the most records that a report may have, skipped and incomplete
	// ones included.
	Records int
	// AuthResults is the most DKIM results, and the most SPF results, that are kept
	// of one record; the rest is left out with a quirk. RFC 9990 allows
	// 100 DKIM results.
	AuthResults int
	// Reasons is the most override reasons that are kept of one record, and the
	// most errors that are kept of the metadata.
	Reasons int
	// Latest is the latest time that a report may be about, in seconds since 1970.
	// A later one is a quirk. There is none by default.
	Latest int64
}

// DefaultLimits returns limits that no honest report comes near.
func DefaultLimits() Limits {
	return Limits{TextBytes: 64 << 10, Depth: 64, Records: 1_000_000, AuthResults: 100, Reasons: 100}
}

// runFactor is how much longer than a value its text may be: escaped and in
// CDATA, nothing that Render writes is longer.
const runFactor = 8

// orDefault fills in the limits that were left open.
func (l Limits) orDefault() Limits {
	standard := DefaultLimits()
	for _, field := range []struct{ value, standard *int }{
		{&l.TextBytes, &standard.TextBytes},
		{&l.Depth, &standard.Depth},
		{&l.Records, &standard.Records},
		{&l.AuthResults, &standard.AuthResults},
		{&l.Reasons, &standard.Reasons},
	} {
		if *field.value <= 0 {
			*field.value = *field.standard
		}
	}
	return l
}
