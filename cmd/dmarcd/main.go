// Command dmarcd is the DMARC daemon and its command line tool. Each command is one file
// and delegates to internal packages.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for quiet hours where the system has no time zones

	// Fallback roots for systems without any, such as an image from scratch.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// version is set at build time.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	status := program.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
