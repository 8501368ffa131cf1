package dnscheck

import (
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dkim"
)

// dkimTellings says how the problems of DKIM keys are told.
var dkimTellings = map[string]telling{
	string(dkim.MissingTag):       {"dkim.invalid-key", "the tag {part} is missing"},
	string(dkim.DuplicateTag):     {"dkim.invalid-key", "the tag {part} appears twice"},
	string(dkim.VersionNotFirst):  {"dkim.invalid-key", "v=DKIM1 is not at its beginning"},
	string(dkim.MalformedElement): {"dkim.invalid-key", "{text} is not of the form name=value"},
	string(dkim.EmptyElement):     {"dkim.invalid-key", "there is nothing between two semicolons"},
	string(dkim.InvalidValue):     {"dkim.invalid-key", "the tag {part} cannot have the value {text}"},
	string(dkim.TooManyTags):      {"dkim.invalid-key", "it has more than 100 tags"},
	string(dkim.UnknownAlgorithm): {"dkim.invalid-key", "there is no algorithm {text}"},
	string(dkim.UndecodableKey):   {"dkim.invalid-key", "the key (p) is cut off or damaged"},
	string(dkim.MalformedKey):     {"dkim.invalid-key", "what stands in p is not a public key"},
	string(dkim.WrongKeyType):     {"dkim.invalid-key", "p holds a key of another kind than k says"},
	string(dkim.WrongKeyLength):   {"dkim.invalid-key", "an Ed25519 key has {limit} bytes, and this one {count}"},
	string(dkim.ShortKey):         {"dkim.key-too-short", ""},
	string(dkim.BadExponent):      {"dkim.bad-exponent", ""},
	string(dkim.SHA1Only):         {"dkim.no-usable-hash", ""},
	string(dkim.NoKnownHash):      {"dkim.no-usable-hash", ""},

	string(dkim.WeakKey):        {"dkim.key-weak", ""},
	string(dkim.LongKey):        {"dkim.key-long", ""},
	string(dkim.LargeExponent):  {"dkim.large-exponent", ""},
	string(dkim.BareKey):        {"dkim.bare-key", ""},
	string(dkim.SHA1Allowed):    {"dkim.sha1-allowed", ""},
	string(dkim.UnknownHash):    {"dkim.ignored-part", "h lists {text}, which does not exist"},
	string(dkim.UnknownService): {"dkim.ignored-part", "s lists {text}, which does not exist"},
	string(dkim.NotForEmail):    {"dkim.not-for-mail", ""},
	string(dkim.UnknownFlag):    {"dkim.ignored-part", "t lists {text}, which does not exist"},
	string(dkim.TestMode):       {"dkim.testing", ""},
	string(dkim.UnknownTag):     {"dkim.ignored-part", "there is a tag {part}, which does not exist"},
	string(dkim.TagCase):        {"dkim.ignored-part", "the tag {text} is not in lower case"},
	string(dkim.HistoricTag):    {"dkim.ignored-part", "there is a tag {text}, which was given up"},
	string(dkim.TrailingSpace):  {"dkim.ignored-part", "a space follows the last semicolon"},

	string(dkim.MultipleRecords): {"dkim.multiple-records", ""},
	string(dkim.NearMiss):        {"dkim.near-miss", ""},
	string(dkim.DanglingAlias):   {"dkim.dangling-alias", ""},
}

// fromWords says how a selector became known.
var fromWords = map[string]string{
	string(FromReport): "receivers report mail signed with it", string(FromOwner): "as you named it",
	string(FromGuessing): "a usual name",
}

// dkim tells what is known about the keys. That nothing was found never means that
// there is nothing.
func (j *judgement) dkim() {
	f := j.facts.DKIM
	var usable []string
	unanswered, reason := f.Unanswered, f.Reason
	for _, key := range f.Keys {
		switch key.Status {
		case dkim.StatusFound.String():
			usable = append(usable, key.Selector)
		case dkim.StatusInconclusive.String():
			unanswered, reason = unanswered+1, key.Reason
		}
		j.dkimKey(key)
	}
	named := j.told["dkim.selector-missing"] > 0
	switch {
	case f.Namespace == dkim.NamespaceMissing.String():
		if !named && !j.unused() && !j.saysParked() {
			j.say("dkim.no-keys", nil)
		}
	case unanswered > 0:
		j.say("dkim.inconclusive", words{"reason": reason})
	case len(f.Keys) == 0 && !f.Wildcard && !j.saysParked():
		j.say("dkim.not-found", words{"count": strconv.Itoa(f.Probed)})
	}
	if f.Wildcard {
		j.say("dkim.wildcard", nil)
	}
	if len(usable) > 0 {
		j.say("dkim.found", words{"names": listed(usable)})
	}
}

func (j *judgement) dkimKey(key dmarcd.DKIMKey) {
	w := words{"selector": key.Selector, "from": fromWords[key.From]}
	switch {
	case key.Status == dkim.StatusRevoked.String() && key.From == string(FromReport):
		j.say("dkim.revoked-in-use", w)
	case key.Status == dkim.StatusRevoked.String():
		j.say("dkim.revoked", w)
	case key.Status == dkim.StatusNone.String() && key.From != string(FromGuessing) && len(key.Problems) == 0:
		j.say("dkim.selector-missing", w)
	}
	for _, p := range key.Problems {
		j.tell(dkimTellings, p, w, "")
	}
}
