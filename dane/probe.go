package dane

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"
)

// Dial connects to the SMTP server of a host, asks for TLS by STARTTLS with
// serverName as the name wanted, and returns the certificates that the server
// presents, its own first. It must not verify them, must return by the deadline of
// ctx, and chooses the port and the addresses that may be reached.
type Dial func(ctx context.Context, host, serverName string) ([]*x509.Certificate, error)

// Probe compares the certificates that a host presents with its TLSA records. The
// mail domain is the one whose MX records lead to the host. An error is one of
// dial's and says nothing about the records.
func (h Host) Probe(ctx context.Context, dial Dial, domain string, at time.Time) (Matched, error) {
	serverName := h.BaseName
	if serverName == "" {
		serverName = h.Name
	}
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
