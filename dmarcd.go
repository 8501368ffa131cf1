// Package dmarcd holds the nouns of the DMARC daemon: what the rest of the
// program talks about, in one word per idea. It does no I/O and knows neither
// SQL nor JSON.
//
// # Glossary
//
//   - Team: owns everything else; the tenant.
//   - Token: a secret that lets a program act for a team.
//   - Domain: a mail domain that a team monitors.
//   - Check: one examination of a domain's DNS, and its result: Facts.
//   - Finding: one result of a check, and how to fix it.
//   - Event: a change of a domain that users should know.
//   - Delivery: a received message or file, and its contents.
//   - Report: a receiver's report about a domain's mail: aggregate, failure or
//     TLS. A Share is its part about one From domain, an aggregate.Record one row.
//   - Intake: how a report was received.
//   - Mailbox: an IMAP mailbox that is read for a team.
//   - Verdict: whether the sender of its message was verified.
//   - Rejected: received content that could not be parsed.
//   - Summary: the number of reported messages, and how many are compliant.
//   - Day: a day in UTC, the unit in which messages are counted.
//
// Every identifier is a type of its own, so that a token's cannot be passed for
// a team's. Errors have kinds (ErrNotFound and its siblings), which each
// transport turns into its own language.
package dmarcd
