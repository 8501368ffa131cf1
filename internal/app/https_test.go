package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/smtp"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// writeCertificate writes a certificate for a host into the files of a folder, and returns it.
func writeCertificate(t *testing.T, folder, host string, life time.Duration) *x509.Certificate {
	t.Helper()
	pair := certtest.New(t, nil, x509.Certificate{DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life)})
	key := musttest.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	content := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "new"), content, 0o600))
	musttest.Do(t, os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, "pem")))
	return pair.Leaf
}

// httpsSettings serves HTTPS with the certificate in a folder.
func httpsSettings(folder string) []string {
	file := filepath.Join(folder, "pem") // both are in it
	return []string{"DMARCD_TLS=files", "DMARCD_BASE_URL=https://dmarc.test/api", "DMARCD_TLS_CERTIFICATE=" + file, "DMARCD_TLS_KEY=" + file}
}

// TestHTTPS serves pages over HTTP/2 and HTTP/1.1, and mail, with a certificate that is replaced.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	leaf := writeCertificate(t, folder, "dmarc.test", time.Hour)
	d := start(t, storetest.SQLite(t), append(httpsSettings(folder),
		"DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_REPORT_DOMAIN=report.example", "DMARCD_DNS=127.0.0.1:1")...)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	client := browser(t)
	use := func(protocols ...string) {
		client.Transport = &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "dmarc.test", NextProtos: protocols, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: len(protocols) == 0, DisableKeepAlives: true,
		}
	}
	ask := func(path string) (*http.Response, error) {
		request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+d.listen+path, nil))(t)
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close() // the header is enough
		}
		return response, err
	}
	for _, row := range []struct {
		protocols []string
		want      int
	}{{nil, 2}, {[]string{"http/1.1"}, 1}} {
		use(row.protocols...)
		response, err := ask("/healthz") //nolint:bodyclose // ask closes it
		musttest.Do(t, err)
		if got := response.Header.Get("Strict-Transport-Security"); response.ProtoMajor != row.want || !strings.HasPrefix(got, "max-age=") {
			t.Errorf("%v: got HTTP/%d and HSTS %q, want HTTP/%d and HSTS", row.protocols, response.ProtoMajor, got, row.want)
		}
	}
	use()
	answer, _ := visit(t, client, "https://"+d.listen+invitationForm.FindString(d.out), url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
	if got := answer.header.Get("Set-Cookie"); !strings.HasPrefix(got, "__Host-") || !strings.Contains(got, "; Secure") {
		t.Errorf("got the cookie %q, want one for this host alone", got)
	}

	address := regexp.MustCompile(`"receiving mail","address":"([^"]+)"`).FindStringSubmatch(d.log.String())[1]
	mail := musttest.Get(smtp.Dial(address))(t)
	defer func() { _ = mail.Close() }() // it sent nothing
	musttest.Do(t, mail.StartTLS(&tls.Config{RootCAs: roots, ServerName: "dmarc.test", MinVersion: tls.VersionTLS12}))

	roots.AddCert(writeCertificate(t, folder, "new.test", time.Hour))
	for limit := time.Now().Add(time.Minute); ; {
		use()
		client.Transport.(*http.Transport).TLSClientConfig.ServerName = "new.test"
		if _, err := ask("/healthz"); err == nil { //nolint:bodyclose // ask closes it
			break
		} else if time.Now().After(limit) {
			t.Fatalf("the new certificate: %v", err)
		}
	}
}

func TestDoctorReportsHTTPS(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, host string
		life       time.Duration
		state      app.DiagnosisState
		message    string
	}{
		{"good", "dmarc.test", time.Hour, app.Healthy, "HTTPS is served for dmarc.test"},
		{"at its end", "dmarc.test", 5 * time.Minute, app.Advised, "valid until"},
		{"expired", "dmarc.test", -time.Minute, app.Sick, "expired"},
		{"of another host", "other.test", time.Hour, app.Sick, "not valid for dmarc.test"},
		{"missing", "", 0, app.Sick, "no such file"},
		{"by ACME", "auto", 0, app.Advised, "There is no certificate for dmarc.test yet"},
		{"off", "off", 0, app.Healthy, "Plain HTTP is served"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			folder, db := t.TempDir(), storetest.SQLite(t)
			settings := append(httpsSettings(folder), "DMARCD_DATABASE="+db.DSN, "DMARCD_DATA="+folder, "DMARCD_DNS=127.0.0.1:1")
			switch row.host {
			case "auto", "off":
				settings = append([]string{"DMARCD_TLS=" + row.host, "DMARCD_TLS_CERTIFICATE=", "DMARCD_TLS_KEY="}, settings...)
			case "":
			default:
				writeCertificate(t, folder, row.host, row.life)
			}
			effective := musttest.Get(config.Load(config.Input{Environ: settings}))(t)
			var found bool
			for _, d := range app.Diagnose(t.Context(), effective.Config, nil) {
				if d.Part == "HTTPS" {
					found = true
					if d.State != row.state || !strings.Contains(d.What, row.message) {
						t.Errorf("got %+v, want %s that says %q", d, row.state, row.message)
					}
				}
			}
			if !found {
				t.Error("got nothing about HTTPS")
			}
		})
	}
}
