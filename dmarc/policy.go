package dmarc

import (
	"cmp"
	"strings"
)

// Policy is what a domain owner requests for mail that fails DMARC.
type Policy uint8

const (
	// Unstated means that no policy is given; it is the zero value.
	Unstated Policy = iota
	// None requests reports only.
	None
	// Quarantine requests to treat the mail as suspicious.
	Quarantine
	// Reject requests to reject the mail.
	Reject
)

var policyWords = [...]string{None: "none", Quarantine: "quarantine", Reject: "reject"}

// String returns the value in the record, "" for Unstated.
func (p Policy) String() string { return policyWords[p] }

// Weaker returns the policy one level down, as applied for t=y (RFC 9989 §4.7).
func (p Policy) Weaker() Policy {
	if p > None {
		return p - 1
	}
	return p
}

// parsePolicy parses a policy, ignoring case (RFC 9989 §4.8).
func parsePolicy(value string) (Policy, bool) {
	for p := None; p <= Reject; p++ {
		if strings.EqualFold(value, p.String()) {
			return p, true
		}
	}
	return Unstated, false
}

// Mode is the alignment mode.
type Mode uint8

const (
	// Relaxed requires the same organizational domain; it is the default.
	Relaxed Mode = iota
	// Strict requires the same name.
	Strict
)

// String returns the value of the adkim and aspf tags.
func (m Mode) String() string {
	if m == Strict {
		return "s"
	}
	return "r"
}

func parseMode(value string) (Mode, bool) {
	switch strings.ToLower(value) {
	case "r":
		return Relaxed, true
	case "s":
		return Strict, true
	default:
		return Relaxed, false
	}
}

// PSD is whether a domain declares itself a public suffix domain.
type PSD uint8

const (
	// PSDUnknown is psd=u, the default: the tree walk decides.
	PSDUnknown PSD = iota
	// PSDYes is psd=y: others register names below this domain.
	PSDYes
	// PSDNo is psd=n: this is an organizational domain.
	PSDNo
)

var psdWords = [...]string{PSDUnknown: "u", PSDYes: "y", PSDNo: "n"}

// String returns the value of the psd tag.
func (p PSD) String() string { return psdWords[p] }

func parsePSD(value string) (PSD, bool) {
	switch strings.ToLower(value) {
	case "y":
		return PSDYes, true
	case "n":
		return PSDNo, true
	case "u":
		return PSDUnknown, true
	default:
		return PSDUnknown, false
	}
}

// FailureOptions is the set of conditions for failure reports. The empty set means the
// default, FailureAll.
type FailureOptions uint8

const (
	// FailureAll (0) requests a report if no mechanism produced an aligned pass.
	FailureAll FailureOptions = 1 << iota
	// FailureAny (1) requests a report if any mechanism did not produce an aligned pass.
	FailureAny
	// FailureDKIM (d) requests a report if a signature failed to verify.
	FailureDKIM
	// FailureSPF (s) requests a report if SPF failed.
	FailureSPF
)

// failureLetters names the options in the order in which String writes them.
var failureLetters = []struct {
	letter string
	option FailureOptions
}{{"0", FailureAll}, {"1", FailureAny}, {"d", FailureDKIM}, {"s", FailureSPF}}

// String returns the value of the fo tag.
func (f FailureOptions) String() string {
	f = cmp.Or(f, FailureAll)
	var letters []string
	for _, l := range failureLetters {
		if f&l.option != 0 {
			letters = append(letters, l.letter)
		}
	}
	return strings.Join(letters, ":")
}

// parseFailureOptions parses a colon-separated list with at most one of 0 and 1 and no
// duplicates (RFC 9989 §4.8). RFC 7489 allowed any list.
func parseFailureOptions(value string) (FailureOptions, bool) {
	var set FailureOptions
	for item := range strings.SplitSeq(value, ":") {
		option := failureOption(strings.Trim(item, whitespace))
		if option == 0 || set&option != 0 {
			return FailureAll, false
		}
		set |= option
	}
	if set&FailureAll != 0 && set&FailureAny != 0 {
		return FailureAll, false
	}
	return set, true
}

func failureOption(letter string) FailureOptions {
	for _, l := range failureLetters {
		if strings.EqualFold(letter, l.letter) {
			return l.option
		}
	}
	return 0
}
