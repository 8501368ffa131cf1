// Package adversary attacks the real binary as outsiders, reporters and tenants
// can: with a hostile IMAP host, SMTP client, DNS server, HTTPS host and team.
// During every attack another team goes on with its work. The daemon must stay
// small, must not answer that team with an error of its own, and must answer
// each of its requests in time.
//
// The tests know only what is promised from outside: HTTP, SMTP, IMAP, DNS and
// the command line. Attacks are bounded in count and time, and stay on
// loopback. DMARCD_SOAK=1 runs the sizes of the original findings.
//
// Some faults no known input causes: a panic of a check, a job or a reader, and an error
// that rollups of one team meet again and again. For these the tests of the packages
// jobs, store, intake, spool and recovered stand in. What such faults do to the process
// is imitated here where it can be: it is killed while a certain mail is handled, and a
// team's rows refuse to be changed.
package adversary
