package realmail_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// receiver is the real binary, running on SQLite with a DNS of its own.
type receiver struct {
	*daemon.Daemon
	token string
}

// startDaemon builds the binary and runs it with further settings of the form
// NAME=value. It takes mail for report.example.
func startDaemon(t *testing.T, settings ...string) *receiver {
	t.Helper()
	in := install(t, t.TempDir(), settings...)
	d := in.Serve(t)
	t.Cleanup(d.Stop)
	return &receiver{Daemon: d, token: in.Do(t, "token", "create", "--team", "default")}
}

// install builds the binary for a daemon with its data in a folder.
func install(t *testing.T, folder string, settings ...string) daemon.Installation {
	t.Helper()
	program := musttest.Get(daemon.Build(folder))(t)
	return daemon.Installation{Program: program, Settings: []string{
		"DMARCD_DATA=" + filepath.Join(folder, "data"), "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_SMTP_LISTEN=127.0.0.1:0",
		"DMARCD_REPORT_DOMAIN=report.example", "DMARCD_DNS=" + resolvertest.Start(t, "").Addr(),
		"DMARCD_OUTBOUND_ALLOW=127.0.0.0/8,::1/128",
	}}.With(settings...)
}

// ask sends a request to the API, wants the status, and reads what is answered.
func ask[T any](t *testing.T, d *receiver, method, path, body string, status int) T {
	t.Helper()
	request := musttest.Get(http.NewRequestWithContext(t.Context(), method, "http://"+d.HTTP+"/api"+path, strings.NewReader(body)))(t)
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	musttest.Do(t, err)
	defer func() { _ = answer.Body.Close() }() // it was read to the end
	content := musttest.Get(io.ReadAll(answer.Body))(t)
	var value T
	if answer.StatusCode != status {
		t.Fatalf("%s %s: got status %d want %d: %s", method, path, answer.StatusCode, status, content)
	}
	if err := json.Unmarshal(content, &value); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, content)
	}
	return value
}

// addDomain adds a domain and returns its reporting address.
func (d *receiver) addDomain(t *testing.T, name string) string {
	t.Helper()
	ask[any](t, d, http.MethodPost, "/domains", fmt.Sprintf(`{"domain":%q}`, name), http.StatusCreated)
	return ask[struct {
		ReportAddress string `json:"report_address"`
	}](t, d, http.MethodGet, "/domains/"+name+"/setup", "", http.StatusOK).ReportAddress
}

// certificateFiles writes a self-signed certificate, and returns the
// settings that name it.
func certificateFiles(t *testing.T) []string {
	t.Helper()
	pair := selfSigned(t).Certificates[0]
	key := musttest.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	folder := t.TempDir()
	settings := []string{}
	for _, file := range []struct {
		setting, kind string
		content       []byte
	}{
		{"DMARCD_SMTP_CERTIFICATE", "CERTIFICATE", pair.Certificate[0]},
		{"DMARCD_SMTP_KEY", "PRIVATE KEY", key},
	} {
		path := filepath.Join(folder, file.setting)
		musttest.Do(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.content}), 0o600))
		settings = append(settings, file.setting+"="+path)
	}
	return settings
}
