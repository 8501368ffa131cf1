package imap_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-sasl"
	"github.com/google/go-cmp/cmp"

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
		message  string // "" for success
	}{
		{name: "tls", security: dmarcd.SecurityTLS, server: serverTLS, client: clientTLS},
		{name: "starttls", security: dmarcd.SecuritySTARTTLS, server: serverTLS, client: clientTLS},
		{name: "none", security: dmarcd.SecurityNone},
		{name: "a self-signed certificate", security: dmarcd.SecurityTLS, server: serverTLS, message: "certificate signed by unknown authority"},
		{name: "a certificate for another name", security: dmarcd.SecurityTLS, host: "mail.example.org", server: serverTLS, client: clientTLS, message: "not mail.example.org"},
		{name: "the same with starttls", security: dmarcd.SecuritySTARTTLS, host: "mail.example.org", server: serverTLS, client: clientTLS, message: "not mail.example.org"},
		{name: "a server without STARTTLS", security: dmarcd.SecuritySTARTTLS, client: clientTLS, message: "STARTTLS with imap.example.org:143"},
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
			if row.message == "" && err != nil || row.message != "" && (err == nil || !strings.Contains(err.Error(), row.message)) {
				t.Errorf("got error %v, want %q", err, row.message)
			}
			if hidden := !strings.Contains(sent.String(), password); hidden != (row.security != dmarcd.SecurityNone) {
				t.Errorf("the password was hidden: %v", hidden)
			}
		})
	}
}

func TestTryStatesWhatIsWrong(t *testing.T) {
	for _, row := range []struct {
		name    string
		change  func(*imap.Reader)
		faults  faults
		message string
	}{
		{name: "nothing", change: func(*imap.Reader) {}},
		{name: "the password", change: func(r *imap.Reader) { r.Login.Password = "wrong" }, message: "the server rejected the login"},
		{name: "the user", change: func(r *imap.Reader) { r.Mailbox.Username = "unknown" }, message: "the server rejected the login"},
		{name: "the folder", change: func(r *imap.Reader) { r.Mailbox.Folder = "Reports" }, message: `open the folder "Reports": NO [NONEXISTENT] No such mailbox`},
		{name: "the host", faults: faults{dial: func() error { return errors.New("no such host") }}, change: func(*imap.Reader) {}, message: "connect to imap.example.org:143: no such host"},
		{name: "the port: no greeting", faults: faults{wire: silentAfter(0)}, change: func(*imap.Reader) {}, message: "the server timed out"},
		{name: "a server that hangs up", faults: faults{wire: cutAfter(0)}, change: func(*imap.Reader) {}, message: "greet imap.example.org:143"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				s.set(row.faults)
				d := newTestReader(t, s)
				row.change(d.reader)
				err := d.reader.Try(t.Context())
				if row.message == "" && err != nil || row.message != "" && (err == nil || !strings.Contains(err.Error(), row.message)) {
					t.Errorf("got error %v, want %q", err, row.message)
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
	rejected  bool
}

func (s *tokenServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if s.rejected {
		return nil, true, imapserver.ErrAuthFailed
	}
	want := map[string]string{
		"XOAUTH2":     "user=" + user + "\x01auth=Bearer good token\x01\x01",
		"OAUTHBEARER": "n,a=" + user + ",\x01auth=Bearer good token\x01\x01",
	}[s.mechanism]
	if string(response) != want {
		s.rejected = true
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
		message    string
	}{
		{name: "XOAUTH2", mechanisms: []string{"XOAUTH2"}, token: "good token"},
		{name: "OAUTHBEARER", mechanisms: []string{"OAUTHBEARER"}, token: "good token"},
		{name: "both", mechanisms: []string{"XOAUTH2", "OAUTHBEARER"}, token: "good token"},
		{name: "an old token", mechanisms: []string{"XOAUTH2"}, token: "old token", message: `sign-in: the server rejected the login: the access token was rejected (status "401", scope "")`},
		{name: "no token to be had", mechanisms: []string{"XOAUTH2"}, err: errors.New("request an access token: no"), message: "access token: request an access token: no"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serveSessions(t, allCaps(), nil, func(plain session) imapserver.Session {
					return &tokenSession{session: plain, mechanisms: row.mechanisms}
				})
				d := newTestReader(t, s)
				d.reader.Login = imap.Login{Token: func(context.Context) (string, error) { return row.token, row.err }}
				err := d.reader.Try(t.Context())
				if row.message == "" && err != nil || row.message != "" && (err == nil || err.Error() != row.message) {
					t.Errorf("got error %v, want %q", err, row.message)
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

// provider issues access tokens.
type provider struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []url.Values
	status int
	answer map[string]any
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{status: http.StatusOK}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		p.asked = append(p.asked, r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(p.status)
		if err := json.NewEncoder(w).Encode(p.answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func TestOAuthToken(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		oauth   imap.OAuth
		status  int
		answer  map[string]any
		asked   map[string]string
		access  string
		refresh string
		message string
	}{
		{
			name:  "with a refresh token",
			oauth: imap.OAuth{ClientID: "client", ClientSecret: "hush", RefreshToken: "first"}, status: 200,
			answer: map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 3600},
			asked:  map[string]string{"grant_type": "refresh_token", "refresh_token": "first"},
			access: "access", refresh: "first",
		},
		{
			name:  "with a refresh token that is exchanged",
			oauth: imap.OAuth{ClientID: "client", RefreshToken: "first"}, status: 200,
			answer: map[string]any{"access_token": "access", "token_type": "Bearer", "refresh_token": "second"},
			asked:  map[string]string{"grant_type": "refresh_token", "refresh_token": "first"},
			access: "access", refresh: "second",
		},
		{
			name:  "as the program itself",
			oauth: imap.OAuth{ClientID: "client", ClientSecret: "hush", Scopes: []string{"https://mail.example/.default"}}, status: 200,
			answer: map[string]any{"access_token": "access", "token_type": "Bearer"},
			asked:  map[string]string{"grant_type": "client_credentials", "scope": "https://mail.example/.default"},
			access: "access",
		},
		{
			name:  "with a refresh token that has ended",
			oauth: imap.OAuth{ClientID: "client", RefreshToken: "first"}, status: 400,
			answer:  map[string]any{"error": "invalid_grant", "error_description": "Token has been revoked.", "hidden": "first"},
			asked:   map[string]string{"grant_type": "refresh_token"},
			message: "request an access token: the server rejected the login: the provider returned 400 Bad Request: invalid_grant Token has been revoked.",
		},
		{
			name:  "of a provider in trouble",
			oauth: imap.OAuth{ClientID: "client", RefreshToken: "first"}, status: 503,
			answer:  map[string]any{"page": "<html>first"},
			asked:   map[string]string{"grant_type": "refresh_token"},
			message: "request an access token: the provider returned 503 Service Unavailable",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.status, p.answer = row.status, row.answer
			row.oauth.TokenURL = p.URL
			access, renewed, err := row.oauth.Token(t.Context(), p.Client())
			if row.message != "" {
				if err == nil || err.Error() != row.message {
					t.Errorf("got error %v, want %q", err, row.message)
				}
				return
			}
			musttest.Do(t, err)
			if access != row.access || renewed.RefreshToken != row.refresh || renewed.TokenURL != p.URL {
				t.Errorf("got %q and %+v, want %q and the refresh token %q", access, renewed, row.access, row.refresh)
			}
			for key, want := range row.asked {
				if got := p.asked[0].Get(key); got != want {
					t.Errorf("asked with %s %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestLoginPreservesTheNewRefreshToken(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.answer = map[string]any{"access_token": "access", "token_type": "Bearer", "refresh_token": "second"}
	credentials := imap.Credentials{OAuth: &imap.OAuth{TokenURL: p.URL, ClientID: "client", RefreshToken: "first"}}
	var saved []string
	away := true
	login := credentials.Login(p.Client(), func(_ context.Context, renewed imap.Credentials) error {
		if away {
			return dmarcd.ErrTemporary
		}
		saved = append(saved, renewed.OAuth.RefreshToken)
		return nil
	})
	if _, err := login.Token(t.Context()); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("got error %v, want ErrTemporary: a token that is not kept is not used", err)
	}
	away = false
	for range 2 {
		if access, err := login.Token(t.Context()); err != nil || access != "access" {
			t.Fatalf("got %q (%v), want the access token", access, err)
		}
	}
	if diff := cmp.Diff([]string{"second"}, saved); diff != "" {
		t.Errorf("saved other than once:\n%s", diff)
	}
	if got := p.asked[2].Get("refresh_token"); got != "second" {
		t.Errorf("asked the third time with %q, want the new one", got)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	oauth := imap.OAuth{TokenURL: "https://login.example/token", ClientID: "client", RefreshToken: "refresh", Scopes: []string{"a", "b"}}
	change := func(f func(*imap.OAuth)) imap.Credentials {
		changed := oauth
		f(&changed)
		return imap.Credentials{OAuth: &changed}
	}
	for _, row := range []struct {
		name        string
		credentials imap.Credentials
		method      dmarcd.LoginMethod
		field       string // with the error
	}{
		{name: "a password", credentials: imap.Credentials{Password: "pass\"word\\ü"}, method: dmarcd.LoginPassword},
		{name: "OAuth", credentials: imap.Credentials{OAuth: &oauth}, method: dmarcd.LoginOAuth},
		{name: "OAuth of a program", credentials: change(func(o *imap.OAuth) { o.RefreshToken, o.ClientSecret = "", "hush" }), method: dmarcd.LoginOAuth},
		{name: "nothing", field: "password"},
		{name: "two lines", credentials: imap.Credentials{Password: "a\r\nb"}, field: "password"},
		{name: "a token URL in the clear", credentials: change(func(o *imap.OAuth) { o.TokenURL = "http://login.example" }), field: "token_url"},
		{name: "no token URL", credentials: change(func(o *imap.OAuth) { o.TokenURL = "" }), field: "token_url"},
		{name: "no client", credentials: change(func(o *imap.OAuth) { o.ClientID = "" }), field: "client_id"},
		{name: "nothing secret", credentials: change(func(o *imap.OAuth) { o.RefreshToken = "" }), field: "refresh_token"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := imap.DecodeCredentials(row.credentials.Encode())
			var invalid *dmarcd.InvalidError
			switch {
			case row.field != "" && (!errors.As(err, &invalid) || invalid.Field != row.field):
				t.Errorf("got error %v, want an InvalidError of the field %s", err, row.field)
			case row.field == "" && (err != nil || got.Method() != row.method || !cmp.Equal(got, row.credentials)):
				t.Errorf("got %+v (%v), want what was encoded", got, err)
			}
		})
	}
}

func TestDamagedCredentialsAreNotReported(t *testing.T) {
	t.Parallel()
	_, err := imap.DecodeCredentials([]byte(`hush"`))
	if err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "'h'") {
		t.Errorf("got error %v, want one without the secret", err)
	}
}
