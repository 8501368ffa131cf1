package dnscheck

import (
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// dkimFindings maps DKIM problems to findings.
var dkimFindings = map[string]mapping{
	string(dkim.MissingTag):       {"dkim.invalid_key", "the tag {part} is missing"},
	string(dkim.DuplicateTag):     {"dkim.invalid_key", "the tag {part} occurs twice"},
	string(dkim.VersionNotFirst):  {"dkim.invalid_key", "it does not start with v=DKIM1"},
	string(dkim.MalformedElement): {"dkim.invalid_key", "{text} is not of the form name=value"},
	string(dkim.EmptyElement):     {"dkim.invalid_key", "there are two consecutive semicolons"},
	string(dkim.InvalidValue):     {"dkim.invalid_key", "the tag {part} has the invalid value {text}"},
	string(dkim.TooManyTags):      {"dkim.invalid_key", "it has more than 100 tags"},
	string(dkim.UnknownAlgorithm): {"dkim.invalid_key", "the algorithm {text} is unknown"},
	string(dkim.UndecodableKey):   {"dkim.invalid_key", "the key (p) is truncated or damaged"},
	string(dkim.MalformedKey):     {"dkim.invalid_key", "p does not contain a public key"},
	string(dkim.WrongKeyType):     {"dkim.invalid_key", "p contains a key of a different type than k"},
	string(dkim.WrongKeyLength):   {"dkim.invalid_key", "an Ed25519 key has {limit} bytes, but this one has {count}"},
	string(dkim.ShortKey):         {"dkim.key_too_short", ""},
	string(dkim.BadExponent):      {"dkim.bad_exponent", ""},
	string(dkim.SHA1Only):         {"dkim.no_usable_hash", ""},
	string(dkim.NoKnownHash):      {"dkim.no_usable_hash", ""},

	string(dkim.WeakKey):        {"dkim.key_weak", ""},
	string(dkim.LongKey):        {"dkim.key_long", ""},
	string(dkim.LargeExponent):  {"dkim.large_exponent", ""},
	string(dkim.BareKey):        {"dkim.bare_key", ""},
	string(dkim.SHA1Allowed):    {"dkim.sha1_allowed", ""},
	string(dkim.UnknownHash):    {"dkim.ignored_part", "h lists the unknown hash {text}"},
	string(dkim.UnknownService): {"dkim.ignored_part", "s lists the unknown service {text}"},
	string(dkim.NotForEmail):    {"dkim.not_for_mail", ""},
	string(dkim.UnknownFlag):    {"dkim.ignored_part", "t lists the unknown flag {text}"},
	string(dkim.TestMode):       {"dkim.testing", ""},
	string(dkim.UnknownTag):     {"dkim.ignored_part", "the tag {part} is unknown"},
	string(dkim.TagCase):        {"dkim.ignored_part", "the tag {text} is not in lower case"},
	string(dkim.HistoricTag):    {"dkim.ignored_part", "the tag {text} is obsolete"},
	string(dkim.TrailingSpace):  {"dkim.ignored_part", "a space follows the last semicolon"},

	string(dkim.MultipleRecords): {"dkim.multiple_records", ""},
	string(dkim.NearMiss):        {"dkim.near_miss", ""},
	string(dkim.DanglingAlias):   {"dkim.dangling_alias", ""},
}

// fromWords describes the origin of a selector.
var fromWords = map[string]string{
	string(FromReport): "reported by receivers", string(FromOwner): "declared by you",
	string(FromGuessing): "a common name",
}

// dkim evaluates the DKIM keys. Finding no key does not prove that there is none.
func (e *evaluation) dkim() {
	f := e.facts.DKIM
	var usable []string
	unanswered, reason := f.Unanswered, f.Reason
	for _, key := range f.Keys {
		switch key.Status {
		case dkim.StatusFound.String():
			usable = append(usable, key.Selector)
		case dkim.StatusInconclusive.String():
			unanswered, reason = unanswered+1, key.Reason
		}
		e.dkimKey(key)
	}
	named := e.counts["dkim.selector_missing"] > 0
	switch {
	case f.Namespace == dkim.NamespaceMissing.String():
		if !named && !e.unused() && !e.isParked() {
			e.add("dkim.no_keys", nil)
		}
	case unanswered > 0:
		e.add("dkim.inconclusive", words{"reason": reason})
	case len(f.Keys) == 0 && !f.Wildcard && !e.isParked():
		e.add("dkim.not_found", words{"count": strconv.Itoa(f.Probed)})
	}
	if f.Wildcard {
		e.add("dkim.wildcard", nil)
	}
	if len(usable) > 0 {
		e.add("dkim.found", words{"names": listed(usable)})
	}
}

func (e *evaluation) dkimKey(key facts.DKIMKey) {
	w := words{"selector": key.Selector, "from": fromWords[key.From]}
	switch {
	case key.Status == dkim.StatusRevoked.String() && key.From == string(FromReport):
		e.add("dkim.revoked_in_use", w)
	case key.Status == dkim.StatusRevoked.String():
		e.add("dkim.revoked", w)
	case key.Status == dkim.StatusNone.String() && key.From != string(FromGuessing) && len(key.Problems) == 0:
		e.add("dkim.selector_missing", w)
	}
	for _, p := range key.Problems {
		e.addProblem(dkimFindings, p, w, dmarcd.DNSRecord{})
	}
}
