package realmail_test

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	testdaemon "github.com/dmarcd/dmarcd/test/daemon"
)

// daemon is the real binary, running on SQLite with a DNS of its own.
type daemon struct {
	api, smtp string // addresses
	token     string
}

// startDaemon builds the binary and runs it with further settings of the form
// NAME=value. It takes mail for report.example.
func startDaemon(t *testing.T, settings ...string) *daemon {
	t.Helper()
	folder := t.TempDir()
	program, err := testdaemon.Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program, "serve")
	process.Dir = folder
	process.Env = append([]string{
		"DMARCD_DATA=" + filepath.Join(folder, "data"), "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_SMTP_LISTEN=127.0.0.1:0",
		"DMARCD_REPORT_DOMAIN=report.example", "DMARCD_DNS=" + resolvertest.Start(t, "").Addr(), "DMARCD_LOG_FORMAT=json",
		"DMARCD_OUTBOUND_ALLOW=127.0.0.0/8,::1/128",
	}, settings...)
	process.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(process.SysProcAttr)
	log, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{}
	var said strings.Builder
	lines := bufio.NewScanner(log)
	for d.smtp == "" && lines.Scan() {
		d.note(lines.Bytes())
		said.WriteString(lines.Text() + "\n")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, log) // until the process ends
	}()
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
		<-drained
		if err := process.Wait(); err != nil {
			t.Errorf("the daemon: %v", err)
		}
	})
	if d.api == "" || d.smtp == "" {
		t.Fatalf("the daemon does not say where it serves:\n%s", said.String())
	}
	create := exec.Command(program, "token", "create", "--team", "default")
	create.Env, create.Dir = process.Env, folder
	token, err := create.Output()
	if err != nil {
		t.Fatal(err)
	}
	d.token = strings.TrimSpace(string(token))
	return d
}

// note reads an address from a line of the log.
func (d *daemon) note(line []byte) {
	var entry struct{ Msg, Address string }
	if json.Unmarshal(line, &entry) != nil {
		return
	}
	switch entry.Msg {
	case "serving":
		d.api = entry.Address
	case "receiving mail":
		d.smtp = entry.Address
	}
}

// ask sends a request to the API, wants the status, and reads what is answered.
func ask[T any](t *testing.T, d *daemon, method, path, body string, status int) T {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.api+"/api"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read to the end
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
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
func (d *daemon) addDomain(t *testing.T, name string) string {
	t.Helper()
	ask[any](t, d, http.MethodPost, "/domains", fmt.Sprintf(`{"domain":%q}`, name), http.StatusCreated)
	return ask[struct {
		ReportAddress string `json:"report_address"`
	}](t, d, http.MethodGet, "/domains/"+name+"/setup", "", http.StatusOK).ReportAddress
}

// certificateFiles writes a certificate that nobody vouches for, and returns the
// settings that name it.
func certificateFiles(t *testing.T) []string {
	t.Helper()
	pair := selfSigned(t).Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.content}), 0o600); err != nil {
			t.Fatal(err)
		}
		settings = append(settings, file.setting+"="+path)
	}
	return settings
}
