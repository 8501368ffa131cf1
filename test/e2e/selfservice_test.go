package e2e_test

import (
	"crypto/sha256"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// me is the part of GET /me that tests compare.
type me struct {
	Team   struct{ Name string }
	Token  struct{ ID, Name, Scope string }
	Scopes []string
	Quotas map[string]struct {
		Limit *int64
		Used  int64
	}
	Server struct{ Version string }
}

// meOf returns what a token finds about itself.
func (s *server) meOf(token string) me {
	s.in.t.Helper()
	return readAs[me](s.in.t, s.send(request{method: http.MethodGet, path: "/me", token: token}))
}

func TestMe(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		in.do("team", "quota", "default", "domains=7")
		read := in.newToken("default", "--scope", "read", "--name", "dashboard")
		got := s.meOf(read)
		if got.Team.Name != "default" || got.Token.Name != "dashboard" || got.Token.Scope != "read" || len(got.Scopes) != 1 || got.Server.Version == "" {
			t.Errorf("got %+v, want the team default, the token dashboard that reads, and a version", got)
		}
		domains := got.Quotas["domains"]
		if domains.Limit == nil || *domains.Limit != 7 || domains.Used != 1 || got.Quotas["mailboxes"].Limit != nil || len(got.Quotas) != 5 {
			t.Errorf("got the quotas %+v, want 1 of 7 domains, and no limit of mailboxes", got.Quotas)
		}
		if written := s.meOf(in.token); len(written.Scopes) != 2 {
			t.Errorf("got the scopes %v, want read and write", written.Scopes)
		}
		// The last use may change between two requests.
		daemon.Eventually(t, answerLimit, "the answer is not modified", func() bool {
			return s.ifNoneMatch("/me", s.get("/me").header.Get("ETag")).status == http.StatusNotModified
		})
	})
}

// adminRequests returns the requests for which a token needs the scope admin. They change nothing
// for an id of nothing.
func adminRequests(id, token string) []request {
	mailbox := changing(http.MethodPost, "/mailboxes", token, `{"host":"imap.invalid","user":"dmarc"}`)
	mailbox.header["Idempotency-Key"] = "mailbox" // which is checked before the login
	return []request{
		changing(http.MethodGet, "/tokens", token, ""),
		changing(http.MethodPost, "/tokens", token, `{"scope":"read"}`),
		changing(http.MethodDelete, "/tokens/"+id, token, ""),
		changing(http.MethodGet, "/members", token, ""),
		changing(http.MethodPatch, "/members/"+strings.Replace(id, "tok_", "user_", 1), token, `{"role":"viewer"}`),
		changing(http.MethodDelete, "/members/"+strings.Replace(id, "tok_", "user_", 1), token, ""),
		changing(http.MethodGet, "/invitations", token, ""),
		changing(http.MethodPost, "/invitations", token, `{"email":"bob@example.com","role":"viewer"}`),
		changing(http.MethodDelete, "/invitations/none@example.com_1", token, ""),
		changing(http.MethodGet, "/mailboxes", token, ""),
		mailbox,
		changing(http.MethodDelete, "/mailboxes/"+strings.Replace(id, "tok_", "box_", 1), token, ""),
		changing(http.MethodGet, "/audit", token, ""),
		changing(http.MethodGet, "/retention", token, ""),
		changing(http.MethodPut, "/retention", token, `{"counters":30,"records":20,"originals":10}`),
	}
}

// TestAnswersOfAdministration causes the documented answers about tokens.
func TestAnswersOfAdministration(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		cast := newErrorFixture(in)
		admin := in.newToken("default", "--scope", "admin")
		want := func(r request, status int) answer {
			t.Helper()
			a := s.send(r)
			a.wantStatus(t, status)
			return a
		}
		for token, status := range map[string]int{
			"": http.StatusUnauthorized, cast.revoked: http.StatusUnauthorized,
			cast.denied: http.StatusForbidden, cast.read: http.StatusForbidden, cast.write: http.StatusForbidden,
		} {
			for _, r := range adminRequests("tok_1", token) {
				rejected := want(r, status)
				if header := rejected.header.Get("WWW-Authenticate"); status == http.StatusForbidden && token != cast.denied && !strings.Contains(header, `scope="admin"`) {
					t.Errorf("%s %s: got the header %q, want the scope admin", r.method, r.path, header)
				}
			}
		}
		for _, r := range adminRequests("tok_1", admin) {
			unknown := r
			unknown.path += "?unknown=1"
			want(unknown, http.StatusUnprocessableEntity)
			switch r.method {
			case http.MethodGet:
				// The last use of a token may change between two requests.
				daemon.Eventually(t, answerLimit, "the answer is not modified", func() bool {
					again := r
					again.header = map[string]string{"If-None-Match": want(r, http.StatusOK).header.Get("ETag")}
					return s.send(again).status == http.StatusNotModified
				})
			case http.MethodDelete:
				want(r, http.StatusNotFound)
			default:
				if r.method == http.MethodPatch {
					want(r, http.StatusNotFound)
				}
				for body, status := range map[string]int{"{": http.StatusBadRequest, tooLarge: http.StatusRequestEntityTooLarge, "[]": http.StatusUnprocessableEntity, `{"unknown":1}`: http.StatusUnprocessableEntity} {
					want(changing(r.method, r.path, admin, body), status)
				}
				r.header = map[string]string{"Content-Type": "text/plain"}
				want(r, http.StatusUnsupportedMediaType)
			}
		}
	})
}

// listedToken is an item of GET /tokens.
type listedToken struct {
	ID, Name, Scope, Secret string
	ExpiresAt               *string `json:"expires_at"`
	RevokedAt               *string `json:"revoked_at"`
}

func TestTokensOverTheAPI(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		in.do("team", "create", "other", "--api")
		admin, other := in.newToken("default", "--scope", "admin", "--expires", "48h"), in.newToken("other", "--scope", "admin")
		tokens := func(token string) []listedToken {
			return readAs[page[listedToken]](t, s.send(changing(http.MethodGet, "/tokens", token, ""))).Items
		}
		create := func(body string, status int) listedToken {
			t.Helper()
			a := s.send(changing(http.MethodPost, "/tokens", admin, body))
			a.wantStatus(t, status)
			var created listedToken
			musttest.Do(t, json.Unmarshal(a.body, &created))
			in.remember(created.Secret)
			return created
		}
		in24, in72 := time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(72*time.Hour).UTC().Format(time.RFC3339)
		before := len(tokens(admin))
		for _, body := range []string{
			`{"scope":"read"}`, `{"scope":"read","expires_at":null}`, `{"scope":"admin","expires_at":"` + in72 + `"}`, // longer than its creator
			`{"scope":"owner","expires_at":"` + in24 + `"}`, `{"expires_at":"` + in24 + `"}`, `{"scope":null}`, `{"scope":["admin"]}`,
			`{"scope":"read","expires_at":"` + in24 + `","networks":["192.0.2.0/33"]}`, `{"scope":"read","expires_at":"` + in24 + `","networks":"192.0.2.1"}`,
			`{"scope":"read","expires_at":"2001-01-01T00:00:00Z"}`, `{"scope":"read","expires_at":"tomorrow"}`,
			`{"scope":"read","expires_at":"` + in24 + `","name":"` + strings.Repeat("x", 101) + `"}`,
		} {
			create(body, http.StatusUnprocessableEntity)
		}
		if got := len(tokens(admin)); got != before {
			t.Fatalf("got %d tokens after errors, want %d", got, before)
		}

		created := create(`{"name":"ci","scope":"write","expires_at":"`+in24+`"}`, http.StatusCreated)
		s.send(adding(created.Secret, "example.com")).wantStatus(t, http.StatusCreated)
		s.send(changing(http.MethodPost, "/tokens", created.Secret, `{"scope":"read"}`)).wantStatus(t, http.StatusForbidden)
		listed := tokens(admin)
		if at := slices.IndexFunc(listed, func(l listedToken) bool { return l.ID == created.ID }); at < 0 || listed[at].Name != "ci" || listed[at].ExpiresAt == nil || listed[at].Secret != "" {
			t.Errorf("got the tokens %+v, want the new one without its secret", listed)
		}
		if slices.ContainsFunc(tokens(other), func(l listedToken) bool { return l.ID == created.ID }) {
			t.Error("another team sees the token")
		}
		revoke := func(token, id string) answer {
			return s.send(changing(http.MethodDelete, "/tokens/"+id, token, ""))
		}
		revoke(other, created.ID).wantStatus(t, http.StatusNotFound)
		revoke(created.Secret, created.ID).wantStatus(t, http.StatusForbidden)
		for range 2 { // it has no effect again
			revoke(admin, created.ID).wantStatus(t, http.StatusNoContent)
		}
		s.soon("the token is revoked", created.Secret, http.StatusUnauthorized)

		elsewhere := create(`{"scope":"read","expires_at":"`+in24+`","networks":["192.0.2.0/24","2001:db8::1"]}`, http.StatusCreated)
		rejected := s.send(changing(http.MethodGet, "/domains", elsewhere.Secret, ""))
		if rejected.wantStatus(t, http.StatusForbidden); rejected.header.Get("Dmarcd-Error") != "address_not_allowed" {
			t.Errorf("got the code %q for an address outside of the networks", rejected.header.Get("Dmarcd-Error"))
		}
		here := create(`{"scope":"read","expires_at":"`+in24+`","networks":["127.0.0.0/8"]}`, http.StatusCreated)
		s.send(changing(http.MethodGet, "/domains", here.Secret, "")).wantStatus(t, http.StatusOK)

		// A token may revoke itself.
		child := create(`{"scope":"admin","expires_at":"`+in24+`"}`, http.StatusCreated)
		revoke(child.Secret, child.ID).wantStatus(t, http.StatusNoContent)
		s.soon("the token has revoked itself", child.Secret, http.StatusUnauthorized)
	})
}

// TestIdempotencyKeysInUse sends every POST that takes a key while another request with it is under
// way.
func TestIdempotencyKeysInUse(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		admin := in.newToken("default", "--scope", "admin")
		database := in.db.Open(t, store.Options{})
		team := musttest.Get(database.TeamByName(t.Context(), "default"))(t)
		_, _, err := service.New(database, service.Options{}).Team(team.ID, service.CommandLine()).ClaimKey(t.Context(), "under way")
		musttest.Do(t, err)
		document := readAs[struct {
			Paths map[string]map[string]json.RawMessage
		}](t, s.send(request{method: http.MethodGet, path: "/openapi.json"}))
		sent := 0
		for path, operations := range document.Paths {
			operation, ok := operations["post"]
			if !ok || !strings.Contains(string(operation), "/IdempotencyKey") {
				continue
			}
			path = strings.NewReplacer("{domain}", "example.com", "{delivery}", "dlv_1").Replace(path)
			switch {
			case strings.Contains(path, "/webhooks/"):
				path = strings.Replace(path, "{id}", "whk_1", 1)
			case strings.Contains(path, "/rejected/"):
				path = strings.Replace(path, "{id}", "rej_1", 1)
			default:
				path = strings.Replace(path, "{id}", "1", 1)
			}
			a := s.send(request{method: http.MethodPost, path: path, token: admin, body: "{}", header: map[string]string{"Content-Type": "application/json", "Idempotency-Key": "under way"}})
			a.wantStatus(t, http.StatusConflict)
			if code := a.header.Get("Dmarcd-Error"); code != "key_in_use" {
				t.Errorf("%s: got the code %q, want key_in_use", path, code)
			}
			sent++
		}
		if sent < 11 {
			t.Errorf("%d operations take a key, want at least 11", sent)
		}
	})
}

func TestAuditAndRetentionOverTheAPI(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		in.do("team", "create", "other", "--api")
		admin, other := in.newToken("default", "--scope", "admin"), in.newToken("other", "--scope", "admin")
		get := func(token, path string) answer {
			return s.send(changing(http.MethodGet, path, token, ""))
		}
		type retention struct{ Counters, Records, Originals int }
		want := retention{30, 20, 10}
		set := s.send(changing(http.MethodPut, "/retention", admin, `{"counters":30,"records":20,"originals":10}`))
		if got := readAs[retention](t, set); got != want {
			t.Errorf("got %+v want %+v", got, want)
		}
		if got := readAs[retention](t, get(admin, "/retention")); got != want {
			t.Errorf("got %+v want %+v", got, want)
		}
		if got := readAs[retention](t, get(other, "/retention")); got == want {
			t.Error("the retention of another team was changed")
		}
		for _, body := range []string{
			`{}`, `{"counters":30,"records":20}`, `{"counters":10,"records":20,"originals":10}`, `{"counters":-1,"records":0,"originals":0}`,
			`{"counters":0,"records":36526,"originals":0}`, `{"counters":0,"records":9223372036854775807,"originals":0}`, `{"counters":0,"records":1.5,"originals":0}`,
		} {
			s.send(changing(http.MethodPut, "/retention", admin, body)).wantStatus(t, http.StatusUnprocessableEntity)
		}
		s.add("example.com")
		type entry struct {
			ID, Actor, Action string
			Target            *string
		}
		first := readAs[page[entry]](t, get(admin, "/audit?limit=1"))
		if len(first.Items) != 1 || first.Items[0].Action != "domain.add" || *first.Items[0].Target != "example.com" || first.Next == nil {
			t.Fatalf("got %+v, want the new domain and a cursor", first)
		}
		second := readAs[page[entry]](t, get(admin, "/audit?limit=1&after="+*first.Next))
		if len(second.Items) != 1 || second.Items[0].Action != "retention.set" || !strings.HasPrefix(second.Items[0].Actor, "token tok_") {
			t.Errorf("got %+v, want the retention", second)
		}
		if got := readAs[page[entry]](t, get(admin, "/audit?from=2001-01-01&to=2001-01-31")); len(got.Items) != 0 {
			t.Errorf("got %+v, want nothing of 2001", got)
		}
		for _, e := range readAs[page[entry]](t, get(other, "/audit")).Items {
			if e.Action == "retention.set" || e.Action == "domain.add" {
				t.Errorf("another team sees %+v", e)
			}
		}
		for _, query := range []string{"limit=0", "after=x", "from=x", "from=2026-02-01&to=2026-01-01"} {
			get(admin, "/audit?"+query).wantStatus(t, http.StatusUnprocessableEntity)
		}
	})
}

func TestMailboxesOverTheAPI(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		mail := newMailStore(t)
		host, port, err := net.SplitHostPort(mail.address)
		musttest.Do(t, err)
		s := in.serve("DMARCD_OUTBOUND_ALLOW=127.0.0.0/8")
		in.do("team", "create", "other", "--api")
		admin, other := in.newToken("default", "--scope", "admin"), in.newToken("other", "--scope", "admin")
		body := func(password, rest string) string {
			return `{"host":"` + host + `","port":` + port + `,"security":"none","user":"` + mailboxUser + `","password":"` + password + `"` + rest + `}`
		}
		add := func(body string, status int) answer {
			t.Helper()
			a := s.send(changing(http.MethodPost, "/mailboxes", admin, body))
			a.wantStatus(t, status)
			if strings.Contains(a.text(), mailboxPassword) {
				t.Errorf("the answer has the password: %s", a.body)
			}
			return a
		}
		type rejection struct{ Field, Message string }
		for sent, field := range map[string]string{
			body("wrong", ""): "password", body(mailboxPassword, `,"folder":"Nowhere"`): "folder", body(mailboxPassword, `,"after":"move"`): "move_to",
			body(mailboxPassword, `,"oauth":{"token_url":"https://login.example/token","client_id":"x"}`):                        "password",
			`{"host":"` + host + `","user":"x","oauth":{"token_url":"https://login.example/token","client_id":"x","unknown":1}}`: "oauth",
			`{"host":"` + host + `","port":70000,"user":"x","password":"x"}`:                                                     "port", `{"user":"x","password":"x"}`: "host",
		} {
			var got rejection
			musttest.Do(t, json.Unmarshal(add(sent, http.StatusUnprocessableEntity).body, &got))
			if got.Field != field || got.Message == "" {
				t.Errorf("%s: got %+v, want an error of %s", sent, got, field)
			}
		}
		type mailbox struct{ ID, User string }
		var added mailbox
		musttest.Do(t, json.Unmarshal(add(body(mailboxPassword, ""), http.StatusCreated).body, &added))
		list := func(token string) answer { return s.send(changing(http.MethodGet, "/mailboxes", token, "")) }
		if got := readAs[page[mailbox]](t, list(admin)); len(got.Items) != 1 || got.Items[0] != added || strings.Contains(list(admin).text(), mailboxPassword) {
			t.Errorf("got %+v, want the mailbox %+v without its password", got, added)
		}
		if got := readAs[page[mailbox]](t, list(other)); len(got.Items) != 0 {
			t.Errorf("another team sees %+v", got)
		}
		remove := func(token string) answer {
			return s.send(changing(http.MethodDelete, "/mailboxes/"+added.ID, token, ""))
		}
		remove(other).wantStatus(t, http.StatusNotFound)
		remove(admin).wantStatus(t, http.StatusNoContent)
		remove(admin).wantStatus(t, http.StatusNotFound)
	})
}

func TestMembersOverTheAPI(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		in.do("team", "create", "other", "--api")
		admin, other := in.newToken("default", "--scope", "admin"), in.newToken("other", "--scope", "admin")
		database := in.db.Open(t, store.Options{})
		join := func(team, email string, role dmarcd.Role) dmarcd.User {
			link := sha256.Sum256([]byte(team + email))
			of := musttest.Get(database.TeamByName(t.Context(), team))(t)
			invitation := dmarcd.Invitation{Email: email, Team: of.ID, Role: role, ExpiresAt: time.Now().Add(time.Hour)}
			musttest.Do(t, database.CreateInvitation(t.Context(), link, invitation))
			return musttest.Get(database.UseInvitation(t.Context(), link, dmarcd.Claim{PasswordHash: "x"}))(t).User
		}
		ann, bob := join("default", "ann@example.com", dmarcd.RoleOwner), join("default", "bob@example.com", dmarcd.RoleViewer)
		theirs := join("other", "eve@example.com", dmarcd.RoleOwner)
		type member struct{ ID, Email, Role string }
		members := func(token string) (roles map[string]string) {
			roles = map[string]string{}
			for _, m := range readAs[page[member]](t, s.send(changing(http.MethodGet, "/members", token, ""))).Items {
				roles[m.Email] = m.Role
			}
			return roles
		}
		want := func(method, path, body string, status int) answer {
			t.Helper()
			a := s.send(changing(method, path, admin, body))
			a.wantStatus(t, status)
			return a
		}
		if got := readAs[member](t, want(http.MethodPatch, "/members/"+bob.ID.String(), `{"role":"editor"}`, http.StatusOK)); got != (member{bob.ID.String(), bob.Email, "editor"}) {
			t.Errorf("got %v, want bob as an editor", got)
		}
		want(http.MethodPatch, "/members/"+bob.ID.String(), `{"role":"owner"}`, http.StatusUnprocessableEntity)
		want(http.MethodPatch, "/members/"+bob.ID.String(), `{"role":"operator"}`, http.StatusUnprocessableEntity)
		want(http.MethodPatch, "/members/"+ann.ID.String(), `{"role":"viewer"}`, http.StatusUnprocessableEntity) // the last owner
		want(http.MethodDelete, "/members/"+ann.ID.String(), "", http.StatusUnprocessableEntity)
		want(http.MethodDelete, "/members/"+theirs.ID.String(), "", http.StatusNotFound)
		want(http.MethodPatch, "/members/"+theirs.ID.String(), `{"role":"viewer"}`, http.StatusNotFound)
		if diff := cmp.Diff(map[string]string{"ann@example.com": "owner", "bob@example.com": "editor"}, members(admin)); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"eve@example.com": "owner"}, members(other)); diff != "" {
			t.Errorf("members of another team (-want +got):\n%s", diff)
		}
		want(http.MethodDelete, "/members/"+bob.ID.String(), "", http.StatusNoContent)

		want(http.MethodPost, "/invitations", `{"email":"new@example.com","role":"owner"}`, http.StatusUnprocessableEntity)
		want(http.MethodPost, "/invitations", `{"email":"none","role":"viewer"}`, http.StatusUnprocessableEntity)
		type invitation struct{ Email, Role, Link string }
		invite := func(token, email string) {
			a := s.send(changing(http.MethodPost, "/invitations", token, `{"email":"`+email+`","role":"viewer"}`))
			a.wantStatus(t, http.StatusCreated)
			var sent invitation
			musttest.Do(t, json.Unmarshal(a.body, &sent))
			if sent.Link == "" {
				t.Errorf("got %s, want a link", a.body)
			}
		}
		open := func(token string) []invitation {
			return readAs[page[invitation]](t, s.send(changing(http.MethodGet, "/invitations", token, ""))).Items
		}
		invite(admin, "new@example.com")
		if got := open(admin); !slices.Contains(got, invitation{Email: "new@example.com", Role: "viewer"}) || len(open(other)) != 0 {
			t.Errorf("got %+v, want the invitation without its link, and none of another team", got)
		}
		s.send(changing(http.MethodDelete, "/invitations/new@example.com", other, "")).wantStatus(t, http.StatusNotFound)
		want(http.MethodDelete, "/invitations/new@example.com", "", http.StatusNoContent)
		want(http.MethodDelete, "/invitations/new@example.com", "", http.StatusNotFound)
	})
}
