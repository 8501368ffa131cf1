package dnscheck

import "github.com/dmarcd/dmarcd"

// spfEntries are the findings that decide whether the SPF record works.
var spfEntries = []Entry{
	{
		"spf.inconclusive", dmarcd.LevelInfo, 0, "RFC 7208 §4.4",
		"Not all SPF records of {domain} could be looked up: {reason}.",
		"Receivers that see the same cannot tell which servers may send.",
		"Try again; if it stays so, ask whoever runs the name servers of that name.",
	},
	{
		"spf.missing", dmarcd.LevelError, 25, "RFC 7208 §4.5",
		"{domain} has no SPF record.",
		"Receivers cannot tell the servers that send mail for {domain} from any others.",
		"List your senders in a record like this one:",
	},
	{
		"spf.near-miss", dmarcd.LevelError, 25, "RFC 7208 §4.5",
		"{domain} has no SPF record, but a text that looks like one: {text}",
		"Receivers pass over it, because a record begins with exactly v=spf1 and a space.",
		"Replace it by:",
	},
	{
		"spf.stray-text", dmarcd.LevelInfo, 0, "RFC 7208 §4.5",
		"Beside its SPF record, {domain} has a text that looks like one and is none: {text}",
		"Receivers pass over it, so that what it says is not in force.",
		"Move what it says into the SPF record, and remove it.",
	},
	{
		"spf.multiple-records", dmarcd.LevelError, 30, "RFC 7208 §4.5",
		"{domain} has {count} SPF records.",
		"Receivers treat that as an error and use none of them, so that mail can fail that you sent yourself.",
		"Put them together into one:",
	},
	{
		"spf.syntax-error", dmarcd.LevelError, 30, "RFC 7208 §4.6",
		"The SPF record of {at} is broken at {part}: {flaw}.",
		"One mistake anywhere makes receivers ignore the whole record, so that SPF never passes.",
		"Correct or remove that term.",
	},
	{
		"spf.too-many-lookups", dmarcd.LevelError, 30, "RFC 7208 §4.6.4",
		"The SPF record of {domain} needs {count} DNS look-ups, and {limit} are allowed.",
		"Receivers stop after {limit} and treat the record as broken, so that mail of yours fails.",
		"Remove services that you no longer use, or give one a subdomain of its own; these cost most: {costly}.",
	},
	{
		"spf.too-many-void-lookups", dmarcd.LevelError, 20, "RFC 7208 §4.6.4",
		"{count} look-ups of the SPF record of {domain} find nothing, and {limit} are allowed.",
		"Receivers treat the record as broken once they pass that number.",
		"Remove the terms that lead to names which no longer exist: {names}.",
	},
	{
		"spf.too-many-mx", dmarcd.LevelError, 10, "RFC 7208 §4.6.4",
		"The term {part} in the SPF record of {at} leads to {name} with {count} mail servers, and {limit} are allowed.",
		"Receivers treat the record as broken unless one of the first matches.",
		"List the addresses of the servers by ip4 and ip6 instead.",
	},
	{
		"spf.broken-include", dmarcd.LevelError, 30, "RFC 7208 §5.2",
		"The SPF record of {at} refers to {name} by {part}, and {flaw}.",
		"Receivers treat your record as broken when they come to that term, so that mail of yours fails.",
		"Remove {part}, or correct its name.",
	},
	{
		"spf.loop", dmarcd.LevelError, 30, "RFC 7208 §4.6.4",
		"The term {part} in the SPF record of {at} leads back to {name}.",
		"Receivers go round until they reach the limit of look-ups, and treat the record as broken.",
		"Remove that term.",
	},
	{
		"spf.pass-all", dmarcd.LevelError, 40, "RFC 7208 §5.1",
		"The SPF record of {at} ends in {part}, which allows every server in the world to send.",
		"Forged mail passes SPF, and with it DMARC.",
		"Let all others fail:",
	},
	{
		"spf.included-pass-all", dmarcd.LevelError, 40, "RFC 7208 §5.1",
		"The SPF record of {at}, which that of {domain} includes, allows every server in the world to send.",
		"Forged mail as {domain} passes SPF, and with it DMARC.",
		"Remove the term that leads to {at}.",
	},
	{
		"spf.valid", dmarcd.LevelGood, 0, "RFC 7208 §4.6.4",
		"The SPF record of {domain} is in order and needs {count} of {limit} look-ups.",
		"Receivers can tell which servers may send.",
		"",
	},
}

// spfAdviceEntries are the findings about records that work.
var spfAdviceEntries = []Entry{
	{
		"spf.neutral-all", dmarcd.LevelWarning, 10, "RFC 7208 §5.1",
		"The SPF record of {at} ends in {part}, which says nothing about all other servers.",
		"Receivers treat servers that you never heard of as if there were no record.",
		"Let all others fail, softly while you watch the reports:",
	},
	{
		"spf.no-all", dmarcd.LevelWarning, 10, "RFC 7208 §4.7",
		"The SPF record of {at} does not say what holds for all other servers.",
		"Receivers treat servers that you never heard of as if there were no record.",
		"End the record in ~all or -all:",
	},
	{
		"spf.terms-after-all", dmarcd.LevelWarning, 4, "RFC 7208 §5.1",
		"In the SPF record of {at}, {part} and what follows it stand behind all.",
		"Receivers stop at all, so that these senders are not allowed.",
		"Move all to the end:",
	},
	{
		"spf.redirect-ignored", dmarcd.LevelWarning, 2, "RFC 7208 §6.1",
		"In the SPF record of {at}, {part} stands beside all.",
		"Receivers ignore a redirect where there is an all.",
		"Remove one of the two.",
	},
	{
		"spf.ptr", dmarcd.LevelWarning, 3, "RFC 7208 §5.5",
		"The SPF record of {at} uses {part}.",
		"The term is slow and unreliable, and some receivers ignore records that use it.",
		"Publish the record without it, and with the servers that it stood for as a, ip4 or ip6:",
	},
	{
		"spf.broad-range", dmarcd.LevelWarning, 5, "RFC 7208 §11.4",
		"The term {part} in the SPF record of {at} allows a network of /{count}.",
		"It holds far more servers than yours, and each of them can send as {domain}.",
		"Allow only the addresses that send.",
	},
	{
		"spf.near-lookup-limit", dmarcd.LevelInfo, 0, "RFC 7208 §4.6.4",
		"The SPF record of {domain} needs {count} of {limit} look-ups.",
		"The next service that you add, or a change at one of them, breaks the record.",
		"Remove what you no longer use while there is time; these cost most: {costly}.",
	},
	{
		"spf.void-lookup", dmarcd.LevelWarning, 2, "RFC 7208 §4.6.4",
		"The term {part} in the SPF record of {at} looks up {name}, where there is nothing.",
		"It allows nobody, and more than two of these break the record.",
		"Remove it, or correct the name.",
	},
	{
		"spf.malformed-name", dmarcd.LevelWarning, 3, "RFC 7208 §4.3",
		"The term {part} in the SPF record of {at} leads to {name}, which the DNS cannot hold.",
		"Receivers find nothing there.",
		"Correct the name, or remove the term.",
	},
	{
		"spf.duplicate-term", dmarcd.LevelInfo, 0, "RFC 7208 §4.6.2",
		"The SPF record of {at} holds {part} twice.",
		"The second one changes nothing, and may cost look-ups.",
		"Remove one of them.",
	},
	{
		"spf.overlap", dmarcd.LevelInfo, 0, "RFC 7208 §4.6.2",
		"In the SPF record of {at}, {part} is covered by {other}.",
		"The term changes nothing.",
		"Remove it, unless the broader one is a mistake.",
	},
	{
		"spf.host-bits", dmarcd.LevelInfo, 0, "RFC 7208 §5.6",
		"The term {part} in the SPF record of {at} names a single address with the length of a network.",
		"Receivers allow the whole network, which may be more than you meant.",
		"Write the network, or the address without a length.",
	},
	{
		"spf.unknown-modifier", dmarcd.LevelInfo, 0, "RFC 7208 §6",
		"The SPF record of {at} holds {part}, which means nothing.",
		"Receivers ignore it; where it is a typing error, what you meant is not in force.",
		"Correct it, or remove it.",
	},
	{
		"spf.long-record", dmarcd.LevelInfo, 0, "RFC 7208 §3.4",
		"The SPF record of {at} has {count} bytes.",
		"Together with other texts at the name the answer may not fit a DNS message of 512 bytes.",
		"Keep it below 450 bytes, for example by leaving out what you no longer use.",
	},
	{
		"spf.record-too-long", dmarcd.LevelWarning, 3, "RFC 7208 §3.4",
		"The SPF record of {at} has {count} bytes.",
		"The answer does not fit a DNS message of 512 bytes, and receivers that cannot ask over TCP find no record.",
		"Keep it below 450 bytes, for example by leaving out what you no longer use.",
	},
	{
		"spf.long-string", dmarcd.LevelWarning, 3, "RFC 7208 §3.3",
		"A string of the SPF record of {at} has {count} bytes, and the DNS carries at most {limit}.",
		"Name servers refuse such a record or cut it off.",
		"Split it into several strings within one record.",
	},
	{
		"spf.sender-id", dmarcd.LevelInfo, 0, "RFC 7208 §4.5",
		"{at} has a record of Sender ID, which was given up: {text}",
		"Nobody reads it any more.",
		"Remove it.",
	},
	{
		"spf.tree-too-large", dmarcd.LevelWarning, 0, "RFC 7208 §4.6.4",
		"The SPF records below {domain} were not followed to their end: {reason}.",
		"The look-ups shown are fewer than there are; receivers gave up long before.",
		"Remove terms until the tree can be read.",
	},
}
