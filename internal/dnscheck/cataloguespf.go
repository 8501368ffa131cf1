package dnscheck

import "github.com/dmarcd/dmarcd"

// spfEntries are the findings that decide whether the SPF record works.
var spfEntries = []Entry{
	{
		"spf.inconclusive", dmarcd.LevelInfo, 0, "RFC 7208 §4.4",
		"Some SPF lookups for {domain} failed: {reason}.",
		"Receivers with the same problem cannot tell which servers may send.",
		"Try again. If the problem persists, contact the operator of the name servers of that domain.",
	},
	{
		"spf.missing", dmarcd.LevelError, 25, "RFC 7208 §4.5",
		"{domain} has no SPF record.",
		"Receivers cannot tell which servers may send mail for {domain}.",
		"List your senders in a record like this:",
	},
	{
		"spf.near-miss", dmarcd.LevelError, 25, "RFC 7208 §4.5",
		"{domain} has no SPF record, only a TXT record that resembles one: {text}",
		"Receivers ignore it because an SPF record starts with exactly \"v=spf1\" followed by a space.",
		"Replace it with:",
	},
	{
		"spf.stray-text", dmarcd.LevelInfo, 0, "RFC 7208 §4.5",
		"Next to its SPF record, {domain} has a TXT record that resembles one but is invalid: {text}",
		"Receivers ignore it.",
		"Move its content into the SPF record, and remove it.",
	},
	{
		"spf.multiple-records", dmarcd.LevelError, 30, "RFC 7208 §4.5",
		"{domain} has {count} SPF records.",
		"Receivers treat this as an error (permerror), so SPF fails for your own mail too.",
		"Merge them into one:",
	},
	{
		"spf.syntax-error", dmarcd.LevelError, 30, "RFC 7208 §4.6",
		"The SPF record of {at} has a syntax error in {part}: {flaw}.",
		"A single error makes the whole record invalid (permerror), so SPF never passes.",
		"Correct or remove that term.",
	},
	{
		"spf.too-many-lookups", dmarcd.LevelError, 30, "RFC 7208 §4.6.4",
		"The SPF record of {domain} needs {count} DNS lookups; the limit is {limit}.",
		"Receivers stop after {limit} lookups and treat the record as invalid (permerror), so your own mail fails SPF.",
		"Remove services that you no longer use, or move one to its own subdomain. The most expensive terms: {costly}.",
	},
	{
		"spf.too-many-void-lookups", dmarcd.LevelError, 20, "RFC 7208 §4.6.4",
		"{count} lookups of the SPF record of {domain} return nothing; the limit is {limit}.",
		"Receivers treat the record as invalid (permerror) once they exceed the limit.",
		"Remove the terms with names that no longer exist: {names}.",
	},
	{
		"spf.too-many-mx", dmarcd.LevelError, 10, "RFC 7208 §4.6.4",
		"The term {part} in the SPF record of {at} resolves {name}, which has {count} mail servers; the limit is {limit}.",
		"Receivers treat the record as invalid (permerror) unless one of the first {limit} matches.",
		"List the addresses of the servers with ip4 and ip6 instead.",
	},
	{
		"spf.broken-include", dmarcd.LevelError, 30, "RFC 7208 §5.2",
		"The term {part} in the SPF record of {at} refers to {name}, but {flaw}.",
		"Receivers treat your record as invalid (permerror) when they evaluate that term, so your own mail fails SPF.",
		"Remove {part}, or correct the name.",
	},
	{
		"spf.loop", dmarcd.LevelError, 30, "RFC 7208 §4.6.4",
		"The term {part} in the SPF record of {at} leads back to {name}.",
		"Receivers follow the loop until they reach the lookup limit, and treat the record as invalid (permerror).",
		"Remove that term.",
	},
	{
		"spf.pass-all", dmarcd.LevelError, 40, "RFC 7208 §5.1",
		"The SPF record of {at} ends in {part}, which allows every server on the Internet to send.",
		"Spoofed mail passes SPF, and therefore DMARC.",
		"Make SPF fail for all other servers:",
	},
	{
		"spf.included-pass-all", dmarcd.LevelError, 40, "RFC 7208 §5.1",
		"The SPF record of {at}, which {domain} includes, allows every server on the Internet to send.",
		"Mail that spoofs {domain} passes SPF, and therefore DMARC.",
		"Remove the term that includes {at}.",
	},
	{
		"spf.valid", dmarcd.LevelGood, 0, "RFC 7208 §4.6.4",
		"The SPF record of {domain} is valid and needs {count} of {limit} lookups.",
		"Receivers can tell which servers may send.",
		"",
	},
}

// spfAdviceEntries are the findings about records that work.
var spfAdviceEntries = []Entry{
	{
		"spf.neutral-all", dmarcd.LevelWarning, 10, "RFC 7208 §5.1",
		"The SPF record of {at} ends in {part}, which is neutral about all other servers.",
		"Receivers treat unknown servers as if there were no SPF record.",
		"Use softfail while you monitor the reports:",
	},
	{
		"spf.no-all", dmarcd.LevelWarning, 10, "RFC 7208 §4.7",
		"The SPF record of {at} has no all mechanism.",
		"Receivers treat unknown servers as if there were no SPF record.",
		"End the record with ~all or -all:",
	},
	{
		"spf.terms-after-all", dmarcd.LevelWarning, 4, "RFC 7208 §5.1",
		"In the SPF record of {at}, {part} and the terms after it follow all.",
		"Receivers stop at all, so they never evaluate these terms.",
		"Move all to the end:",
	},
	{
		"spf.redirect-ignored", dmarcd.LevelWarning, 2, "RFC 7208 §6.1",
		"In the SPF record of {at}, {part} is used together with all.",
		"Receivers ignore redirect when the record contains all.",
		"Remove one of the two.",
	},
	{
		"spf.ptr", dmarcd.LevelWarning, 3, "RFC 7208 §5.5",
		"The SPF record of {at} uses {part}.",
		"The ptr mechanism is slow and unreliable, and some receivers ignore records that use it.",
		"Publish the record without it, and list its servers with a, ip4 or ip6 instead:",
	},
	{
		"spf.broad-range", dmarcd.LevelWarning, 5, "RFC 7208 §11.4",
		"The term {part} in the SPF record of {at} allows a /{count} network.",
		"It contains far more servers than yours, and each of them can send as {domain}.",
		"Allow only the addresses that send your mail.",
	},
	{
		"spf.near-lookup-limit", dmarcd.LevelInfo, 0, "RFC 7208 §4.6.4",
		"The SPF record of {domain} needs {count} of {limit} lookups.",
		"The next service you add, or a change at one of them, invalidates the record.",
		"Remove services that you no longer use. The most expensive terms: {costly}.",
	},
	{
		"spf.void-lookup", dmarcd.LevelWarning, 2, "RFC 7208 §4.6.4",
		"The term {part} in the SPF record of {at} looks up {name}, which has no records.",
		"The term matches no server, and more than two such terms invalidate the record.",
		"Remove it, or correct the name.",
	},
	{
		"spf.malformed-name", dmarcd.LevelWarning, 3, "RFC 7208 §4.3",
		"The term {part} in the SPF record of {at} expands to {name}, which is not a valid DNS name.",
		"Receivers find nothing there.",
		"Correct the name, or remove the term.",
	},
	{
		"spf.duplicate-term", dmarcd.LevelInfo, 0, "RFC 7208 §4.6.2",
		"The SPF record of {at} contains {part} twice.",
		"The second one has no effect, but may cost lookups.",
		"Remove one of them.",
	},
	{
		"spf.overlap", dmarcd.LevelInfo, 0, "RFC 7208 §4.6.2",
		"In the SPF record of {at}, {part} is already covered by {other}.",
		"The term has no effect.",
		"Remove it, unless the broader one is a mistake.",
	},
	{
		"spf.host-bits", dmarcd.LevelInfo, 0, "RFC 7208 §5.6",
		"The term {part} in the SPF record of {at} combines a host address with a network prefix length.",
		"Receivers allow the whole network, which may be more than you intend.",
		"Write the network address, or the host address without a prefix length.",
	},
	{
		"spf.unknown-modifier", dmarcd.LevelInfo, 0, "RFC 7208 §6",
		"The SPF record of {at} contains the unknown modifier {part}.",
		"Receivers ignore it. If it is a typo, the modifier you meant is not set.",
		"Correct it, or remove it.",
	},
	{
		"spf.long-record", dmarcd.LevelInfo, 0, "RFC 7208 §3.4",
		"The SPF record of {at} is {count} bytes long.",
		"Together with the other TXT records of the name, the answer may exceed a DNS message of 512 bytes.",
		"Keep it below 450 bytes, for example by removing services that you no longer use.",
	},
	{
		"spf.record-too-long", dmarcd.LevelWarning, 3, "RFC 7208 §3.4",
		"The SPF record of {at} is {count} bytes long.",
		"The answer exceeds a DNS message of 512 bytes, and receivers that cannot query over TCP find no record.",
		"Shorten it to below 450 bytes, for example by removing services that you no longer use.",
	},
	{
		"spf.long-string", dmarcd.LevelWarning, 3, "RFC 7208 §3.3",
		"A string of the SPF record of {at} is {count} bytes long; DNS allows at most {limit}.",
		"Name servers reject or truncate such a record.",
		"Split it into several strings within one record.",
	},
	{
		"spf.sender-id", dmarcd.LevelInfo, 0, "RFC 7208 §4.5",
		"{at} has a record for Sender ID, which is obsolete: {text}",
		"Receivers no longer use it.",
		"Remove it.",
	},
	{
		"spf.tree-too-large", dmarcd.LevelWarning, 0, "RFC 7208 §4.6.4",
		"The SPF records included by {domain} were not fully evaluated: {reason}.",
		"The real number of lookups is higher than shown; receivers stop much earlier.",
		"Remove terms until the record can be evaluated.",
	},
}
