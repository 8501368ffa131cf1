// Package dmarcd holds the nouns of the DMARC daemon: what the rest of the
// program talks about, in one word per idea. It does no I/O and knows neither
// SQL nor JSON.
//
// # Glossary
//
//   - Team: owns everything else; the tenant.
//   - Token: a secret that lets a program act for a team.
//   - Domain: a mail domain that a team watches.
//   - Check: one look at a domain's DNS, and what it found: its Facts.
//   - Finding: one thing that a check has to say, and how to mend it.
//   - Event: something worth telling that happened to a domain.
//   - Delivery: one thing that was sent, and what was found in it.
//   - Report: what a receiver told about a domain's mail: aggregate, failure or
//     TLS. A Share is its part about one From domain, an aggregate.Record one row.
//   - Intake: how a report came in.
//   - Mailbox: one that is read by IMAP for a team.
//   - Verdict: whether the mail that brought it is genuine.
//   - Rejected: something that was sent and could not be used.
//   - Summary: how many messages reports have told of, and how many complied.
//   - Day: a day in UTC, the unit in which messages are counted.
//
// Every identifier is a type of its own, so that a token's cannot be passed for
// a team's. Errors have kinds (ErrNotFound and its siblings), which each
// transport turns into its own language.
package dmarcd
