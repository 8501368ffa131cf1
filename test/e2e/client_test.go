package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// answerLimit is longer than any documented limit, also on a busy machine, so that a late answer is
// reported as late.
const answerLimit = 10 * time.Minute

// verifyPattern matches the path of the verify endpoint, which has its own error body.
var verifyPattern = regexp.MustCompile(`^/domains/[^/]+/verify(\?.*)?$`)

type request struct {
	method string
	path   string // below the prefix, escaped as on the wire
	token  string // "" sends no Authorization header
	body   string
	header map[string]string
	// chunked sends the body without a Content-Length.
	chunked bool
	// undocumented skips the comparison with the OpenAPI document, which has no
	// preflights.
	undocumented bool
}

type answer struct {
	to     string // the request
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

func (a answer) text() string { return string(a.body) }

// jsonType is the header of a request with a JSON body.
func jsonType() map[string]string { return map[string]string{"Content-Type": "application/json"} }

// send sends a request. It fails the test without an answer, or if the answer breaks a
// rule for all answers.
func (s *server) send(r request) answer {
	s.in.t.Helper()
	return musttest.Get(s.try(r))(s.in.t)
}

// try is send for requests that may remain unanswered; then it returns an error. It may
// be called from any goroutine.
func (s *server) try(r request) (answer, error) {
	s.in.t.Helper()
	s.in.remember(r.token)
	sent, a, err := s.exchange(r)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if err := s.breaches(sent, r, a); err != nil {
		s.in.t.Errorf("%s %s: %d %s\n%v", r.method, r.path, a.status, a.body, err)
	}
	return a, nil
}

func (s *server) exchange(r request) (*http.Request, answer, error) {
	var body io.Reader = http.NoBody
	if r.body != "" {
		body = strings.NewReader(r.body)
		if r.chunked {
			body = io.MultiReader(body) // hides the length from the client
		}
	}
	sent, err := http.NewRequestWithContext(context.Background(), r.method, "http://"+s.HTTP+s.prefix+r.path, body)
	if err != nil {
		return nil, answer{}, err
	}
	if r.token != "" {
		sent.Header.Set("Authorization", "Bearer "+r.token)
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	began := time.Now()
	received, err := s.client.Do(sent)
	if err != nil {
		return nil, answer{}, err
	}
	defer func() { _ = received.Body.Close() }() // read to the end
	content, err := io.ReadAll(received.Body)
	if err != nil {
		return nil, answer{}, err
	}
	to := fmt.Sprintf("%s %s %.100s", r.method, r.path, r.body)
	return sent, answer{to: to, status: received.StatusCode, header: received.Header, body: content, took: time.Since(began)}, nil
}

// outside requests a path outside the prefix.
func (s *server) outside(path string) answer {
	s.in.t.Helper()
	received, err := s.client.Get("http://" + s.HTTP + path)
	musttest.Do(s.in.t, err)
	defer func() { _ = received.Body.Close() }() // read to the end
	content := musttest.Get(io.ReadAll(received.Body))(s.in.t)
	return answer{to: path, status: received.StatusCode, header: received.Header, body: content}
}

// breaches returns the rules for all answers that this one breaks.
func (s *server) breaches(sent *http.Request, r request, a answer) error {
	var broken []error
	breach := func(format string, values ...any) { broken = append(broken, fmt.Errorf(format, values...)) }
	if !r.undocumented {
		if err := s.validator.Check(sent, a.status, a.header, a.body); err != nil {
			broken = append(broken, err)
		}
	}
	if a.header.Get("X-Request-Id") == "" {
		breach("no X-Request-Id")
	}
	if a.status >= 300 && a.status < 400 && a.status != http.StatusNotModified {
		breach("got a redirect, want none")
	}
	public := publicPattern.MatchString(r.path)
	// Without the database, the owner of the token is unknown.
	tokenKnown := a.status != http.StatusUnauthorized && a.status != http.StatusServiceUnavailable
	if !public && !s.unlimited && tokenKnown && !r.undocumented {
		for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
			if a.header.Get(name) == "" {
				breach("no %s", name)
			}
		}
	}
	// Originals are untrusted content.
	original := strings.HasSuffix(r.path, "/original") && a.status == http.StatusOK
	streamed := strings.HasPrefix(r.path, "/insights/records") && a.status == http.StatusOK
	if got := a.header.Get("Content-Type"); streamed && got != "application/x-ndjson" {
		breach("Content-Type: got %q want application/x-ndjson", got)
	}
	if len(a.body) > 0 && r.path != "/docs" && !original && !streamed {
		if got := a.header.Get("Content-Type"); got != "application/json" {
			breach("Content-Type: got %q want application/json", got)
		}
		if a.header.Get("Content-Encoding") == "" && (!utf8.Valid(a.body) || !json.Valid(a.body)) {
			breach("the body is not JSON in UTF-8")
		}
	}
	if a.status >= 400 && r.method != http.MethodHead {
		verifies := r.method == http.MethodPost && verifyPattern.MatchString(r.path)
		addition := r.method == http.MethodPost && (strings.HasPrefix(r.path, "/reports") || strings.HasPrefix(r.path, "/domains/bulk")) || additionPattern.MatchString(r.path) || public
		if err := a.errorShape(verifies && a.status == http.StatusNotFound, addition); err != nil {
			broken = append(broken, err)
		}
		if !codePattern.MatchString(a.header.Get("Dmarcd-Error")) {
			breach("Dmarcd-Error: got %q want a code", a.header.Get("Dmarcd-Error"))
		}
	}
	if a.status == http.StatusUnauthorized {
		want := `Bearer realm="dmarcd"`
		if r.token != "" {
			want += `, error="invalid_token"`
		}
		if got := a.header.Get("WWW-Authenticate"); got != want {
			breach("WWW-Authenticate: got %q want %q", got, want)
		}
	}
	if lacks, got := a.header.Get("Dmarcd-Error") == "insufficient_scope", a.header.Get("WWW-Authenticate"); lacks != strings.Contains(got, `error="insufficient_scope", scope="`) {
		breach("WWW-Authenticate: got %q want the scope if, and only if, it is missing", got)
	}
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		if a.header.Get("Retry-After") == "" {
			breach("no Retry-After")
		}
	}
	if r.token != "" && (bytes.Contains(a.body, []byte(r.token)) || strings.Contains(fmt.Sprint(a.header), r.token)) {
		breach("the answer holds the token")
	}
	return errors.Join(broken...)
}

// codePattern matches the code of an error, additionPattern the paths of additions, whose
// errors also have the code in the body, and publicPattern those that need no token. Unknown paths
// have no endpoint.
var (
	publicPattern   = regexp.MustCompile(`^/(openapi\.json|docs)(\?|$)`)
	codePattern     = regexp.MustCompile(`^[a-z_]+$`)
	additionPattern = regexp.MustCompile(`^/(me$|me\?|tokens|members|invitations|mailboxes|audit|retention|events|changes|alerts|webhooks|insights/|senders|tags|search|domains/[^/]+/(checks|setup|selftest|senders|tags|questions|parked|purpose|forwarding|records|proposals|target))`)
)

// wantInvalid checks the errors of a 422 of an addition, whose first one is repeated at the top, and
// removes them.
func wantInvalid(members map[string]any) error {
	list, _ := members["errors"].([]any)
	if len(list) == 0 {
		return errors.New("error body: want errors")
	}
	first, _ := list[0].(map[string]any)
	for _, name := range []string{"message", "code", "field"} {
		if members[name] != first[name] {
			return fmt.Errorf("error body: got %s %v want that of the first error, %v", name, members[name], first[name])
		}
	}
	delete(members, "errors")
	delete(members, "field")
	return nil
}

// errorShape checks the error body: a message of one sentence, with a code on additions,
// or an error with a code on the verify endpoint.
func (a answer) errorShape(verify, addition bool) error {
	var members map[string]any
	if err := json.Unmarshal(a.body, &members); err != nil {
		return fmt.Errorf("error body: %w", err)
	}
	text, ok := members["message"].(string)
	if verify {
		text, ok = members["error"].(string)
	} else if code, coded := members["code"]; coded {
		if !addition || code != a.header.Get("Dmarcd-Error") {
			return fmt.Errorf("error body: got the code %v want none but that of the header, on an addition", code)
		}
		if a.status == http.StatusUnprocessableEntity {
			if err := wantInvalid(members); err != nil {
				return err
			}
		}
		delete(members, "code")
	} else if addition && a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
		return errors.New("error body: want a code")
	}
	switch {
	case !ok:
		return fmt.Errorf("error body: no sentence in %s", a.body)
	case verify && (members["code"] != "domain_not_found" || len(members) != 2):
		return errors.New("error body: want error and the code domain_not_found alone")
	case a.status == http.StatusUnprocessableEntity && members["items"] != nil:
		// The receipts of an upload are next to the message.
		if len(members) != 2 {
			return errors.New("error body: want message and items alone")
		}
	case !verify && len(members) != 1:
		return errors.New("error body: want message alone")
	case a.status == http.StatusUnauthorized && text != "Unauthorized":
		return fmt.Errorf("error body: got %q want Unauthorized", text)
	case a.status == http.StatusUnauthorized || a.status == http.StatusInternalServerError:
		return nil
	case !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1]:
		return fmt.Errorf("error body: %q is no full sentence", text)
	}
	return nil
}

func (a answer) wantStatus(t testing.TB, want int) {
	t.Helper()
	if a.status != want {
		t.Errorf("%s: got status %d want %d; the body: %s", a.to, a.status, want, a.body)
	}
}
