// Package e2e holds the black-box tests of the daemon. They build the real
// binary, start it as a process with a database, a data folder and a DNS server
// of its own, and speak to it as its users do: over HTTP and SMTP, on the command
// line and by signals. What they expect comes from the documents of the interface,
// not from the code.
//
// Every exchange over HTTP is compared with the OpenAPI document that the
// server itself serves, and at the end of a whole run every answer which that
// document describes must have been seen on every engine. Every token that a
// test used is looked for in the logs, the metrics and the database.
//
// DMARCD_E2E_KILLS sets how often the kill tests kill the process. Where DMARCD_CORPUS
// names a folder of reports that others gathered, they are imported and compared with
// its index. The test of a full disk mounts one of its own where it may.
package e2e
