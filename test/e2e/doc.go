// Package e2e contains the black-box tests of the daemon. They build the real binary,
// start it with its own database, data folder and DNS server, and use it like its users:
// over HTTP and SMTP, on the command line, and with signals. Expectations come from the
// documentation of the interface, not from the code.
//
// Every HTTP exchange is compared with the OpenAPI document of the server. At the end of
// a complete run, every documented answer must have been seen on every engine. Every
// token that a test used is searched for in logs, metrics and the database.
//
// DMARCD_E2E_KILLS sets how often the kill tests kill the process. If DMARCD_CORPUS names
// a folder of collected reports, they are imported and compared with its index. The test
// of a full disk mounts its own file system if it may.
package e2e
