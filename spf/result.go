package spf

// Result is the outcome of an evaluation (RFC 7208 §2.6). As a qualifier it is
// what a mechanism leads to when it matches; there only Pass, Fail, SoftFail and
// Neutral occur.
type Result uint8

const (
	// None means that there is no usable domain name, or no record at it.
	None Result = iota
	// Neutral means that the domain explicitly makes no statement.
	Neutral
	// Pass means that the client is authorized.
	Pass
	// Fail means that the client is not authorized.
	Fail
	// SoftFail means that the client is probably not authorized.
	SoftFail
	// TempError means that a lookup failed; a retry may succeed.
	TempError
	// PermError means that the published records cannot be interpreted.
	PermError
)

var resultWords = [...]string{
	None: "none", Neutral: "neutral", Pass: "pass", Fail: "fail",
	SoftFail: "softfail", TempError: "temperror", PermError: "permerror",
}

// String returns the word that RFC 8601 §2.7.2 gives to the result.
func (r Result) String() string { return resultWords[r] }

// qualifierOf returns what the qualifier character c stands for, None if it is
// no qualifier (RFC 7208 §4.6.2).
func qualifierOf(c byte) Result {
	switch c {
	case '+':
		return Pass
	case '-':
		return Fail
	case '~':
		return SoftFail
	case '?':
		return Neutral
	default:
		return None
	}
}

// qualifier returns the shortest way to write r before a mechanism.
func (r Result) qualifier() string {
	switch r {
	case Fail:
		return "-"
	case SoftFail:
		return "~"
	case Neutral:
		return "?"
	default:
		return ""
	}
}
