package dnscheck

import "github.com/dmarcd/dmarcd"

// domainEntries are the findings about the name itself.
var domainEntries = []Entry{
	{
		"domain.missing", dmarcd.LevelError, 5, "RFC 8020 §2",
		"{domain} does not exist in DNS.",
		"Mail to it cannot be delivered, and only the policy of a parent domain can protect it from spoofing.",
		"Check the spelling of the name and whether its registration has expired.",
	},
}

// dmarcEntries are the findings about which policy applies.
var dmarcEntries = []Entry{
	{
		"dmarc.inconclusive", dmarcd.LevelWarning, 0, "RFC 9989 §5.3.6",
		"The lookup of the DMARC record of {domain} failed: {reason}.",
		"Receivers with the same problem cannot apply a policy, and this check cannot judge the domain.",
		"Try again. If the problem persists, contact the operator of the name servers of {domain}.",
	},
	{
		"dmarc.missing", dmarcd.LevelError, 90, "RFC 9989 §4.10.1",
		"{domain} has no DMARC record, and no parent domain publishes one that applies.",
		"Anyone can send mail as {domain}, and you receive no reports about it.",
		"Publish this record; {then}:",
	},
	{
		"dmarc.near-miss", dmarcd.LevelError, 90, "RFC 9989 §4.7",
		"The TXT record at _dmarc.{domain} is not a DMARC record because {flaw}: {text}",
		"Receivers ignore it, so {domain} has no policy at all.",
		"Replace it with this record:",
	},
	{
		"dmarc.near-miss-inherited", dmarcd.LevelError, 15, "RFC 9989 §4.7",
		"The TXT record at _dmarc.{domain} is not a DMARC record because {flaw}: {text}",
		"Receivers ignore it and apply the record of {record_domain} instead.",
		"Replace it with this record:",
	},
	{
		"dmarc.stray-text", dmarcd.LevelInfo, 0, "RFC 9989 §4.10",
		"_dmarc.{domain} has another TXT record next to the DMARC record: {text}",
		"Receivers ignore it, but it makes the answer larger and confuses anyone who reads the zone.",
		"Remove that TXT record.",
	},
	{
		"dmarc.record-at-apex", dmarcd.LevelWarning, 0, "RFC 9989 §4.5",
		"A DMARC record is published at {domain} itself: {text}",
		"Receivers query _dmarc.{domain} only, so they never read this record.",
		"Remove it there and publish it at the right name:",
	},
	{
		"dmarc.dangling-alias", dmarcd.LevelError, 90, "RFC 9989 §4.10",
		"_dmarc.{domain} is an alias (CNAME) of {target}, which has no DMARC record.",
		"Receivers follow the alias and find nothing, so {domain} has no policy. An attacker who takes over {target} can set one.",
		"Publish the record at {target}, or replace the alias with this record:",
	},
	{
		"dmarc.dangling-alias-inherited", dmarcd.LevelError, 15, "RFC 9989 §4.10",
		"_dmarc.{domain} is an alias (CNAME) of {target}, which has no DMARC record.",
		"Receivers apply the record of {record_domain} instead. An attacker who takes over {target} can set another policy.",
		"Publish the record at {target}, or remove the alias.",
	},
	{
		"dmarc.multiple-records", dmarcd.LevelError, 85, "RFC 9989 §4.10",
		"_dmarc.{domain} has {count} DMARC records.",
		"Receivers discard all of them, as if {domain} had none.",
		"Remove all but one. This record combines the strictest policy with all report addresses:",
	},
	{
		"dmarc.policy-off", dmarcd.LevelError, 85, "RFC 9989 §4.10.1",
		"The DMARC record of {at} has no effect because {flaw}, and it has no report address (rua).",
		"Receivers do not apply DMARC at all, whatever else the record says.",
		"Publish this record instead:",
	},
	{
		"dmarc.policy-lost", dmarcd.LevelError, 45, "RFC 9989 §4.10.1",
		"Receivers treat the DMARC record of {at} as p=none because {flaw}.",
		"One invalid tag disables the whole policy, so receivers deliver mail that spoofs {domain}.",
		"Publish this record instead:",
	},
	{
		"dmarc.duplicate-tag", dmarcd.LevelError, 60, "RFC 6376 §3.2",
		"The DMARC record of {at} has the tag {part} more than once.",
		"Some receivers use the first one, others ignore the whole record.",
		"Publish the record with each tag once:",
	},
	{
		"dmarc.policy-none", dmarcd.LevelWarning, 20, "RFC 9989 §4.7",
		"{domain} is not protected: its DMARC policy is none (tag {source} of {at}).",
		"Monitoring only: receivers send reports, but still deliver mail that spoofs {domain}.",
		"When the reports show that your own mail passes DMARC, publish the next step:",
	},
	{
		"dmarc.policy-quarantine", dmarcd.LevelInfo, 6, "RFC 9989 §4.7",
		"The DMARC policy of {domain} is quarantine.",
		"Spoofed mail goes to the spam folder, where some recipients still open it.",
		"When none of your own mail has been quarantined for a few weeks, publish:",
	},
	{
		"dmarc.testing", dmarcd.LevelWarning, 15, "RFC 9989 §4.7",
		"The DMARC record of {at} has the policy {policy}, but t=y reduces it to {applied}.",
		"In test mode, receivers apply one level less than the policy.",
		"When your tests are complete, publish the record without t=y:",
	},
	{
		"dmarc.percentage", dmarcd.LevelWarning, 6, "RFC 9989 §C.5.2",
		"The DMARC record of {at} has pct={percent}.",
		"Older receivers apply the policy to {percent} percent of the mail that fails DMARC, newer ones to all of it, so the result depends on the receiver.",
		"Publish the record without pct (use t=y for testing instead):",
	},
	{
		"dmarc.subdomains-weaker", dmarcd.LevelWarning, 8, "RFC 9989 §4.7",
		"The policy is {policy} for {domain}, but only {sp} for its subdomains (sp).",
		"Attackers can spoof a subdomain instead, such as billing.{domain}.",
		"Unless mail from your subdomains still fails DMARC, publish:",
	},
	{
		"dmarc.missing-names-weaker", dmarcd.LevelWarning, 4, "RFC 9989 §4.7",
		"The policy is {policy} for {domain}, but only {np} for non-existent subdomains (np).",
		"Only attackers send mail from names that do not exist, so these names need no weaker policy.",
		"Publish:",
	},
	{
		"dmarc.np-without-effect", dmarcd.LevelWarning, 2, "RFC 9824 §3",
		"np={np} has no effect because the zone {zone} reports every name as existing{host}.",
		"Receivers apply {other} instead of np to mail from non-existent subdomains.",
		"When mail from your subdomains passes DMARC, set sp to the policy you want for such names.",
	},
	{
		"dmarc.np-at-risk", dmarcd.LevelInfo, 0, "RFC 9824 §3",
		"np={np} will have no effect once {zone}, which is hosted at {host}, is signed with DNSSEC.",
		"For signed zones, {host} reports every name as existing.",
		"When mail from your subdomains passes DMARC, and before you sign the zone, set sp to the same policy.",
	},
	{
		"dmarc.receivers-disagree", dmarcd.LevelWarning, 5, "RFC 9989 §4.10",
		"Receivers disagree about {domain}: under RFC 9989 {new}, under RFC 7489 {old}.",
		"The result for mail from {domain} depends on the age of the receiver's software.",
		"Publish a record at the domain itself, which both find:",
	},
	{
		"dmarc.organization-differs", dmarcd.LevelInfo, 0, "RFC 9989 §4.10.2",
		"The organizational domain of {domain} is {new} under RFC 9989 and {old} under RFC 7489.",
		"Mail that is aligned through another name of the organization passes DMARC at some receivers and fails at others.",
		"Sign with {domain} itself, or publish a DMARC record at {old}.",
	},
	{
		"dmarc.captured", dmarcd.LevelWarning, 8, "RFC 9989 §11.8",
		"{suffix} publishes a DMARC record without psd=y, which makes it the organizational domain of {domain}.",
		"Every owner of a domain below {suffix} counts as your organization and can pass DMARC as {domain}.",
		"Declare {domain} an organizational domain:",
	},
	{
		"dmarc.captured-organization", dmarcd.LevelWarning, 8, "RFC 9989 §11.8",
		"{suffix} publishes a DMARC record without psd=y, which makes it the organizational domain of {domain}.",
		"Every owner of a domain below {suffix} counts as your organization and can pass DMARC as {domain}.",
		"Add psd=n to the DMARC record of {organization}, or publish a record with it there.",
	},
	{
		"dmarc.policy-of-suffix", dmarcd.LevelWarning, 30, "RFC 9989 §4.10.1",
		"{domain} has no DMARC record; the policy {policy} of its public suffix {record_domain} applies.",
		"The operator of {record_domain} decides what happens to mail from {domain}, and you receive no reports.",
		"Publish your own record:",
	},
	{
		"dmarc.inherited", dmarcd.LevelInfo, 0, "RFC 9989 §4.10.1",
		"{domain} has no DMARC record; the record of {record_domain} applies, with the policy {policy}.",
		"A change at {record_domain} also changes {domain}.",
		"",
	},
	{
		"dmarc.reject", dmarcd.LevelGood, 0, "RFC 9989 §4.7",
		"{domain} is protected: its DMARC policy is reject.",
		"Receivers are asked to reject spoofed mail.",
		"",
	},
}

// dmarcTagEntries are the findings about single tags of the record.
var dmarcTagEntries = []Entry{
	{
		"dmarc.invalid-value", dmarcd.LevelWarning, 3, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} has an invalid value: {text}.",
		"Receivers use the default instead; for adkim and aspf, the default is relaxed alignment.",
		"Correct the value, or remove the tag:",
	},
	{
		"dmarc.unknown-tag", dmarcd.LevelWarning, 1, "RFC 9989 §4.7",
		"The DMARC record of {at} has an unknown tag: {text}.",
		"Receivers ignore it. If it is a typo, the tag you meant is not set.",
		"Correct the name of the tag, or remove it.",
	},
	{
		"dmarc.historic-tag", dmarcd.LevelInfo, 0, "RFC 9989 §C.5.2",
		"The DMARC record of {at} has the tag {part}, which RFC 9989 removed.",
		"Newer receivers ignore it.",
		"Publish the record without it:",
	},
	{
		"dmarc.tag-case", dmarcd.LevelWarning, 1, "RFC 9989 §4.8",
		"The DMARC record of {at} has the tag {text} in upper case.",
		"Some receivers do not recognize it.",
		"Write it in lower case:",
	},
	{
		"dmarc.malformed-element", dmarcd.LevelWarning, 3, "RFC 9989 §4.8",
		"The DMARC record of {at} contains {text}, which is not of the form name=value.",
		"Most receivers ignore that part, some ignore the whole record.",
		"Correct it, or remove it:",
	},
	{
		"dmarc.empty-element", dmarcd.LevelInfo, 0, "RFC 9989 §4.8",
		"The DMARC record of {at} has two consecutive semicolons.",
		"Most receivers accept this, strict parsers may not.",
		"Remove one of them:",
	},
	{
		"dmarc.too-many-tags", dmarcd.LevelWarning, 2, "RFC 9989 §4.7",
		"The DMARC record of {at} has more than 100 tags.",
		"DMARC defines only twelve, and receivers may ignore such a record.",
		"Publish only the tags you need:",
	},
	{
		"dmarc.long-record", dmarcd.LevelWarning, 2, "RFC 6891 §6.2.5",
		"The DMARC record of {at} is {count} bytes long.",
		"The answer exceeds the usual size of a DNS message, and receivers that cannot query over TCP find no record.",
		"Shorten it to well below 1,000 bytes.",
	},
	{
		"dmarc.unused-failure-options", dmarcd.LevelInfo, 0, "RFC 9989 §4.7",
		"The DMARC record of {at} has fo, but no ruf.",
		"fo selects when failure reports are sent, and without ruf none are sent.",
		"Remove fo, or add an address for failure reports with ruf:",
	},
	{
		"dmarc.failure-reports-on-psd", dmarcd.LevelWarning, 2, "RFC 9991 §2",
		"The DMARC record of {at} has psd=y and requests failure reports (ruf).",
		"Failure reports contain parts of the mail of the organizations below {at}, and must not be sent to it.",
		"Publish the record without ruf:",
	},
}

// destinationEntries are the findings about where reports go.
var destinationEntries = []Entry{
	{
		"dmarc.no-reports", dmarcd.LevelWarning, 8, "RFC 9989 §4.7",
		"The DMARC record of {at} requests no aggregate reports (rua).",
		"You cannot see who sends mail as {domain}, or what a stricter policy would block.",
		"Add an address:",
	},
	{
		"dmarc.reports-elsewhere", dmarcd.LevelWarning, 8, "RFC 9989 §4.7",
		"The DMARC record of {at} does not send reports to {wanted}.",
		"This server receives no data about who sends mail as {domain}.",
		"Add the address:",
	},
	{
		"dmarc.bad-destination", dmarcd.LevelError, 5, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} has an invalid destination: {text}.",
		"Receivers ignore it, so those reports never arrive.",
		"Write it as mailto: followed by a mail address, or remove it:",
	},
	{
		"dmarc.unsupported-destination", dmarcd.LevelWarning, 2, "RFC 9989 §4.7",
		"The tag {part} in the DMARC record of {at} has a destination that is not a mailto address: {text}.",
		"Receivers only have to support mailto, and most ignore anything else.",
		"Use a mailto address.",
	},
	{
		"dmarc.size-limit", dmarcd.LevelInfo, 0, "RFC 9989 §4.8",
		"The destination {text} in the DMARC record of {at} has a size limit.",
		"RFC 9989 removed size limits, and newer receivers ignore them.",
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
		"Older receivers only have to support two, so the others may receive fewer reports.",
		"Put the most important ones first.",
	},
	{
		"dmarc.destination-refused", dmarcd.LevelError, 8, "RFC 9990 §4",
		"{host} has not authorized reports about {at}, but {tag} sends them to {text}.",
		"Receivers must not send reports to another organization without its authorization, so none arrive.",
		"The operator of {host} has to publish exactly this, as the only record of that name:",
	},
	{
		"dmarc.destination-unknown", dmarcd.LevelInfo, 0, "RFC 9990 §4",
		"It is unknown whether {host} accepts reports about {at}: the lookup failed.",
		"Receivers with the same problem do not send their reports.",
		"Try again. If the problem persists, ask the operator of {host} whether this record exists:",
	},
	{
		"dmarc.destination-without-mail", dmarcd.LevelError, 8, "RFC 5321 §5.1",
		"Reports go to {text} ({tag}), but {host} does not accept mail: it has a null MX record, or neither MX records nor an address.",
		"Every report is lost.",
		"Use an address at a domain that accepts mail, or give {host} an MX record.",
	},
}

// parkedEntries are the findings about domains that are not used for mail.
var parkedEntries = []Entry{
	{
		"parked.locked", dmarcd.LevelGood, 0, "RFC 7505 §3",
		"{domain} is not used for mail and is fully protected: null MX, v=spf1 -all and the DMARC policy reject.",
		"Receivers can safely reject all mail from {domain}.",
		"",
	},
	{
		"parked.policy", dmarcd.LevelError, 25, "RFC 9989 §4.7",
		"{domain} neither sends nor accepts mail, but its DMARC policy is {policy} instead of reject.",
		"No mail from {domain} is legitimate, so a weaker policy only helps attackers.",
		"Publish:",
	},
	{
		"parked.spf-open", dmarcd.LevelWarning, 10, "RFC 7208 §10.1.2",
		"{domain} accepts no mail (null MX), but its SPF record allows senders: {text}",
		"Recipients cannot reply to a domain that accepts no mail, so it should not send any.",
		"If {domain} sends no mail, publish:",
	},
	{
		"parked.no-reports", dmarcd.LevelInfo, 2, "RFC 9990 §4",
		"The DMARC record of {at} requests no aggregate reports (rua), and {domain} itself accepts no mail.",
		"You cannot see when attackers spoof {domain}.",
		"Add rua with an address at another domain of yours. That domain has to authorize reports about {domain}.",
	},
	{
		"parked.takes-mail", dmarcd.LevelInfo, 1, "RFC 7505 §3",
		"{domain} sends no mail (v=spf1 -all) and has no MX record, but no null MX record either.",
		"Senders retry for days to deliver mail that is sent to it by mistake.",
		"Publish a null MX record:",
	},
}
