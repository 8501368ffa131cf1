package dnscheck

import "github.com/dmarcd/dmarcd"

// dkimEntries are the findings about DKIM keys.
var dkimEntries = []Entry{
	{
		"dkim.inconclusive", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.2",
		"Not every DKIM selector of {domain} could be looked up: {reason}.",
		"Keys may be there that this check did not see.",
		"Try again.",
	},
	{
		"dkim.no-keys", dmarcd.LevelWarning, 15, "RFC 8020 §2",
		"{domain} has no DKIM keys: the name _domainkey.{domain} does not exist.",
		"Nobody can sign mail as {domain}, so that DMARC rests on SPF alone, which breaks when mail is forwarded.",
		"Switch on DKIM at the service that sends your mail, and publish the key that it shows you.",
	},
	{
		"dkim.not-found", dmarcd.LevelInfo, 0, "RFC 6376 §3.1",
		"None of {count} usual DKIM selectors was found for {domain}, which does not mean that it has no key.",
		"Nothing lists the selectors of a domain; reports, or the header of a mail that you sent (s= in DKIM-Signature), show which you use.",
		"Name your selectors (--selector), so that their keys are checked.",
	},
	{
		"dkim.wildcard", dmarcd.LevelWarning, 3, "RFC 4592 §3.3.1",
		"A wildcard record answers for every DKIM selector of {domain}.",
		"Which keys there really are cannot be told, and a stray answer can break signatures.",
		"Remove the wildcard, or give _domainkey.{domain} a record of its own.",
	},
	{
		"dkim.selector-missing", dmarcd.LevelError, 12, "RFC 6376 §3.6.2",
		"The DKIM selector {selector} of {domain} ({from}) has no key.",
		"Mail that is signed with it fails DKIM everywhere.",
		"Publish the key that the signing service shows at {selector}._domainkey.{domain}, or stop signing with it.",
	},
	{
		"dkim.revoked-in-use", dmarcd.LevelError, 12, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is revoked, but reports still show mail signed with it.",
		"That mail fails DKIM everywhere.",
		"Let the signing service use a key that is published, or publish this one again.",
	},
	{
		"dkim.revoked", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is revoked.",
		"Signatures made with it no longer count, which is right for a key that is out of use.",
		"",
	},
	{
		"dkim.key-too-short", dmarcd.LevelError, 20, "RFC 8301 §3.2",
		"The DKIM key {selector} of {domain} has {count} bits, fewer than {limit}.",
		"Receivers do not accept its signatures, and others can compute the private key and sign as you.",
		"Make a key of 2048 bits at the signing service, publish it under a new selector, then remove this one.",
	},
	{
		"dkim.key-weak", dmarcd.LevelWarning, 4, "RFC 8301 §3.2",
		"The DKIM key {selector} of {domain} has {count} bits; {limit} are advised.",
		"Keys of that size are within the reach of well-equipped attackers.",
		"Make a key of 2048 bits at the signing service, publish it under a new selector, then remove this one.",
	},
	{
		"dkim.key-long", dmarcd.LevelInfo, 0, "RFC 8301 §3.2",
		"The DKIM key {selector} of {domain} has {count} bits.",
		"Receivers need not support keys of more than 4096 bits, and the answer is large.",
		"A key of 2048 bits is enough.",
	},
	{
		"dkim.bad-exponent", dmarcd.LevelError, 20, "RFC 8017 §3.1",
		"The DKIM key {selector} of {domain} has the exponent {text}, with which anybody or nobody can sign.",
		"Signatures made with it are worthless.",
		"Make a new key at the signing service, publish it under a new selector, then remove this one.",
	},
	{
		"dkim.large-exponent", dmarcd.LevelInfo, 0, "RFC 8017 §3.1",
		"The DKIM key {selector} of {domain} has an exponent of {count} bits.",
		"Common software takes at most {limit} bits, and cannot check its signatures.",
		"Make a new key with the usual exponent 65537.",
	},
	{
		"dkim.no-usable-hash", dmarcd.LevelError, 15, "RFC 8301 §3.1",
		"The DKIM key {selector} of {domain} allows only {text} (h), with which no signature counts.",
		"Every signature made with it fails.",
		"Remove the tag h from the key record.",
	},
	{
		"dkim.sha1-allowed", dmarcd.LevelInfo, 0, "RFC 8301 §3.1",
		"The DKIM key {selector} of {domain} allows sha1 (h).",
		"Nothing may be signed with sha1 any more.",
		"Remove the tag h from the key record, or sha1 from its value.",
	},
	{
		"dkim.invalid-key", dmarcd.LevelError, 15, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} cannot be used: {flaw}.",
		"Mail that is signed with it fails DKIM everywhere.",
		"Publish the record again exactly as the signing service shows it.",
	},
	{
		"dkim.bare-key", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is in the bare form that few use.",
		"Some receivers cannot read it.",
		"Publish the key in the usual form (SubjectPublicKeyInfo).",
	},
	{
		"dkim.ignored-part", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.1",
		"In the DKIM key {selector} of {domain}, {flaw}.",
		"Receivers pass over it.",
		"Correct it, or remove it.",
	},
	{
		"dkim.not-for-mail", dmarcd.LevelWarning, 3, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is not meant for mail: s={text}.",
		"Receivers of mail must ignore it.",
		"Remove the tag s from the key record if mail is signed with it.",
	},
	{
		"dkim.testing", dmarcd.LevelWarning, 4, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is in test mode (t=y).",
		"Receivers may treat mail that is signed with it as if it were not.",
		"Remove t=y from the key record.",
	},
	{
		"dkim.multiple-records", dmarcd.LevelError, 12, "RFC 6376 §3.6.2.2",
		"{selector}._domainkey.{domain} holds {count} TXT records.",
		"What receivers do then is not defined, and many fail the signature.",
		"Remove all but the key.",
	},
	{
		"dkim.near-miss", dmarcd.LevelWarning, 4, "RFC 6376 §3.6.1",
		"The text at {selector}._domainkey.{domain} looks like a key and is none: {text}",
		"Receivers find no key there, and mail that is signed with it fails.",
		"Publish the record again exactly as the signing service shows it.",
	},
	{
		"dkim.dangling-alias", dmarcd.LevelWarning, 4, "RFC 6376 §3.6.2",
		"{selector}._domainkey.{domain} is an alias (CNAME) of {text}, where there is no key.",
		"Mail that is signed with it fails, and whoever gets hold of that name can sign as you.",
		"Remove the alias, or have the service publish the key.",
	},
	{
		"dkim.found", dmarcd.LevelGood, 0, "RFC 6376 §3.6.1",
		"{domain} has DKIM keys that can be used: {names}.",
		"Mail that is signed with them passes even when it is forwarded.",
		"",
	},
}
