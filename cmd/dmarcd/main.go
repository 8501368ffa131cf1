// Command dmarcd is the DMARC daemon and the tool of its operators. Each command
// stands in a file of its own; what it does is done by the packages it calls.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// Whom to trust where the system does not say, as in an image from scratch.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	status := program.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
