package service_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/pquerna/otp/totp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// authenticator is a software authenticator with one passkey, in the browser of a page of origin.
type authenticator struct {
	t       testing.TB
	origin  string
	key     *ecdsa.PrivateKey
	id      []byte
	user    string // the user handle, in base64
	counter uint32
	// verifies is whether it verifies its user.
	verifies bool
}

func newAuthenticator(t testing.TB) *authenticator {
	t.Helper()
	key := musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return &authenticator{t: t, origin: "https://dmarc.example", key: key, id: []byte(rand.Text()), verifies: true}
}

var encode = base64.RawURLEncoding.EncodeToString

// options are those that a browser needs of a challenge.
type options struct {
	PublicKey struct {
		Challenge, RPID  string
		UserVerification string
		User             struct{ ID string }
	}
}

// data returns the client data and the authenticator data for a challenge.
func (a *authenticator) data(kind, challenge string, flags byte) (client, data []byte) {
	a.t.Helper()
	client = musttest.Get(json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false}))(a.t)
	party := sha256.Sum256([]byte("dmarc.example"))
	flags |= 1 // the user is present
	if a.verifies {
		flags |= 4
	}
	return client, binary.BigEndian.AppendUint32(append(party[:], flags), a.counter)
}

func (a *authenticator) asked(c service.Challenge) (o options) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		a.t.Fatalf("read the options %q: %v", c.Options, err)
	}
	return o
}

func (a *authenticator) answer(c service.Challenge, response map[string]any) service.PasskeyAnswer {
	a.t.Helper()
	text := musttest.Get(json.Marshal(map[string]any{
		"id": encode(a.id), "rawId": encode(a.id), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{},
	}))(a.t)
	return service.PasskeyAnswer{State: c.State, Answer: string(text)}
}

// create answers a challenge to create a passkey.
func (a *authenticator) create(c service.Challenge) service.PasskeyAnswer {
	a.t.Helper()
	asked := a.asked(c)
	a.user = asked.PublicKey.User.ID
	client, data := a.data("webauthn.create", asked.PublicKey.Challenge, 0x40)
	public := musttest.Get(a.key.PublicKey.Bytes())(a.t)
	cose := musttest.Get(webauthncbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: public[1:33], -3: public[33:]}))(a.t)
	data = binary.BigEndian.AppendUint16(append(data, make([]byte, 16)...), uint16(len(a.id)))
	data = slices.Concat(data, a.id, cose)
	object := musttest.Get(webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data}))(a.t)
	return a.answer(c, map[string]any{"clientDataJSON": encode(client), "attestationObject": encode(object)})
}

// get answers a challenge with the passkey.
func (a *authenticator) get(c service.Challenge) service.PasskeyAnswer {
	a.t.Helper()
	a.counter++
	client, data := a.data("webauthn.get", a.asked(c).PublicKey.Challenge, 0)
	hash := sha256.Sum256(client)
	signed := sha256.Sum256(append(slices.Clone(data), hash[:]...))
	signature := musttest.Get(ecdsa.SignASN1(rand.Reader, a.key, signed[:]))(a.t)
	return a.answer(c, map[string]any{
		"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": a.user,
	})
}

// withPasskey has a user add a passkey.
func (w *world) withPasskey(account *service.Account) (a *authenticator, recovery []string) {
	w.Helper()
	a = newAuthenticator(w)
	recovery = musttest.Get(account.AddPasskey(ctx, "Phone", a.create(musttest.Get(account.NewPasskey(ctx))(w))))(w)
	return a, recovery
}

// boundSecrets are plain, but bound to their context.
type boundSecrets struct{ plainSecrets }

func (boundSecrets) Seal(plain []byte, context string) ([]byte, error) {
	return append([]byte(context+"\x00"), plain...), nil
}

func (boundSecrets) Open(sealed []byte, context string) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, []byte(context+"\x00"))
	if !ok {
		return nil, errors.New("another context")
	}
	return plain, nil
}

// at has the service use a clock that a test sets.
func (w *world) at(now *time.Time) {
	w.options.Now, w.options.Secrets = func() time.Time { return *now }, boundSecrets{}
	w.service = service.New(w.store, w.options)
}

// TestPasskeys adds passkeys, signs in with them, and proves with them.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		now := time.Now()
		w.at(&now)
		client, other := w.signIn("cy@example.com")
		account := musttest.Get(w.service.Account(ctx, client))(t)
		passkey, recovery := w.withPasskey(account)
		if len(recovery) != 10 {
			t.Errorf("got %d recovery codes, want ten with the first factor", len(recovery))
		}
		if _, err := w.service.Account(ctx, other); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("another session: got %v, want it ended", err)
		}
		now = now.Add(time.Second) // challenges of the same moment are one
		second, none := w.withPasskey(account)
		if factors := musttest.Get(account.Factors(ctx))(t); !factors.SecondFactor || len(factors.Passkeys) != 2 || factors.Passkeys[0].Name != "Phone" || factors.RecoveryCodes != 10 || len(none) != 0 {
			t.Errorf("got %+v and the codes %q, want two passkeys and the codes as before", factors, none)
		}
		ask := func() service.Challenge {
			now = now.Add(time.Second)
			return musttest.Get(w.service.PasskeySignIn())(t)
		}
		signIn := func(what string, answer service.PasskeyAnswer, want error) {
			t.Helper()
			session, err := w.service.SignInWithPasskey(ctx, answer, service.Client{Address: "192.0.2.9"})
			if !errors.Is(err, want) || (session != "") != (want == nil) {
				t.Errorf("%s: got the session %q and %v, want %v", what, session, err, want)
			}
		}
		earlier, challenge := ask(), ask()
		answer := passkey.get(challenge)
		signIn("a passkey", answer, nil)
		signIn("the same answer", answer, dmarcd.ErrUnauthorized)
		signIn("another answer to the used challenge", passkey.get(challenge), dmarcd.ErrUnauthorized)
		signIn("an earlier challenge than the used one", passkey.get(earlier), dmarcd.ErrUnauthorized)
		signIn("another passkey", second.get(ask()), nil)
		signIn("no answer", service.PasskeyAnswer{State: ask().State, Answer: "{}"}, dmarcd.ErrUnauthorized)
		signIn("no challenge", service.PasskeyAnswer{Answer: answer.Answer}, dmarcd.ErrUnauthorized)
		signIn("an answer to another challenge", service.PasskeyAnswer{State: ask().State, Answer: passkey.get(ask()).Answer}, dmarcd.ErrUnauthorized)
		signIn("a challenge to prove", passkey.get(musttest.Get(account.AskPasskey(musttest.Get(account.Factors(ctx))(t)))(t)), dmarcd.ErrUnauthorized)
		signIn("a passkey that is not stored", newAuthenticator(t).get(ask()), dmarcd.ErrUnauthorized)
		elsewhere := *passkey
		elsewhere.origin = "https://dmarc.example.net"
		signIn("a page of another site", elsewhere.get(ask()), dmarcd.ErrUnauthorized)
		unverified := *passkey
		unverified.verifies = false
		signIn("without verification of the user", unverified.get(ask()), dmarcd.ErrUnauthorized)
		late := ask()
		now = now.Add(10 * time.Minute)
		signIn("too late", passkey.get(late), dmarcd.ErrUnauthorized)

		w.copiedPasskey(passkey, ask)
		concurrent := passkey.get(ask())
		if passed := w.atOnce(func() error {
			return errorOf(w.service.SignInWithPasskey(ctx, concurrent, service.Client{Address: "192.0.2.10"}))
		}); passed != 1 {
			t.Errorf("one answer at the same moment: got %d sessions, want one", passed)
		}
		w.passkeyAsSecondFactor(account, passkey, unverified, recovery, &now)

		unknown := newAuthenticator(t)
		unknown.user = passkey.user
		signIn("a passkey with the handle of a user", unknown.get(ask()), dmarcd.ErrUnauthorized)
		factors := musttest.Get(account.Factors(ctx))(t)
		for _, p := range factors.Passkeys {
			w.must(account.RemovePasskey(ctx, p.ID))
		}
		signIn("a removed passkey", passkey.get(ask()), dmarcd.ErrUnauthorized)
		if factors = musttest.Get(account.Factors(ctx))(t); factors.SecondFactor || factors.RecoveryCodes != 0 {
			t.Errorf("without passkeys: got %+v, want no factor", factors)
		}
		now = now.Add(time.Second)
		passkey, _ = w.withPasskey(account)
		w.must(w.service.System(service.CommandLine()).ResetSecondFactor(ctx, account.User))
		now = now.Add(time.Hour)
		signIn("after the reset", passkey.get(ask()), dmarcd.ErrUnauthorized)
		musttest.Get(w.service.SignIn(ctx, "cy@example.com", oldPassword, client))(t)
	})
}

// copiedPasskey signs in with a passkey whose counter went back.
func (w *world) copiedPasskey(of *authenticator, ask func() service.Challenge) {
	w.Helper()
	of.counter += 10
	musttest.Get(w.service.SignInWithPasskey(ctx, of.get(ask()), service.Client{Address: "192.0.2.10"}))(w)
	copied := *of
	copied.counter -= 5
	_, err := w.service.SignInWithPasskey(ctx, copied.get(ask()), service.Client{Address: "192.0.2.10"})
	noted := slices.ContainsFunc(w.entries(), func(e dmarcd.AuditEntry) bool {
		return e.Action == "user.passkey_copied" && e.Target == "cy@example.com" && e.Detail == "Phone"
	})
	if !errors.Is(err, dmarcd.ErrUnauthorized) || !noted {
		w.Errorf("a copy: got %v, noted %t; want it refused with an entry", err, noted)
	}
}

// passkeyAsSecondFactor signs in with a password and a passkey, and proves with the passkey.
func (w *world) passkeyAsSecondFactor(account *service.Account, passkey *authenticator, unverified authenticator, recovery []string, now *time.Time) {
	w.Helper()
	*now = now.Add(2 * time.Hour) // throttles forget
	state := w.step("cy@example.com")
	step := func() service.Challenge {
		*now = now.Add(time.Second)
		return musttest.Get(w.service.SecondStepPasskey(musttest.Get(w.service.FirstStep(ctx, state))(w)))(w)
	}
	finish := func(what string, proof service.Proof, want error) {
		w.Helper()
		if _, err := w.service.FinishSignIn(ctx, state, proof, service.Client{Address: "192.0.2.9"}); !errors.Is(err, want) {
			w.Errorf("the second step, %s: got %v, want %v", what, err, want)
		}
	}
	unverified.counter = passkey.counter
	answer := unverified.get(step()) // after the password that is enough
	finish("a passkey", service.Proof{Passkey: answer}, nil)
	finish("the same answer", service.Proof{Passkey: answer}, dmarcd.ErrUnauthorized)
	passkey.counter = unverified.counter
	finish("a challenge to sign in", service.Proof{Passkey: passkey.get(musttest.Get(w.service.PasskeySignIn())(w))}, dmarcd.ErrUnauthorized)
	finish("a recovery code", service.Proof{Code: recovery[0]}, nil)

	*now = now.Add(time.Second)
	ask := func() service.Challenge {
		return musttest.Get(account.AskPasskey(musttest.Get(account.Factors(ctx))(w)))(w)
	}
	w.must(account.Prove(ctx, service.Proof{Passkey: passkey.get(ask())}))
	proved := func(e dmarcd.AuditEntry) bool { return e.Action == "user.proved" && e.Detail == "passkey" }
	if !slices.ContainsFunc(w.entries(), proved) {
		w.Error("a proof by a passkey: got no audit entry")
	}
	another, _ := w.signIn("di@example.com")
	theirs := musttest.Get(w.service.Account(ctx, another))(w)
	if err := theirs.Prove(ctx, service.Proof{Passkey: passkey.get(ask())}); !errors.Is(err, dmarcd.ErrUnauthorized) {
		w.Errorf("the passkey and the challenge of another user: got %v, want ErrUnauthorized", err)
	}
	if err := theirs.RemovePasskey(ctx, musttest.Get(account.Factors(ctx))(w).Passkeys[0].ID); !errors.Is(err, dmarcd.ErrNotFound) {
		w.Errorf("removing the passkey of another user: got %v, want ErrNotFound", err)
	}
	*now = now.Add(time.Second)
	mine := newAuthenticator(w)
	foreign := mine.create(musttest.Get(account.NewPasskey(ctx))(w))
	if err := errorOf(theirs.AddPasskey(ctx, "", foreign)); !errors.Is(err, dmarcd.ErrInvalid) {
		w.Errorf("adding with a challenge of another session: got %v, want ErrInvalid", err)
	}
	w.must(errorOf(account.AddPasskey(ctx, "Key", foreign)))
	if err := errorOf(account.AddPasskey(ctx, "Key", foreign)); !errors.Is(err, dmarcd.ErrInvalid) {
		w.Errorf("adding with a used challenge: got %v, want ErrInvalid", err)
	}
}

// atOnce calls something ten times at the same moment, and returns how often it succeeded.
func (w *world) atOnce(call func() error) (passed int) {
	w.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	start := make(chan struct{})
	for range 10 {
		group.Go(func() {
			<-start
			if err := call(); err == nil {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
		})
	}
	close(start)
	group.Wait()
	return passed
}

// TestCodeWorksOnceAtTheSameMoment uses one code in several requests at once.
func TestCodeWorksOnceAtTheSameMoment(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		now := time.Now().Truncate(30 * time.Second)
		w.at(&now)
		client, _ := w.signIn("cy@example.com")
		secret, recovery := w.enrolled(musttest.Get(w.service.Account(ctx, client))(t), now)
		now = now.Add(5 * time.Minute)
		state := w.step("cy@example.com")
		for name, code := range map[string]string{"of the app": musttest.Get(totp.GenerateCode(secret, now))(t), "recovery": recovery[0]} {
			// A throttle of its own for each: five attempts of an account are free.
			passed := w.atOnce(func() error {
				replica := service.New(w.store, w.options)
				return errorOf(replica.FinishSignIn(ctx, state, service.Proof{Code: code}, service.Client{Address: "192.0.2.9"}))
			})
			if passed != 1 {
				t.Errorf("a code %s ten times at once: got %d sessions, want one", name, passed)
			}
		}
	})
}

// TestGuessesAreThrottled guesses codes, recovery codes and passkeys from one address, one /64 and one /48.
func TestGuessesAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	now := time.Now()
	w.at(&now)
	client, _ := w.signIn("cy@example.com")
	w.enrolled(musttest.Get(w.service.Account(ctx, client))(t), now)
	state := w.step("cy@example.com")
	guesses := map[string]func(address string) error{
		"code": func(address string) error {
			return errorOf(w.service.FinishSignIn(ctx, state, service.Proof{Code: "000000"}, service.Client{Address: address}))
		},
		"recovery code": func(address string) error {
			return errorOf(w.service.FinishSignIn(ctx, state, service.Proof{Code: "AAAA-AAAA-AAAA-AAAA"}, service.Client{Address: address}))
		},
		"passkey": func(address string) error {
			return errorOf(w.service.SignInWithPasskey(ctx, service.PasskeyAnswer{Answer: "{}"}, service.Client{Address: address}))
		},
	}
	for name, guess := range guesses {
		for network, free := range map[string]int{"/128": 20, "/64": 20, "/48": 100} {
			w.at(&now) // forgets
			limited := 0
			for n := range free + 1 {
				address := map[string]string{"/128": "2001:db8::1", "/64": "2001:db8::" + hex16(n), "/48": "2001:db8:0:" + hex16(n) + "::1"}[network]
				if errors.Is(guess(address), dmarcd.ErrLimit) {
					limited++
				}
			}
			if limited == 0 || name == "passkey" && limited != 1 {
				t.Errorf("%s: got %d of %d guesses from a %s throttled", name, limited, free+1, network)
			}
		}
	}
}

func hex16(n int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[n>>4&15], digits[n&15]})
}

// TestPasskeysNeedAHost checks where passkeys can be used.
func TestPasskeysNeedAHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for base, want := range map[string]bool{
		"https://dmarc.example/api": true, "https://dmarc.example:8443": true, "http://localhost:8080/api": true,
		"http://dmarc.example/api": false, "https://192.0.2.1/api": false, "http://127.0.0.1:8080/api": false, "https://[2001:db8::1]/api": false, "": false,
	} {
		w.options.BaseURL = base
		s := service.New(w.store, w.options)
		if challenge, err := s.PasskeySignIn(); err != nil || s.HasPasskeys() != want || (challenge.Options != "") != want {
			t.Errorf("%q: got %t and %+v, %v; want %t", base, s.HasPasskeys(), challenge, err, want)
		}
	}
}

// TestFactorNotices tells a user of each change of their second factor by mail.
func TestFactorNotices(t *testing.T) {
	t.Parallel()
	const cy, subject = "cy@example.com", "Your second factor for dmarcd was changed"
	w := newWorld(t, storetest.SQLite(t))
	s, mail := w.mailing()
	w.service = s
	client, _ := w.signIn(cy)
	account := musttest.Get(s.Account(ctx, client))(t)
	w.posted(s, mail)
	changes := []func() error{
		func() error { w.enrolled(account, time.Now()); return nil },
		func() error { return errorOf(account.RenewRecoveryCodes(ctx)) },
		func() error { w.withPasskey(account); return nil },
		func() error {
			return account.RemovePasskey(ctx, musttest.Get(account.Factors(ctx))(t).Passkeys[0].ID)
		},
		func() error { return account.RemoveAuthenticator(ctx) },
		func() error { w.enrolled(account, time.Now().Add(-30*time.Second)); return nil },
		func() error { return s.System(service.CommandLine()).ResetSecondFactor(ctx, account.User) },
	}
	for n, change := range changes {
		w.must(change())
		if sent := w.posted(s, mail); len(sent) != 1 || sent[0].to != cy || sent[0].team != subject {
			t.Errorf("change %d: got the letters %+v, want one", n, sent)
		}
	}
	if err := account.RemoveAuthenticator(ctx); err == nil || len(w.posted(s, mail)) != 0 {
		t.Errorf("a failed change: got %v and the letters %+v, want none", err, mail.sent)
	}
}
