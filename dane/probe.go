package dane

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"time"
)

// Dial connects to the SMTP server of a host, starts TLS with serverName, and returns the
// certificates of the server, its own first. It must not verify them and must return by
// the deadline of ctx. It chooses the port and decides which addresses are allowed.
type Dial func(ctx context.Context, host, serverName string) ([]*x509.Certificate, error)

// Probe compares the certificates of a host with its TLSA records. The mail domain is the
// one whose MX records refer to the host. Errors are those of dial and say nothing about
// the records.
func (h Host) Probe(ctx context.Context, dial Dial, domain string, at time.Time) (Matched, error) {
	serverName := cmp.Or(h.BaseName, h.Name)
	chain, err := dial(ctx, h.Name, serverName)
	if err != nil {
		return Matched{}, fmt.Errorf("read certificates of %s: %w", h.Name, err)
	}
	m := Match(chain, h.Records, []string{serverName, h.Name, domain}, at)
	for i := range m.Problems {
		m.Problems[i].Host = h.Name
	}
	return m, nil
}
