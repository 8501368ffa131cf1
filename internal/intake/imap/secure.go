package imap

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
)

// secure starts TLS on a connection.
func (r *Reader) secure(ctx context.Context, raw net.Conn) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.TLS != nil {
		config = r.TLS.Clone()
	}
	config.ServerName = cmp.Or(config.ServerName, r.Mailbox.Host)
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake with %s: %w", r.address(), err)
	}
	return secured, nil
}

// startTLS sends STARTTLS (RFC 9051 §6.2.1). We do it, and not the library, so that the guard
// sits above TLS.
func (r *Reader) startTLS(ctx context.Context, raw net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // unblocks the read
	defer stop()
	if err := negotiate(raw); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("STARTTLS with %s: %w", r.address(), readable(err))
	}
	return nil
}

// negotiate reads the greeting, sends STARTTLS and waits for OK.
func negotiate(raw net.Conn) error {
	in := bufio.NewReader(io.LimitReader(raw, answerBytes))
	greeting, err := readClear(in)
	if err != nil {
		return err
	}
	if !hasWords(greeting, "*", "OK") { // not PREAUTH, which does not allow STARTTLS
		return fmt.Errorf("unexpected greeting %.100q", greeting)
	}
	if _, err := io.WriteString(raw, "S1 STARTTLS\r\n"); err != nil {
		return err
	}
	for {
		line, err := readClear(in)
		switch {
		case err != nil:
			return err
		case hasWords(line, "S1", "OK"):
			if in.Buffered() > 0 {
				return errors.New("the server sent plain text after STARTTLS")
			}
			return nil
		case !bytes.HasPrefix(line, []byte("* ")):
			return fmt.Errorf("unexpected response %.100q", bytes.TrimPrefix(line, []byte("S1 ")))
		}
	}
}

// readClear reads a short line before TLS.
func readClear(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errTooMuch
	}
	return bytes.TrimRight(bytes.Clone(line), "\r\n"), err
}

func hasWords(line []byte, first, second string) bool {
	words := bytes.SplitN(line, []byte(" "), 3)
	return len(words) > 1 && string(words[0]) == first && bytes.EqualFold(words[1], []byte(second))
}
