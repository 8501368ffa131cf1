package rollup

import (
	"slices"

	"github.com/dmarcd/dmarcd/aggregate"
)

// Result is what a check of DKIM or SPF came to.
type Result uint8

// The results, in the order of resultWords.
const (
	Unknown Result = iota
	None
	Pass
	Fail
	Softfail
	Neutral
	Policy
	Temperror
	Permerror
)

// resultWords are the words of the results.
var resultWords = []aggregate.Result{
	"", aggregate.ResultNone, aggregate.ResultPass, aggregate.ResultFail, aggregate.ResultSoftfail, aggregate.ResultNeutral,
	aggregate.ResultPolicy, aggregate.ResultTemperror, aggregate.ResultPermerror,
}

// ResultOf returns the result that a report states, Unknown for a word of its own.
func ResultOf(word aggregate.Result) Result {
	return Result(max(slices.Index(resultWords, word.Known()), 0)) //nolint:gosec // there are few
}

// String returns the word of the result.
func (r Result) String() string { return string(resultWords[r]) }

// Reasons is a set of reasons why a receiver did not do what the policy asks for.
type Reasons uint8

// The reasons. ARC is a local policy that names a chain of ARC seals.
const (
	Forwarded Reasons = 1 << iota
	TrustedForwarder
	MailingList
	ARC
	LocalPolicy
	SampledOut
	TestMode
	OtherReason
)

// Relayed reports whether the receiver took the mail for forwarded.
func (r Reasons) Relayed() bool { return r&(Forwarded|TrustedForwarder|MailingList|ARC) != 0 }
