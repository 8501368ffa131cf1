package aggregate

import (
	"slices"
	"strings"
)

// Policy is a requested policy or an applied disposition: one of the keywords below, or
// other text of the reporter.
type Policy string

const (
	PolicyNone       Policy = "none"
	PolicyQuarantine Policy = "quarantine"
	PolicyReject     Policy = "reject"
	// PolicyPass is only a disposition: the messages passed under an enforcing policy
	// (RFC 9990).
	PolicyPass Policy = "pass"
)

// Result is an authentication result: one of the keywords below, an alias in lower case,
// or other text of the reporter.
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

// Known resolves an alias. It returns "" for unknown keywords.
func (r Result) Known() Result {
	if slices.Contains(authWords, string(r)) {
		return r
	}
	return aliases[string(r)]
}

// aliases are keywords of older specifications and of some software.
var aliases = map[string]Result{
	"hardfail": ResultFail,
	"unknown":  ResultTemperror,
	"error":    ResultPermerror,
}

// The keywords of the elements.
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

// word normalizes a keyword and notes deviations. An unknown keyword is returned
// unchanged.
func (t *tally) word(value string, vocabulary []string) string {
	if value == "" || slices.Contains(vocabulary, value) {
		return value
	}
	for _, known := range vocabulary {
		if strings.EqualFold(value, known) {
			t.Note(ValueCase)
			return known
		}
	}
	t.Note(ValueUnknown)
	return value
}

// result is word for the results in auth_results, which have aliases.
func (t *tally) result(value string) Result {
	if slices.Contains(authWords, value) {
		return Result(value)
	}
	if _, ok := aliases[strings.ToLower(value)]; ok {
		t.Note(ValueAlias)
		return Result(strings.ToLower(value))
	}
	return Result(t.word(value, authWords))
}
