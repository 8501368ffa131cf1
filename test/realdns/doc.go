// Package realdns holds the tests of what asks the DNS against name servers that
// others wrote: Knot DNS as the authority, which signs its zones, and Unbound as
// the recursive server in front of it, which validates them. Our own fake server
// answers as we understand the RFCs; these two answer as the world does.
//
// Every test starts both for itself, on loopback, as an unprivileged user, in a
// folder that goes away with them. No packet leaves the machine. The programs
// come from Debian's packages: scripts/need-servers.sh installs them. With
// -short nothing is started and nothing is tested.
package realdns
