package dnscheck

import "github.com/dmarcd/dmarcd"

// dkimEntries are the findings about DKIM keys.
var dkimEntries = []Entry{
	{
		"dkim.inconclusive", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.2",
		"Some DKIM selectors of {domain} could not be looked up: {reason}.",
		"There may be keys that this check did not find.",
		"Try again.",
	},
	{
		"dkim.no-keys", dmarcd.LevelWarning, 15, "RFC 8020 §2",
		"{domain} has no DKIM keys: _domainkey.{domain} does not exist.",
		"Mail cannot be signed as {domain}, so DMARC depends on SPF alone, which fails when mail is forwarded.",
		"Enable DKIM at the service that sends your mail, and publish the key it shows you.",
	},
	{
		"dkim.not-found", dmarcd.LevelInfo, 0, "RFC 6376 §3.1",
		"None of {count} common DKIM selectors exists for {domain}. It may still have keys under other names.",
		"DNS has no list of selectors. Reports and the DKIM-Signature header of your own mail (s=) show which ones you use.",
		"Wait for reports: their selectors are checked automatically. To check others, use `dmarcd check --selector NAME`.",
	},
	{
		"dkim.wildcard", dmarcd.LevelWarning, 3, "RFC 4592 §3.3.1",
		"A wildcard record answers for every DKIM selector of {domain}.",
		"The check cannot tell which keys exist, and such an answer can break signatures.",
		"Remove the wildcard, or publish a record at _domainkey.{domain}.",
	},
	{
		"dkim.selector-missing", dmarcd.LevelError, 12, "RFC 6376 §3.6.2",
		"The DKIM selector {selector} of {domain} ({from}) has no key.",
		"Mail signed with it fails DKIM.",
		"Publish the key from the signing service at {selector}._domainkey.{domain}, or stop signing with it.",
	},
	{
		"dkim.revoked-in-use", dmarcd.LevelError, 12, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is revoked, but reports still show mail signed with it.",
		"That mail fails DKIM.",
		"Configure the signing service to use a published key, or publish this one again.",
	},
	{
		"dkim.revoked", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is revoked.",
		"Signatures made with it are invalid, which is correct for a retired key.",
		"",
	},
	{
		"dkim.key-too-short", dmarcd.LevelError, 20, "RFC 8301 §3.2",
		"The DKIM key {selector} of {domain} has {count} bits; the minimum is {limit}.",
		"Receivers reject its signatures, and attackers can compute the private key and sign as you.",
		"Create a 2048-bit key at the signing service, publish it under a new selector, then remove this one.",
	},
	{
		"dkim.key-weak", dmarcd.LevelWarning, 4, "RFC 8301 §3.2",
		"The DKIM key {selector} of {domain} has {count} bits; {limit} are recommended.",
		"Well-equipped attackers can break keys of that size.",
		"Create a 2048-bit key at the signing service, publish it under a new selector, then remove this one.",
	},
	{
		"dkim.key-long", dmarcd.LevelInfo, 0, "RFC 8301 §3.2",
		"The DKIM key {selector} of {domain} has {count} bits.",
		"Receivers do not have to support keys longer than 4096 bits, and the DNS answer is large.",
		"Use a 2048-bit key.",
	},
	{
		"dkim.bad-exponent", dmarcd.LevelError, 20, "RFC 8017 §3.1",
		"The DKIM key {selector} of {domain} has the invalid exponent {text}.",
		"Signatures made with it prove nothing.",
		"Create a new key at the signing service, publish it under a new selector, then remove this one.",
	},
	{
		"dkim.large-exponent", dmarcd.LevelInfo, 0, "RFC 8017 §3.1",
		"The DKIM key {selector} of {domain} has an exponent of {count} bits.",
		"Common software supports at most {limit} bits and cannot verify its signatures.",
		"Create a new key with the usual exponent 65537.",
	},
	{
		"dkim.no-usable-hash", dmarcd.LevelError, 15, "RFC 8301 §3.1",
		"The DKIM key {selector} of {domain} allows only {text} (h), which receivers do not accept.",
		"Every signature made with it fails.",
		"Remove the tag h from the key record.",
	},
	{
		"dkim.sha1-allowed", dmarcd.LevelInfo, 0, "RFC 8301 §3.1",
		"The DKIM key {selector} of {domain} allows sha1 (h).",
		"Signatures with sha1 are no longer valid.",
		"Remove the tag h from the key record, or sha1 from its value.",
	},
	{
		"dkim.invalid-key", dmarcd.LevelError, 15, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is invalid: {flaw}.",
		"Mail signed with it fails DKIM.",
		"Publish the record again exactly as the signing service shows it.",
	},
	{
		"dkim.bare-key", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is in an uncommon format (RSAPublicKey).",
		"Some receivers cannot read it.",
		"Publish the key in the usual format (SubjectPublicKeyInfo).",
	},
	{
		"dkim.ignored-part", dmarcd.LevelInfo, 0, "RFC 6376 §3.6.1",
		"In the DKIM key {selector} of {domain}, {flaw}.",
		"Receivers ignore it.",
		"Correct it, or remove it.",
	},
	{
		"dkim.not-for-mail", dmarcd.LevelWarning, 3, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is not meant for mail: s={text}.",
		"Mail receivers must ignore it.",
		"If mail is signed with it, remove the tag s from the key record.",
	},
	{
		"dkim.testing", dmarcd.LevelWarning, 4, "RFC 6376 §3.6.1",
		"The DKIM key {selector} of {domain} is in test mode (t=y).",
		"Receivers may treat mail signed with it as unsigned.",
		"Remove t=y from the key record.",
	},
	{
		"dkim.multiple-records", dmarcd.LevelError, 12, "RFC 6376 §3.6.2.2",
		"{selector}._domainkey.{domain} has {count} TXT records.",
		"The result is undefined, and many receivers fail the signature.",
		"Remove all but the key.",
	},
	{
		"dkim.near-miss", dmarcd.LevelWarning, 4, "RFC 6376 §3.6.1",
		"The TXT record at {selector}._domainkey.{domain} resembles a DKIM key but is invalid: {text}",
		"Receivers find no key there, and mail signed with it fails DKIM.",
		"Publish the record again exactly as the signing service shows it.",
	},
	{
		"dkim.dangling-alias", dmarcd.LevelWarning, 4, "RFC 6376 §3.6.2",
		"{selector}._domainkey.{domain} is an alias (CNAME) of {text}, which has no key.",
		"Mail signed with it fails DKIM, and an attacker who takes over that name can sign as you.",
		"Remove the alias, or have the service publish the key.",
	},
	{
		"dkim.found", dmarcd.LevelGood, 0, "RFC 6376 §3.6.1",
		"{domain} has valid DKIM keys: {names}.",
		"Mail signed with them passes DKIM even when it is forwarded.",
		"",
	},
}
