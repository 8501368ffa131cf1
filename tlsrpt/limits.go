package tlsrpt

import "cmp"

// Limits limits the resources for one report. A zero or negative field means the value of
// DefaultLimits.
type Limits struct {
	// TextBytes limits one text or number. A report with a longer one is rejected.
	TextBytes int
	// TotalBytes limits the total size of the texts, because a report is in memory as a
	// whole. A larger report is rejected.
	TotalBytes int
	// Depth limits the nesting of objects and lists.
	Depth    int
	Policies int
	// Failures limits the failure details of all policies together.
	Failures int
	// Values limits the lines and the MX hosts of one policy; further ones are dropped
	// with a quirk.
	Values int
	// Latest is the latest plausible time, in seconds since 1970. A later one is a quirk.
	// 0 means no limit.
	Latest int64
}

// DefaultLimits returns limits far above those of real reports.
func DefaultLimits() Limits {
	return Limits{TextBytes: 64 << 10, TotalBytes: 32 << 20, Depth: 64, Policies: 10_000, Failures: 100_000, Values: 100}
}

// orDefault fills in defaults.
func (l Limits) orDefault() Limits {
	standard := DefaultLimits()
	l.TextBytes = cmp.Or(max(l.TextBytes, 0), standard.TextBytes)
	l.TotalBytes = cmp.Or(max(l.TotalBytes, 0), standard.TotalBytes)
	l.Depth = cmp.Or(max(l.Depth, 0), standard.Depth)
	l.Policies = cmp.Or(max(l.Policies, 0), standard.Policies)
	l.Failures = cmp.Or(max(l.Failures, 0), standard.Failures)
	l.Values = cmp.Or(max(l.Values, 0), standard.Values)
	return l
}
