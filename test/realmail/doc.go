// Package realmail holds the tests of what takes and sends mail against mail servers that
// others wrote: Exim, which sends to our SMTP server as a reporter's server does and takes
// the mail that we send, and Dovecot, whose mailboxes we read.
//
// Every test starts what it needs for itself, on loopback, as an unprivileged user, in
// a folder that goes away with it. No packet leaves the machine. The programs come from
// Debian's packages: scripts/need-servers.sh installs them. With -short nothing is
// started and nothing is tested.
package realmail
