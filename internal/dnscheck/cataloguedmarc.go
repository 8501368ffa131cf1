package dnscheck

import "github.com/dmarcd/dmarcd"

// domainEntries are the findings about the name itself.
var domainEntries = []Entry{
	{
		"domain.missing", dmarcd.LevelError, 5, "RFC 8020 §2",
		"{domain} does not exist: the DNS knows no such name.",
		"Mail to it cannot be delivered, and only a policy of a domain above it keeps forgers from using it.",
		"See whether the name is written correctly, or whether its registration has run out.",
	},
}

// dmarcEntries are the findings about which policy applies.
var dmarcEntries = []Entry{
	{
		"dmarc.inconclusive", dmarcd.LevelWarning, 0, "RFC 9989 §5.3.6",
		"The DMARC record of {domain} could not be looked up: {reason}.",
		"Receivers that see the same cannot tell what you ask of them, and nothing can be said about the domain.",
		"Try again; if it stays so, ask whoever runs the name servers of {domain}.",
	},
	{
		"dmarc.missing", dmarcd.LevelError, 90, "RFC 9989 §4.10.1",
		"{domain} has no DMARC record, and no domain above it has one that applies.",
		"Anyone can send mail that shows {domain} as its sender, and you never learn of it.",
		"Publish this record; {then}:",
	},
	{
		"dmarc.near-miss", dmarcd.LevelError, 90, "RFC 9989 §4.7",
		"The text at _dmarc.{domain} is not a DMARC record, because {flaw}: {text}",
		"Receivers pass over it in silence, so that {domain} has no policy at all.",
		"Replace it by this record:",
	},
	{
		"dmarc.near-miss-inherited", dmarcd.LevelError, 15, "RFC 9989 §4.7",
		"The text at _dmarc.{domain} is not a DMARC record, because {flaw}: {text}",
		"Receivers pass over it and apply the record of {record_domain} instead of what you meant.",
		"Replace it by this record:",
	},
	{
		"dmarc.stray-text", dmarcd.LevelInfo, 0, "RFC 9989 §4.10",
		"Beside the DMARC record, _dmarc.{domain} holds a text that is none: {text}",
		"Receivers pass over it, but it makes the answer larger and misleads whoever reads the zone.",
		"Remove that text.",
	},
	{
		"dmarc.record-at-apex", dmarcd.LevelWarning, 0, "RFC 9989 §4.5",
		"A DMARC record stands at {domain} itself: {text}",
		"Receivers look for it at _dmarc.{domain} only, so that this one is never read.",
		"Remove it there; where it belongs, it is written:",
	},
	{
		"dmarc.dangling-alias", dmarcd.LevelError, 90, "RFC 9989 §4.10",
		"_dmarc.{domain} is an alias (CNAME) of {target}, where there is no DMARC record.",
		"Receivers follow the alias and find nothing, so that {domain} has no policy of its own, and whoever gets hold of {target} sets it.",
		"Have the record published at {target}, or replace the alias by this record:",
	},
	{
		"dmarc.dangling-alias-inherited", dmarcd.LevelError, 15, "RFC 9989 §4.10",
		"_dmarc.{domain} is an alias (CNAME) of {target}, where there is no DMARC record.",
		"Receivers apply the record of {record_domain} instead of what you meant, and whoever gets hold of {target} can set another.",
		"Have the record published at {target}, or remove the alias.",
	},
	{
		"dmarc.multiple-records", dmarcd.LevelError, 85, "RFC 9989 §4.10",
		"_dmarc.{domain} holds {count} DMARC records.",
		"Receivers discard all of them, as if {domain} had none.",
		"Remove all but one; this one keeps the strictest policy and all addresses:",
	},
	{
		"dmarc.policy-off", dmarcd.LevelError, 85, "RFC 9989 §4.10.1",
		"The DMARC record of {at} is switched off, because {flaw}, and it names no address for reports.",
		"Receivers do not apply DMARC at all, whatever the rest of the record asks for.",
		"Publish this record instead:",
	},
	{
		"dmarc.policy-lost", dmarcd.LevelError, 45, "RFC 9989 §4.10.1",
		"The DMARC record of {at} acts as p=none, because {flaw}.",
		"One bad tag takes the whole policy away: forged mail as {domain} is delivered.",
		"Publish this record instead:",
	},
	{
		"dmarc.duplicate-tag", dmarcd.LevelError, 60, "RFC 6376 §3.2",
		"The DMARC record of {at} has the tag {part} more than once.",
		"Some receivers take the first one, others ignore the whole record, and you cannot rely on either.",
		"Publish the record with each tag once:",
	},
	{
		"dmarc.policy-none", dmarcd.LevelWarning, 20, "RFC 9989 §4.7",
		"The DMARC policy for {domain} is none (from the tag {source} of {at}).",
		"Receivers report forged mail to you and deliver it all the same; that is right while you watch the reports, and no protection.",
		"When the reports show that your own mail passes, publish the next step:",
	},
	{
		"dmarc.policy-quarantine", dmarcd.LevelInfo, 6, "RFC 9989 §4.7",
		"The DMARC policy for {domain} is quarantine.",
		"Forged mail goes to the spam folder, where some people still open it.",
		"When quarantine has hit no mail of yours for some weeks, publish:",
	},
	{
		"dmarc.testing", dmarcd.LevelWarning, 15, "RFC 9989 §4.7",
		"The record of {at} asks for {policy}, but its t=y makes that {applied}.",
		"Receivers are told that you are testing, so that they apply one level less than the policy says.",
		"When the tests are over, publish the record without t=y:",
	},
	{
		"dmarc.percentage", dmarcd.LevelWarning, 6, "RFC 9989 §C.5.2",
		"The record of {at} has pct={percent}.",
		"Older receivers apply the policy to {percent} percent of failing mail, newer ones to all of it: nobody can tell what happens to yours.",
		"Publish the record without pct (t=y is what asks for less while you test):",
	},
	{
		"dmarc.subdomains-weaker", dmarcd.LevelWarning, 8, "RFC 9989 §4.7",
		"The policy is {policy} for {domain}, but {sp} for its subdomains (sp).",
		"Forgers use a subdomain instead, such as billing.{domain}.",
		"Unless subdomains send mail that does not pass yet, publish:",
	},
	{
		"dmarc.missing-names-weaker", dmarcd.LevelWarning, 4, "RFC 9989 §4.7",
		"The policy is {policy} for {domain}, but {np} for names below it that do not exist (np).",
		"Nobody sends mail from names that do not exist but forgers, so they deserve no milder policy.",
		"Publish:",
	},
	{
		"dmarc.np-without-effect", dmarcd.LevelWarning, 2, "RFC 9824 §3",
		"The record has np={np}, but the zone {zone} says of every name that it exists{host}.",
		"Receivers then apply {other} instead of np to mail from names that nobody made.",
		"When the mail of your subdomains passes, give sp the policy that you want for such names:",
	},
	{
		"dmarc.np-at-risk", dmarcd.LevelInfo, 0, "RFC 9824 §3",
		"The record has np={np}, and {zone} is hosted at {host}.",
		"As soon as the zone is signed, {host} says of every name that it exists, and np has no effect any more.",
		"When the mail of your subdomains passes, and before you sign the zone, give sp the same policy:",
	},
	{
		"dmarc.receivers-disagree", dmarcd.LevelWarning, 5, "RFC 9989 §4.10",
		"Receivers disagree about {domain}: by RFC 9989 {new}, by RFC 7489 {old}.",
		"What happens to mail as {domain} depends on how old the software of the receiver is.",
		"A record at the domain's own name is read by both:",
	},
	{
		"dmarc.organization-differs", dmarcd.LevelInfo, 0, "RFC 9989 §4.10.2",
		"The organizational domain of {domain} is {new} by RFC 9989 and {old} by RFC 7489.",
		"Mail that is signed or sent with another name of the organization passes with one kind of receiver and fails with the other.",
		"Sign with {domain} itself, or publish a DMARC record at {old}.",
	},
	{
		"dmarc.captured", dmarcd.LevelWarning, 8, "RFC 9989 §11.8",
		"{suffix} publishes a DMARC record without psd=y, which makes it the organizational domain of {domain}.",
		"Everybody with a name below {suffix} then counts as your organization, and can pass DMARC as {domain}.",
		"Say that {domain} is an organization of its own:",
	},
	{
		"dmarc.captured-organization", dmarcd.LevelWarning, 8, "RFC 9989 §11.8",
		"{suffix} publishes a DMARC record without psd=y, which makes it the organizational domain of {domain}.",
		"Everybody with a name below {suffix} then counts as your organization, and can pass DMARC as {domain}.",
		"Add psd=n to the DMARC record of {organization}, or publish one there that has it.",
	},
	{
		"dmarc.policy-of-suffix", dmarcd.LevelWarning, 30, "RFC 9989 §4.10.1",
		"{domain} has no DMARC record of its own, and the policy {policy} of {record_domain} applies, under which others register names.",
		"Somebody else decides what happens to mail as {domain}, and you get no reports.",
		"Publish a record of your own:",
	},
	{
		"dmarc.inherited", dmarcd.LevelInfo, 0, "RFC 9989 §4.10.1",
		"{domain} has no DMARC record of its own; that of {record_domain} applies and asks for {policy}.",
		"A change at {record_domain} changes {domain} too.",
		"",
	},
	{
		"dmarc.reject", dmarcd.LevelGood, 0, "RFC 9989 §4.7",
		"The DMARC policy for {domain} is reject.",
		"Receivers are asked to refuse forged mail.",
		"",
	},
}

// dmarcTagEntries are the findings about single tags of the record.
var dmarcTagEntries = []Entry{
	{
		"dmarc.invalid-value", dmarcd.LevelWarning, 3, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} has the value {text}, which it cannot have.",
		"Receivers use the default instead of what you meant; for adkim and aspf that is the looser rule.",
		"Correct the value, or remove the tag:",
	},
	{
		"dmarc.unknown-tag", dmarcd.LevelWarning, 1, "RFC 9989 §4.7",
		"The DMARC record of {at} has a tag {text}, which does not exist.",
		"Receivers ignore it; where it is a typing error, what you meant is not in force.",
		"Correct the name of the tag, or remove it:",
	},
	{
		"dmarc.historic-tag", dmarcd.LevelInfo, 0, "RFC 9989 §C.5.2",
		"The DMARC record of {at} has the tag {part}, which RFC 9989 removed.",
		"Newer receivers ignore it.",
		"Publish the record without it:",
	},
	{
		"dmarc.tag-case", dmarcd.LevelWarning, 1, "RFC 9989 §4.8",
		"The DMARC record of {at} writes the tag {text} with capital letters.",
		"Some receivers do not know the tag when it is written so.",
		"Write it in lower case:",
	},
	{
		"dmarc.malformed-element", dmarcd.LevelWarning, 3, "RFC 9989 §4.8",
		"The DMARC record of {at} holds {text} between two semicolons, which is not of the form name=value.",
		"Receivers ignore it, and some of them the whole record.",
		"Correct it, or remove it:",
	},
	{
		"dmarc.empty-element", dmarcd.LevelInfo, 0, "RFC 9989 §4.8",
		"The DMARC record of {at} has two semicolons with nothing between them.",
		"Receivers pass over it, but strict readers may not.",
		"Remove one of them:",
	},
	{
		"dmarc.too-many-tags", dmarcd.LevelWarning, 2, "RFC 9989 §4.7",
		"The DMARC record of {at} has more than 100 tags.",
		"No more than twelve mean anything, and receivers may give up on such a record.",
		"Publish only what is needed:",
	},
	{
		"dmarc.long-record", dmarcd.LevelWarning, 2, "RFC 6891 §6.2.5",
		"The DMARC record of {at} has {count} bytes.",
		"So large an answer does not fit a usual DNS message, and receivers that cannot ask over TCP find no record.",
		"Shorten it to what is needed, well below 1,000 bytes.",
	},
	{
		"dmarc.unused-failure-options", dmarcd.LevelInfo, 0, "RFC 9989 §4.7",
		"The DMARC record of {at} has fo, but no ruf.",
		"The tag says when failure reports are wanted, and without ruf nobody sends any.",
		"Remove fo, or name an address for failure reports by ruf:",
	},
	{
		"dmarc.failure-reports-on-psd", dmarcd.LevelWarning, 2, "RFC 9991 §2",
		"The DMARC record of {at} has psd=y and asks for failure reports (ruf).",
		"Failure reports hold parts of the mail of the organizations below {at}, which must not go to it.",
		"Publish the record without ruf:",
	},
}

// destinationEntries are the findings about where reports go.
var destinationEntries = []Entry{
	{
		"dmarc.no-reports", dmarcd.LevelWarning, 8, "RFC 9989 §4.7",
		"The DMARC record of {at} names no address for aggregate reports (rua).",
		"Nobody tells you who sends mail as {domain}, so you cannot know what a stricter policy would hit.",
		"Add an address:",
	},
	{
		"dmarc.reports-elsewhere", dmarcd.LevelWarning, 8, "RFC 9989 §4.7",
		"The DMARC record of {at} does not send its reports to {wanted}.",
		"This server learns nothing about who sends mail as {domain}.",
		"Add the address:",
	},
	{
		"dmarc.bad-destination", dmarcd.LevelError, 5, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} lists {text}, which is no destination that reports can go to.",
		"Receivers ignore it, so that reports you are waiting for never come.",
		"Write it as mailto: and a mail address, or remove it:",
	},
	{
		"dmarc.unsupported-destination", dmarcd.LevelWarning, 2, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} lists {text}, which is not a mailto address.",
		"Receivers need only know mailto, and most ignore anything else.",
		"Use a mailto address.",
	},
	{
		"dmarc.size-limit", dmarcd.LevelInfo, 0, "RFC 9989 §4.8",
		"The destination {text} in the DMARC record of {at} ends in a limit of size.",
		"RFC 9989 has no such limits, and newer receivers ignore it.",
		"Publish the record without it:",
	},
	{
		"dmarc.repeated-destination", dmarcd.LevelInfo, 0, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} lists {text} twice.",
		"Some receivers send each report twice.",
		"List it once:",
	},
	{
		"dmarc.many-destinations", dmarcd.LevelInfo, 0, "RFC 7489 §6.2",
		"The tag {part} in the DMARC record of {at} lists more than two destinations.",
		"Older receivers need not serve more than two, so that the others may get fewer reports.",
		"Put the most important ones first.",
	},
	{
		"dmarc.destination-refused", dmarcd.LevelError, 8, "RFC 9990 §4",
		"{host} does not say that it takes reports about {at}, but {tag} sends them to {text}.",
		"Receivers must not send reports to another organization without its consent, so that none arrive.",
		"Whoever runs {host} has to publish:",
	},
	{
		"dmarc.destination-unknown", dmarcd.LevelInfo, 0, "RFC 9990 §4",
		"Whether {host} takes reports about {at} could not be looked up.",
		"Receivers that see the same hold back their reports.",
		"Try again; if it stays so, ask whoever runs {host} whether this record is there:",
	},
	{
		"dmarc.destination-without-mail", dmarcd.LevelError, 8, "RFC 5321 §5.1",
		"Reports go to {text} ({tag}), but {host} takes no mail: it has neither MX records nor an address, or refuses all mail.",
		"Every report is lost on its way.",
		"Name an address of a domain that takes mail, or give {host} an MX record.",
	},
}

// parkedEntries are the findings about domains that are not used for mail.
var parkedEntries = []Entry{
	{
		"parked.locked", dmarcd.LevelGood, 0, "RFC 7505 §3",
		"{domain} is not used for mail and says so in every way: null MX, v=spf1 -all and the DMARC policy reject.",
		"Receivers can refuse every mail as {domain} without a doubt.",
		"",
	},
	{
		"parked.policy", dmarcd.LevelError, 25, "RFC 9989 §4.7",
		"{domain} says that it neither sends nor takes mail, but its DMARC policy is {policy}, not reject.",
		"No mail as {domain} is genuine, so that nothing is gained by letting any of it through.",
		"Publish:",
	},
	{
		"parked.spf-open", dmarcd.LevelWarning, 10, "RFC 7208 §10.1.2",
		"{domain} takes no mail (null MX), but its SPF record lets others send: {text}",
		"A domain that cannot be answered should not be sent from.",
		"If nobody sends mail as {domain}, publish:",
	},
	{
		"parked.no-reports", dmarcd.LevelInfo, 2, "RFC 9990 §4",
		"The DMARC record of {at} names no address for aggregate reports (rua), and {domain} itself takes no mail.",
		"Nobody tells you that forgers send mail as {domain}.",
		"Add rua with an address at another domain of yours, which has to say that it takes reports about {domain}.",
	},
	{
		"parked.takes-mail", dmarcd.LevelInfo, 1, "RFC 7505 §3",
		"{domain} sends no mail (v=spf1 -all) and has no MX record, but does not say that it takes none.",
		"Senders keep trying for days to deliver what is sent to it by mistake.",
		"Publish a null MX record:",
	},
}
