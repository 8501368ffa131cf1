package aggregate

import (
	"slices"
	"strings"
)

// Policy is what a domain asks for, or what a receiver did: one of the words
// below in lower case, or what the reporter wrote instead.
type Policy string

// The policies and dispositions.
const (
	PolicyNone       Policy = "none"
	PolicyQuarantine Policy = "quarantine"
	PolicyReject     Policy = "reject"
	// PolicyPass is a disposition only: the messages passed under an enforcing
	// policy (RFC 9990).
	PolicyPass Policy = "pass"
)

// Result is the outcome of a check: one of the words below or of their aliases in
// lower case, or what the reporter wrote instead.
type Result string

// The results of RFC 8601 §2.7.
const (
	ResultNone      Result = "none"
	ResultPass      Result = "pass"
	ResultFail      Result = "fail"
	ResultSoftfail  Result = "softfail"
	ResultNeutral   Result = "neutral"
	ResultPolicy    Result = "policy"
	ResultTemperror Result = "temperror"
	ResultPermerror Result = "permerror"
)

// Known returns the result that r is or is an alias of, or "" for other words.
func (r Result) Known() Result {
	if slices.Contains(authWords, string(r)) {
		return r
	}
	return aliases[string(r)]
}

// aliases are words of older specifications and of software that made its own.
var aliases = map[string]Result{
	"hardfail": ResultFail,
	"unknown":  ResultTemperror,
	"error":    ResultPermerror,
}

// The vocabularies of the elements.
var (
	policyWords      = []string{"none", "quarantine", "reject"}
	dispositionWords = []string{"none", "quarantine", "reject", "pass"}
	modeWords        = []string{"r", "s"}
	testingWords     = []string{"n", "y"}
	discoveryWords   = []string{"psl", "treewalk"}
	evaluatedWords   = []string{"pass", "fail"}
	authWords        = []string{"pass", "fail", "none", "softfail", "neutral", "policy", "temperror", "permerror"}
	scopeWords       = []string{"mfrom", "helo"}
	reasonWords      = []string{
		"forwarded", "sampled_out", "trusted_forwarder", "mailing_list", "local_policy", "other", "policy_test_mode",
	}
)

// word puts a value into the form of its vocabulary, and notes what is wrong with
// it. A value that is not in the vocabulary stays as it is.
func (t *tally) word(value string, vocabulary []string) string {
	if value == "" || slices.Contains(vocabulary, value) {
		return value
	}
	for _, known := range vocabulary {
		if strings.EqualFold(value, known) {
			t.note(ValueCase)
			return known
		}
	}
	t.note(ValueUnknown)
	return value
}

// result is word for the results of auth_results, which have aliases.
func (t *tally) result(value string) Result {
	if slices.Contains(authWords, value) {
		return Result(value)
	}
	if _, ok := aliases[strings.ToLower(value)]; ok {
		t.note(ValueAlias)
		return Result(strings.ToLower(value))
	}
	return Result(t.word(value, authWords))
}
