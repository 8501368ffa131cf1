package auth

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/dmarcd/dmarcd"
)

// ChallengeLife is how long a challenge can be answered.
const ChallengeLife = 10 * time.Minute

// maxCredentialID limits the id that an authenticator chooses (Web Authentication §5.8.3), in bytes.
const maxCredentialID = 1023

// Passkeys makes challenges for passkeys and verifies the answers, by Web Authentication Level 3. It stores
// nothing, and is safe for concurrent use.
type Passkeys struct {
	party *webauthn.WebAuthn
	now   func() time.Time
}

// NewPasskeys returns the passkeys of the server at the base URL, nil where browsers have none: they need
// a host name and https, or localhost.
func NewPasskeys(baseURL string, now func() time.Time) *Passkeys {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil
	}
	host := base.Hostname()
	if host == "" || net.ParseIP(host) != nil || base.Scheme != "https" && host != "localhost" {
		return nil
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "dmarcd", RPOrigins: []string{base.Scheme + "://" + base.Host},
		// Some password managers add outputs that were not requested. None is used.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil // such as a host of one label
	}
	return &Passkeys{party: party, now: now}
}

// Challenge is what a browser is asked.
type Challenge struct {
	// Options are for navigator.credentials, in JSON: those with a user are to create a passkey.
	Options string
	// State is to verify the answer. It must be kept from scripts, and be sealed.
	State []byte
}

// challengeState is the state of a challenge.
type challengeState struct {
	Session webauthn.SessionData
	MadeAt  int64 // in nanoseconds
}

func (p *Passkeys) challenge(options any, session *webauthn.SessionData, err error) (Challenge, error) {
	var c Challenge
	if err != nil {
		return c, fmt.Errorf("make a challenge for a passkey: %w", err)
	}
	session.AllowedCredentialIDs = nil // those of the user are, when it is answered
	encoded, err := json.Marshal(options)
	if err == nil {
		c.Options = string(encoded)
		c.State, err = json.Marshal(challengeState{*session, p.now().UnixNano()})
	}
	return c, err
}

// state decodes a state. One that is too old is dmarcd.ErrUnauthorized.
func (p *Passkeys) state(encoded []byte) (session webauthn.SessionData, madeAt time.Time, err error) {
	var state challengeState
	if err := json.Unmarshal(encoded, &state); err != nil {
		return session, madeAt, fmt.Errorf("%w: decode the challenge: %w", dmarcd.ErrUnauthorized, err)
	}
	madeAt = time.Unix(0, state.MadeAt)
	if age := p.now().Sub(madeAt); age >= ChallengeLife {
		return session, madeAt, fmt.Errorf("%w: the challenge is %s old", dmarcd.ErrUnauthorized, age)
	}
	return state.Session, madeAt, nil
}

// Create returns the challenge to create a passkey of a user.
func (p *Passkeys) Create(of dmarcd.Factors) (Challenge, error) {
	user, err := newPasskeyUser(of)
	if err != nil {
		return Challenge{}, err
	}
	options, session, err := p.party.BeginRegistration(user,
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementPreferred, UserVerification: protocol.VerificationPreferred,
		}),
		webauthn.WithConveyancePreference(protocol.PreferNoAttestation),
		webauthn.WithExclusions(webauthn.Credentials(user.credentials).CredentialDescriptors()))
	return p.challenge(options, session, err)
}

// Created returns the passkey that answers a challenge of Create, without a name, and when that was made.
// Any other answer is dmarcd.ErrUnauthorized.
func (p *Passkeys) Created(of dmarcd.Factors, state []byte, answer string) (created dmarcd.Passkey, madeAt time.Time, err error) {
	session, madeAt, err := p.state(state)
	if err != nil {
		return created, madeAt, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return created, madeAt, wrongPasskey(err)
	}
	user, err := newPasskeyUser(of)
	if err != nil {
		return created, madeAt, err
	}
	credential, err := p.party.CreateCredential(user, session, parsed)
	if err != nil {
		return created, madeAt, wrongPasskey(err)
	}
	if len(credential.ID) > maxCredentialID {
		return created, madeAt, wrongPasskey(fmt.Errorf("an id of %d bytes", len(credential.ID)))
	}
	credential.Attestation = webauthn.CredentialAttestation{} // it was not requested
	created.Credential = credential.ID
	created.Record, err = json.Marshal(credential)
	return created, madeAt, err
}

// Ask returns a challenge for the passkeys of a user. verified requires that the authenticator verifies the user.
func (p *Passkeys) Ask(of dmarcd.Factors, verified bool) (Challenge, error) {
	user, err := newPasskeyUser(of)
	if err != nil {
		return Challenge{}, err
	}
	need := protocol.VerificationPreferred
	if verified {
		need = protocol.VerificationRequired
	}
	options, session, err := p.party.BeginLogin(user, webauthn.WithUserVerification(need))
	return p.challenge(options, session, err)
}

// AskAnybody returns a challenge for a passkey of any user, which must verify the user.
func (p *Passkeys) AskAnybody() (Challenge, error) {
	options, session, err := p.party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	return p.challenge(options, session, err)
}

// Assertion is the verified answer to a challenge.
type Assertion struct {
	User dmarcd.Factors
	// Passkey has its new record, to be stored.
	Passkey dmarcd.Passkey
	MadeAt  time.Time // the challenge
	// Copied means that the counter of signatures went back: there may be a copy of the passkey.
	Copied bool
}

// Answered verifies the answer to a challenge of Ask or AskAnybody. find returns the user with an id, who must be
// the one that was asked. Any other answer is dmarcd.ErrUnauthorized.
func (p *Passkeys) Answered(find func(dmarcd.UserID) (dmarcd.Factors, error), state []byte, answer string) (a Assertion, err error) {
	session, madeAt, err := p.state(state)
	if err != nil {
		return a, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if err != nil {
		return a, wrongPasskey(err)
	}
	asked := session.UserID
	if len(asked) == 0 {
		asked = parsed.Response.UserHandle
	}
	if len(asked) != userHandleBytes {
		return a, wrongPasskey(fmt.Errorf("a user handle of %d bytes", len(asked)))
	}
	a.MadeAt = madeAt
	if a.User, err = find(dmarcd.UserID(binary.BigEndian.Uint64(asked))); err != nil { //nolint:gosec // as it was encoded
		return a, err
	}
	user, err := newPasskeyUser(a.User)
	if err != nil {
		return a, err
	}
	var credential *webauthn.Credential
	if len(session.UserID) == 0 {
		_, credential, err = p.party.ValidatePasskeyLogin(func([]byte, []byte) (webauthn.User, error) { return user, nil }, session, parsed)
	} else {
		credential, err = p.party.ValidateLogin(user, session, parsed)
	}
	if err != nil {
		return a, wrongPasskey(err)
	}
	for _, known := range a.User.Passkeys {
		if string(known.Credential) == string(credential.ID) {
			a.Passkey = known
		}
	}
	a.Copied = credential.Authenticator.CloneWarning
	a.Passkey.Record, err = json.Marshal(credential)
	return a, err
}

// wrongPasskey is dmarcd.ErrUnauthorized with the reason, for the log.
func wrongPasskey(reason error) error {
	return fmt.Errorf("%w: verify a passkey: %w", dmarcd.ErrUnauthorized, reason)
}

// userHandleBytes is the length of the user handle, which is the id of the user: it means nothing elsewhere.
const userHandleBytes = 8

// passkeyUser is a user as the library sees it.
type passkeyUser struct {
	dmarcd.Factors

	credentials []webauthn.Credential
}

func newPasskeyUser(of dmarcd.Factors) (*passkeyUser, error) {
	user := &passkeyUser{Factors: of, credentials: make([]webauthn.Credential, len(of.Passkeys))}
	for i, p := range of.Passkeys {
		if err := json.Unmarshal(p.Record, &user.credentials[i]); err != nil {
			return nil, fmt.Errorf("decode passkey %s: %w", p.ID, err)
		}
	}
	return user, nil
}

// WebAuthnID implements webauthn.User, as the other methods.
func (u *passkeyUser) WebAuthnID() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(u.ID)) //nolint:gosec // not negative
}

func (u *passkeyUser) WebAuthnName() string                       { return u.Email }
func (u *passkeyUser) WebAuthnDisplayName() string                { return u.Email }
func (u *passkeyUser) WebAuthnCredentials() []webauthn.Credential { return u.credentials }
