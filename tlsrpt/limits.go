package tlsrpt

// Limits bounds what is read of one report. A field that is zero or negative
// stands for the value of DefaultLimits.
type Limits struct {
	// TextBytes is the most that one text or number may have. A report with a longer
	// one is refused.
	TextBytes int
	// KeptBytes is the most that all texts that are kept may have together: a report
	// is held in memory as a whole. A report with more is refused.
	KeptBytes int
	// Depth is the most objects and lists that may be open at once.
	Depth int
	// Policies is the most policies that a report may have.
	Policies int
	// Failures is the most failure details that a report may have in all its
	// policies together.
	Failures int
	// Values is the most lines, and the most MX hosts, that are kept of one policy;
	// the rest is left out with a quirk.
	Values int
	// Latest is the latest time that a report may be about, in seconds since 1970.
	// A later one is a quirk. There is none by default.
	Latest int64
}

// DefaultLimits returns limits that no honest report comes near.
func DefaultLimits() Limits {
	return Limits{TextBytes: 64 << 10, KeptBytes: 32 << 20, Depth: 64, Policies: 10_000, Failures: 100_000, Values: 100}
}

// orDefault fills in the limits that were left open.
func (l Limits) orDefault() Limits {
	standard := DefaultLimits()
	for _, field := range []struct{ value, standard *int }{
		{&l.TextBytes, &standard.TextBytes},
		{&l.KeptBytes, &standard.KeptBytes},
		{&l.Depth, &standard.Depth},
		{&l.Policies, &standard.Policies},
		{&l.Failures, &standard.Failures},
		{&l.Values, &standard.Values},
	} {
		if *field.value <= 0 {
			*field.value = *field.standard
		}
	}
	return l
}
