// Package truth plants mail whose truth is known, and compares it with what the built daemon
// concludes from the reports about it.
//
// A Domain is generated from a seed and a number: DNS records, daily aggregate reports, marks of a
// user, and the truth by the rules of docs/senders.md: what a simulation of p=reject must show, and
// which action is next. The table of scenarios is in scenarios_test.go. The package imports
// nothing that concludes anything: a rule that is wrong in the product is not wrong here too.
package truth
