package imap

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// Stage is the step at which a mailbox failed.
type Stage string

// The stages, in order.
const (
	StageName        Stage = "name lookup"
	StageConnection  Stage = "connection"
	StageEncryption  Stage = "encryption"
	StageCertificate Stage = "certificate"
	StageProtocol    Stage = "IMAP"
	StageToken       Stage = "access token"
	StageLogin       Stage = "sign-in"
	StageFolder      Stage = "folder"
)

var stages = []Stage{StageName, StageConnection, StageEncryption, StageCertificate, StageProtocol, StageToken, StageLogin, StageFolder}

// StageError is an error of a stage. Its text is the stored status of a mailbox:
//
//	status = stage ": " cause
type StageError struct {
	Stage Stage
	Err   error
}

// Error returns the stage and the cause.
func (e *StageError) Error() string { return string(e.Stage) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// at returns err as an error of a stage, unless it is one already or nil.
func at(stage Stage, err error) error {
	if known := (*StageError)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return &StageError{stage, err}
}

// stageOf returns the stage of an error, or the default.
func stageOf(err error, otherwise Stage) Stage {
	if known := (*StageError)(nil); errors.As(err, &known) {
		return known.Stage
	}
	return otherwise
}

// dialStage returns the stage of an error of a dialer.
func dialStage(err error) Stage {
	if errors.Is(err, outbound.ErrLookup) {
		return StageName
	}
	return StageConnection
}

// handshakeStage returns the stage of a failed TLS handshake.
func handshakeStage(err error) Stage {
	if invalid := (*tls.CertificateVerificationError)(nil); errors.As(err, &invalid) {
		return StageCertificate
	}
	return StageEncryption
}

// StatusStage returns the stage of a stored status, false if it has none.
func StatusStage(status string) (Stage, bool) {
	name, _, _ := strings.Cut(status, ": ")
	return Stage(name), slices.Contains(stages, Stage(name))
}

// Explain returns what failed and what to do, and the field of the mailbox that it is about.
func (s Stage) Explain(method dmarcd.LoginMethod) (field, message string) {
	switch s {
	case StageName:
		return "host", "The name lookup failed: the DNS has no address for this server. Check the spelling of its name."
	case StageConnection:
		return "host", "The connection failed: nothing answers at this server and port. Check the name and the port (993 with TLS, 143 with STARTTLS), and that no firewall is in between."
	case StageEncryption:
		return "security", "The encryption failed: the server does not offer it in this way at this port. Use TLS with port 993, or STARTTLS with port 143."
	case StageCertificate:
		return "host", "The certificate of the server is not valid: it is expired, for another name, or not from a trusted authority. Enter the name that is in the certificate, or have it renewed."
	case StageProtocol:
		return "host", "The server answers, but not as an IMAP server. Check the port: 993 with TLS, 143 with STARTTLS."
	case StageToken:
		return "token_url", "The provider returned no access token. Check the token URL, the client and the scopes."
	case StageFolder:
		return "folder", "The sign-in succeeded, but there is no such folder, or it cannot be opened. Check its name; INBOX always exists."
	case StageLogin:
	}
	if method == dmarcd.LoginOAuth {
		return "refresh_token", "The sign-in failed: the server or the provider rejected it. Check the user name, the client and its secret; the refresh token may have expired."
	}
	return "password", "The sign-in failed: the server rejected the user name or the password. Check both; some providers require an app password or OAuth."
}
