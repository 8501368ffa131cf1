package adversary_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// anyCertificate is for the self-signed one of the arena.
func anyCertificate(protocols ...string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}
}

// httpsFiles returns the settings that serve HTTPS with a self-signed certificate.
func httpsFiles(t *testing.T) []string {
	t.Helper()
	pair := certtest.New(t, nil, x509.Certificate{DNSNames: []string{"dmarc.test"}})
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	content = append(content, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: musttest.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)})...)
	file := filepath.Join(t.TempDir(), "pem")
	musttest.Do(t, os.WriteFile(file, content, 0o600))
	return []string{"DMARCD_TLS=files", "DMARCD_TLS_CERTIFICATE=" + file, "DMARCD_TLS_KEY=" + file, "DMARCD_BASE_URL=https://dmarc.test/api"}
}

// frames is a client of HTTP/2 that sends any frames and reads no answers.
type frames struct {
	*http2.Framer

	conn    net.Conn
	block   bytes.Buffer
	encoder *hpack.Encoder
	ended   chan struct{}
}

// dialFrames connects from an address of loopback.
func (a *arena) dialFrames(from string) (*frames, error) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{LocalAddr: localAddress(from), Timeout: patience}, Config: anyCertificate("h2")}
	conn, err := dialer.DialContext(a.t.Context(), "tcp", a.d.HTTP)
	if err != nil {
		return nil, err
	}
	f := &frames{conn: conn, Framer: http2.NewFramer(conn, conn), ended: make(chan struct{})}
	f.encoder = hpack.NewEncoder(&f.block)
	_ = conn.SetWriteDeadline(deadline(answerLimit)) // it fails with the write
	go func() {
		defer close(f.ended)
		for {
			_, err := f.ReadFrame()
			if err != nil {
				return
			}
		}
	}()
	_, err = io.WriteString(conn, http2.ClientPreface)
	if err == nil {
		err = f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 1<<32 - 1})
	}
	return f, err
}

// request encodes the header of a request.
func (f *frames) request(method, path string, more ...hpack.HeaderField) []byte {
	f.block.Reset()
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "dmarc.test"}, {Name: ":path", Value: path},
	}, more...) {
		_ = f.encoder.WriteField(field) // into memory
	}
	return f.block.Bytes()
}

// TestHTTP2 attacks the framing of HTTP/2 and its compression from one address. The daemon closes
// such connections or rejects their streams, stays within its memory, and serves others.
func TestHTTP2(t *testing.T) {
	const streams = 20_000
	onSQLite(t, func(t *testing.T, a *arena) {
		report := "/tlsrpt/" + a.mailbox("mallory", "mallory.test")
		for _, row := range []struct {
			name        string
			connections int
			attack      func(f *frames) error
			closes      bool // the connection is closed for it
		}{
			{"rapid reset", 40, func(f *frames) error {
				for id := uint32(1); id < 2*streams; id += 2 {
					err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.request("GET", "/app/sign-in"), EndStream: true, EndHeaders: true})
					if err == nil {
						err = f.WriteRSTStream(id, http2.ErrCodeCancel)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}, false},
			{"CONTINUATION without end", 40, func(f *frames) error {
				err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.request("GET", "/"), EndStream: true})
				for n := 0; err == nil && n < streams; n++ {
					f.block.Reset()
					_ = f.encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-%d", n), Value: strings.Repeat("a", 8<<10), Sensitive: true}) // into memory
					err = f.WriteContinuation(1, false, f.block.Bytes())
				}
				return err
			}, true},
			{"header tables", 40, func(f *frames) error {
				bomb := make([]hpack.HeaderField, 15_000) // each is an index of one byte, and 4,000 bytes for the server
				for i := range bomb {
					bomb[i] = hpack.HeaderField{Name: "x", Value: strings.Repeat("a", 3900)}
				}
				for id := uint32(1); id < 400; id += 2 {
					block := f.request("GET", "/", bomb...)
					first := min(len(block), 16<<10)
					if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:first], EndStream: true, EndHeaders: first == len(block)}); err != nil {
						return err
					}
					if first < len(block) {
						if err := f.WriteContinuation(id, true, block[first:]); err != nil {
							return err
						}
					}
				}
				return nil
			}, false},
			{"streams that wait for their body", 200, func(f *frames) error {
				large := hpack.HeaderField{Name: "x-large", Value: strings.Repeat("a", 15<<10), Sensitive: true}
				for id := uint32(1); id < 200; id += 2 {
					block := f.request("POST", report, hpack.HeaderField{Name: "content-type", Value: "application/json"}, large)
					err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:8<<10]})
					for rest := block[8<<10:]; err == nil && len(rest) > 0; {
						n := min(len(rest), 16<<10)
						err = f.WriteContinuation(id, n == len(rest), rest[:n])
						rest = rest[n:]
					}
					if err == nil {
						err = f.WriteData(id, false, make([]byte, 1000))
					}
					if err != nil {
						return err
					}
				}
				return nil
			}, false},
		} {
			a.watch(row.name, func() {
				var attacking sync.WaitGroup
				for range row.connections {
					attacking.Go(func() {
						f, err := a.dialFrames("127.1.0.1")
						if err != nil {
							return // the limit of connections
						}
						defer func() {
							_ = f.conn.Close() // it is only a peer
							<-f.ended
						}()
						if err := row.attack(f); err == nil && row.closes {
							t.Errorf("%s: everything was taken, want the end of the connection", row.name)
						}
					})
				}
				attacking.Wait()
			})
		}
		a.d.Stop()
	}, httpsFiles(t)...)
}
