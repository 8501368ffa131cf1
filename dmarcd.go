// Package dmarcd contains the nouns of the DMARC daemon, their ids and the kinds of errors, with one
// word per idea. It does no I/O and knows neither SQL nor how things are shown. Each noun has a file
// that is named after it; id.go has the ids of all, errors.go the kinds of errors.
//
// # Glossary
//
//   - Team: owns everything else; the tenant. Members, invitations and tokens are in team.go too.
//   - Token: a secret that lets a program act for a team.
//   - Domain: a mail domain that a team monitors.
//   - Finding: one result of a check of a domain's DNS, and how to fix it. The check itself is
//     facts.Check.
//   - Advice: how far a domain is on the way to reject, and the next step.
//   - Sender: who sends mail as a domain; Class is its relation to the domain.
//   - Event: a change of a domain that users should know. An Alert is an event with the decision of
//     the team's rules, a Detection one that was found in the mail.
//   - Delivery: a received message or file, and its contents.
//   - Report: a receiver's report about a domain's mail: aggregate, failure or
//     TLS. A Share is its part about one From domain, an aggregate.Record one row.
//   - Intake: how a report was received.
//   - Mailbox: an IMAP mailbox that is read for a team.
//   - Authentication: whether the sender of a report's message was verified.
//   - Rejected: received content that could not be parsed.
//   - Summary: the number of reported messages, and how many are compliant; Counts has more detail.
//   - Day: a day in UTC, the unit in which messages are counted.
//
// Every kind of identifier is a separate type, so that the compiler finds mix-ups. Errors
// have kinds, such as ErrNotFound, which each transport maps to its own statuses.
package dmarcd
