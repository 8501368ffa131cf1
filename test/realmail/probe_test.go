package realmail_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/starttls"
)

// TestCertificateOfExim checks a domain whose mail server is an Exim with a certificate that
// expires in five days.
func TestCertificateOfExim(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	until := time.Now().Add(5 * 24 * time.Hour)
	certificate := certtest.New(t, nil, x509.Certificate{DNSNames: []string{"mail.recipient.example"}, NotBefore: until.Add(-90 * 24 * time.Hour), NotAfter: until})
	private := musttest.Get(x509.MarshalPKCS8PrivateKey(certificate.PrivateKey))(t)
	var both bytes.Buffer
	for _, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: certificate.Leaf.Raw}, {Type: "PRIVATE KEY", Bytes: private}} {
		musttest.Do(t, pem.Encode(&both, block))
	}
	for _, row := range []struct {
		name        string
		certificate []byte
		status      string
		warned      bool
	}{{"with TLS", both.Bytes(), "ok", true}, {"without TLS", nil, "inconclusive", false}} {
		in := startInbox(t, row.certificate)
		zone := dnstest.New("recipient.example MX 10 mail.recipient.example\nmail.recipient.example A 9.9.9.9\n" + `_dmarc.recipient.example TXT "v=DMARC1; p=reject"`)
		dialer := outbound.Dialer{Resolver: zone, Connect: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, in.address)
		}}
		reader := starttls.New(starttls.Options{Dial: dialer.DialContext, Hostname: "dmarcd.example", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		check := dnscheck.New(dnscheck.Options{Resolver: zone, DialMX: reader.Certificates, Now: time.Now}).Examine(t.Context(), dnscheck.Request{Domain: "recipient.example"})
		warned := slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.ID == "starttls.certificate_expires" })
		if check.Facts.STARTTLS.Status != row.status || warned != row.warned {
			t.Errorf("%s: got %+v and a warning: %t", row.name, check.Facts.STARTTLS, warned)
		}
	}
}
