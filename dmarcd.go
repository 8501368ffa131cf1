// Package dmarcd contains the domain types of the DMARC daemon, with one word per idea.
// It does no I/O and knows neither SQL nor JSON.
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
// Every kind of identifier is a separate type, so that the compiler finds mix-ups. Errors
// have kinds, such as ErrNotFound, which each transport maps to its own statuses.
package dmarcd
