package imap_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-sasl"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// certificate returns TLS configurations of the server imap.example.org and of a client that
// trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	made := certtest.New(t, nil, x509.Certificate{DNSNames: []string{"imap.example.org"}, IsCA: true})
	trusted := x509.NewCertPool()
	trusted.AddCert(made.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{*made}}, &tls.Config{RootCAs: trusted}
}

// recorded records what a client sends in clear text.
type recorded struct {
	net.Conn
	sent *strings.Builder
}

func (r recorded) Write(b []byte) (int, error) {
	r.sent.Write(b)
	return r.Conn.Write(b)
}

// sockets returns a TCP connection. TLS needs buffers on both sides, which a pipe does not
// have.
func sockets(t *testing.T) (client, remote net.Conn) {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }() // it has done its work
	client = musttest.Get(net.Dial("tcp", listener.Addr().String()))(t)
	return client, musttest.Get(listener.Accept())(t)
}

func TestTryOverEverySecurity(t *testing.T) {
	t.Parallel()
	serverTLS, clientTLS := certificate(t)
	for _, row := range []struct {
		name     string
		security dmarcd.Security
		host     string
		server   *tls.Config // nil: the server has no STARTTLS
		client   *tls.Config
		says     string // "" for success
	}{
		{name: "tls", security: dmarcd.SecurityTLS, server: serverTLS, client: clientTLS},
		{name: "starttls", security: dmarcd.SecuritySTARTTLS, server: serverTLS, client: clientTLS},
		{name: "none", security: dmarcd.SecurityNone},
		{name: "a self-signed certificate", security: dmarcd.SecurityTLS, server: serverTLS, says: "certificate signed by unknown authority"},
		{name: "a certificate for another name", security: dmarcd.SecurityTLS, host: "mail.example.org", server: serverTLS, client: clientTLS, says: "not mail.example.org"},
		{name: "the same with starttls", security: dmarcd.SecuritySTARTTLS, host: "mail.example.org", server: serverTLS, client: clientTLS, says: "not mail.example.org"},
		{name: "a server without STARTTLS", security: dmarcd.SecuritySTARTTLS, client: clientTLS, says: "STARTTLS with imap.example.org:143"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, allCaps(), row.server)
			d := newTestReader(t, s)
			d.reader.Mailbox.Security, d.reader.TLS = row.security, row.client
			if row.host != "" {
				d.reader.Mailbox.Host = row.host
			}
			var sent strings.Builder
			d.reader.Dial = func(context.Context, string, string) (net.Conn, error) {
				client, remote := sockets(t)
				if row.security == dmarcd.SecurityTLS {
					remote = tls.Server(remote, row.server)
				}
				s.conns <- remote
				return recorded{client, &sent}, nil
			}
			err := d.reader.Try(t.Context())
			if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
				t.Errorf("got error %v, want %q", err, row.says)
			}
			if hidden := !strings.Contains(sent.String(), password); hidden != (row.security != dmarcd.SecurityNone) {
				t.Errorf("the password was hidden: %v", hidden)
			}
		})
	}
}

func TestTrySaysWhatIsWrong(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*imap.Reader)
		faults faults
		says   string
	}{
		{name: "nothing", change: func(*imap.Reader) {}},
		{name: "the password", change: func(r *imap.Reader) { r.Login.Password = "wrong" }, says: "the server rejected the login"},
		{name: "the user", change: func(r *imap.Reader) { r.Mailbox.Username = "unknown" }, says: "the server rejected the login"},
		{name: "the folder", change: func(r *imap.Reader) { r.Mailbox.Folder = "Reports" }, says: `open the folder "Reports": NO [NONEXISTENT] No such mailbox`},
		{name: "the host", faults: faults{dial: func() error { return errors.New("no such host") }}, change: func(*imap.Reader) {}, says: "connect to imap.example.org:143: no such host"},
		{name: "the port: no greeting", faults: faults{wire: silentAfter(0)}, change: func(*imap.Reader) {}, says: "the server timed out"},
		{name: "a server that hangs up", faults: faults{wire: cutAfter(0)}, change: func(*imap.Reader) {}, says: "greet imap.example.org:143"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				s.set(row.faults)
				d := newTestReader(t, s)
				row.change(d.reader)
				err := d.reader.Try(t.Context())
				if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
					t.Errorf("got error %v, want %q", err, row.says)
				}
			})
		})
	}
}

// tokenSession accepts one access token.
type tokenSession struct {
	session
	mechanisms []string
}

func (s *tokenSession) AuthenticateMechanisms() []string { return s.mechanisms }

func (s *tokenSession) Authenticate(mechanism string) (sasl.Server, error) {
	return &tokenServer{session: s, mechanism: mechanism}, nil
}

type tokenServer struct {
	session   *tokenSession
	mechanism string
	refused   bool
}

func (s *tokenServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if s.refused {
		return nil, true, imapserver.ErrAuthFailed
	}
	want := map[string]string{
		"XOAUTH2":     "user=" + user + "\x01auth=Bearer good token\x01\x01",
		"OAUTHBEARER": "n,a=" + user + ",\x01auth=Bearer good token\x01\x01",
	}[s.mechanism]
	if string(response) != want {
		s.refused = true
		challenge, err := json.Marshal(map[string]string{"status": "401", "schemes": "bearer"})
		return challenge, false, err
	}
	return nil, true, s.session.Login(user, password)
}

func TestLoginWithAccessTokens(t *testing.T) {
	for _, row := range []struct {
		name       string
		mechanisms []string
		token      string
		err        error
		says       string
	}{
		{name: "XOAUTH2", mechanisms: []string{"XOAUTH2"}, token: "good token"},
		{name: "OAUTHBEARER", mechanisms: []string{"OAUTHBEARER"}, token: "good token"},
		{name: "both", mechanisms: []string{"XOAUTH2", "OAUTHBEARER"}, token: "good token"},
		{name: "an old token", mechanisms: []string{"XOAUTH2"}, token: "old token", says: `the server rejected the login: the access token was rejected (status "401", scope "")`},
		{name: "no token to be had", mechanisms: []string{"XOAUTH2"}, err: errors.New("request an access token: no"), says: "request an access token: no"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serveSessions(t, allCaps(), nil, func(plain session) imapserver.Session {
					return &tokenSession{session: plain, mechanisms: row.mechanisms}
				})
				d := newTestReader(t, s)
				d.reader.Login = imap.Login{Token: func(context.Context) (string, error) { return row.token, row.err }}
				err := d.reader.Try(t.Context())
				if row.says == "" && err != nil || row.says != "" && (err == nil || err.Error() != row.says) {
					t.Errorf("got error %v, want %q", err, row.says)
				}
			})
		})
	}
}

func TestLoginWithoutTheCommandLOGIN(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, goimap.CapSet{goimap.CapIMAP4rev1: {}}, nil)
		// The replacement has the same length as the original.
		s.set(faults{wire: func(conn net.Conn) net.Conn { return &replacing{conn, "LITERAL- AUTH=PLAIN", "LOGINDISABLED XXXXX"} }})
		d := newTestReader(t, s)
		var sent strings.Builder
		d.reader.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.dial(ctx, network, address)
			return recorded{conn, &sent}, err
		}
		musttest.Do(t, d.reader.Try(t.Context()))
		if !strings.Contains(sent.String(), "AUTHENTICATE PLAIN") {
			t.Errorf("got the commands %q, want AUTHENTICATE PLAIN", sent.String())
		}
	})
}
