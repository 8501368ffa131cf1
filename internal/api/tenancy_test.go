package api_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// onlyTeam resolves every token to one token of one team, without a query.
type onlyTeam struct{ token dmarcd.Token }

func (n onlyTeam) Authenticate(_ context.Context, _, _ string) (dmarcd.Credential, error) {
	return dmarcd.Credential{Token: n.token, API: true}, nil
}

// tokenOf creates the token of a team.
func tokenOf(t *testing.T, s *store.Store, team dmarcd.TeamID) onlyTeam {
	t.Helper()
	token := store.NewToken{Scope: dmarcd.ScopeAdmin, Hash: sha256.Sum256([]byte(rand.Text()))}
	return onlyTeam{musttest.Get(s.Team(team).CreateToken(t.Context(), token))(t)}
}

// TestAnotherTeamsDomainIsNoDomain checks that a domain, a report and something
// rejected of another team answer like ones that do not exist, to the letter and to
// the number of queries, on every endpoint that names one. The lists of all are empty.
func TestAnotherTeamsDomainIsNoDomain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		victim, other := newTeam(t, s, "victim"), newTeam(t, s, "other")
		musttest.Get(s.Team(victim).AddDomain(t.Context(), "theirs.example", time.Time{}))(t)
		theirReport, theirRejected := victimised(t, s, victim)
		theirToken := tokenOf(t, s, victim).token.ID
		theirMember := memberOf(t, s, victim, "ann@theirs.example")
		musttest.Do(t, s.Team(victim).Invite(t.Context(), sha256.Sum256([]byte("theirs")), dmarcd.Invitation{Email: "theirs@theirs.example", Role: dmarcd.RoleViewer, CreatedBy: theirMember, ExpiresAt: time.Now().Add(time.Hour)}))
		theirMailbox := musttest.Get(s.Team(victim).AddMailbox(t.Context(), dmarcd.Mailbox{
			Host: "imap.example.com", Port: 993, Security: dmarcd.SecurityTLS, Username: "theirs", Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterKeep,
		}, func(dmarcd.Mailbox) ([]byte, error) { return []byte("sealed"), nil }))(t)
		zone := dnstest.New(`_dmarc.theirs.example TXT "v=DMARC1; p=reject"`)
		handler := newAPI(t, s, byWord{tokenOf(t, s, other)}, zone)
		musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
		musttest.Get(s.Team(victim).PublishRecord(t.Context(), "theirs.example", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject"}, nil))(t)

		ask := func(method, path string) (answer string, queries int64, questions int) {
			before, asked := s.Stats().Queries, len(zone.Asked())
			w := httptest.NewRecorder()
			body, word := `{"counted":false}`, "x"
			if strings.Contains(path, "/records/dmarc") {
				body, word = `{"base":1,"record":"v=DMARC1; p=none"}`, "publish"
			}
			if strings.HasSuffix(path, "/target") {
				body, word = `{"kind":"rfc2136","server":"ns1.example.com","key":"secret"}`, "publish"
			}
			r := httptest.NewRequest(method, "http://api.example"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+word)
			handler.ServeHTTP(w, r)
			answered, _ := io.ReadAll(w.Body)
			var headers []string
			for name := range w.Header() {
				headers = append(headers, name+": "+w.Header().Get(name))
			}
			slices.Sort(headers)
			return http.StatusText(w.Code) + "\n" + strings.Join(headers, "\n") + "\n" + string(answered), s.Stats().Queries - before, len(zone.Asked()) - asked
		}
		theirs := strings.NewReplacer("NAME", "theirs.example", "REPORT", theirReport.String(), "REJECTED", theirRejected.String(), "TOKEN", theirToken.String(), "MAILBOX", theirMailbox.ID.String(), "MEMBER", theirMember.String(), "INVITED", "theirs@theirs.example")
		unknown := strings.NewReplacer("NAME", "unknown.example", "REPORT", (theirReport + 1).String(), "REJECTED", (theirRejected + 1).String(), "TOKEN", (theirToken + 1).String(), "MAILBOX", (theirMailbox.ID + 1).String(), "MEMBER", (theirMember + 1).String(), "INVITED", "unknown@theirs.example")
		for _, operation := range []struct{ method, path string }{
			{"GET", "/api/domains/NAME"},
			{"HEAD", "/api/domains/NAME"},
			{"DELETE", "/api/domains/NAME"},
			{"POST", "/api/domains/NAME/verify"},
			{"GET", "/api/reports/NAME"},
			{"GET", "/api/reports/NAME?from=2026-01-01"},
			{"GET", "/api/domains/NAME/checks"},
			{"GET", "/api/domains/NAME/checks/latest"},
			{"GET", "/api/domains/NAME/setup"},
			{"POST", "/api/domains/NAME/selftest"},
			{"GET", "/api/domains/NAME/records"},
			{"GET", "/api/domains/NAME/records/dmarc/versions"},
			{"PUT", "/api/domains/NAME/records/dmarc"},
			{"DELETE", "/api/domains/NAME/records/dmarc"},
			{"GET", "/api/domains/NAME/proposals"},
			{"GET", "/api/domains/NAME/target"},
			{"PUT", "/api/domains/NAME/target"},
			{"DELETE", "/api/domains/NAME/target"},
			{"GET", "/api/events?domain=NAME"},
			{"GET", "/api/insights/domains"},
			{"GET", "/api/insights/domains?q=NAME"},
			{"GET", "/api/insights/reports"},
			{"GET", "/api/insights/reports?domain=NAME"},
			{"GET", "/api/insights/reports?unclaimed=true"},
			{"GET", "/api/insights/reports/REPORT"},
			{"HEAD", "/api/insights/reports/REPORT"},
			{"PATCH", "/api/insights/reports/REPORT"},
			{"DELETE", "/api/insights/reports/REPORT"},
			{"GET", "/api/insights/reports/REPORT/records"},
			{"GET", "/api/insights/reports/REPORT/original"},
			{"GET", "/api/insights/rejected"},
			{"DELETE", "/api/insights/rejected/REJECTED"},
			{"GET", "/api/insights/rejected/REJECTED/original"},
			{"POST", "/api/insights/rejected/REJECTED/retry"},
			{"GET", "/api/insights/daily"},
			{"GET", "/api/insights/daily?domain=NAME"},
			{"GET", "/api/insights/daily?by=domain"},
			{"GET", "/api/insights/senders"},
			{"GET", "/api/insights/senders?by=address&domain=NAME"},
			{"DELETE", "/api/tokens/TOKEN"},
			{"DELETE", "/api/mailboxes/MAILBOX"},
			{"DELETE", "/api/members/MEMBER"},
			{"GET", "/api/members"},
			{"DELETE", "/api/invitations/INVITED"},
			{"GET", "/api/invitations"},
			{"GET", "/api/mailboxes"},
			{"PUT", "/api/domains/NAME"},
			{"GET", "/api/domains/NAME/nothing"},
		} {
			name := operation.method + " " + operation.path
			ofThem, queries, questions := ask(operation.method, theirs.Replace(operation.path))
			ofUnknown, wantQueries, wantQuestions := ask(operation.method, unknown.Replace(operation.path))
			if ofThem != ofUnknown {
				t.Errorf("%s: another team's domain answers\n%s\none that does not exist\n%s", name, ofThem, ofUnknown)
			}
			if queries != wantQueries || questions != wantQuestions {
				t.Errorf("%s: another team's domain takes %d queries and %d DNS questions, one that does not exist %d and %d",
					name, queries, questions, wantQueries, wantQuestions)
			}
		}
		if _, err := s.Team(victim).Domain(t.Context(), "theirs.example"); err != nil {
			t.Errorf("the other team's domain suffered: %v", err)
		}
		if versions := musttest.Get(s.Team(victim).RecordVersions(t.Context(), "theirs.example"))(t); len(versions) != 1 {
			t.Errorf("the other team's record suffered: %+v", versions)
		}
		members, invitations := musttest.Get(s.Team(victim).Members(t.Context()))(t), musttest.Get(s.Team(victim).Invitations(t.Context()))(t)
		if len(members) != 1 || len(invitations) != 1 {
			t.Errorf("the other team's people suffered: %+v, %+v", members, invitations)
		}
		if mailboxes := musttest.Get(s.Team(victim).Mailboxes(t.Context()))(t); len(mailboxes) != 1 {
			t.Errorf("the other team's mailbox suffered: %+v", mailboxes)
		}
		if tokens := musttest.Get(s.Team(victim).Tokens(t.Context()))(t); slices.ContainsFunc(tokens, func(token dmarcd.Token) bool { return !token.RevokedAt.IsZero() }) {
			t.Errorf("the other team's tokens suffered: %+v", tokens)
		}
		if report, err := s.Team(victim).Report(t.Context(), theirReport); err != nil || report.State != dmarcd.ReportCounted {
			t.Errorf("the other team's report suffered: %s, %v", report.State, err)
		}
		if _, err := s.Team(victim).RejectedByID(t.Context(), theirRejected); err != nil {
			t.Errorf("what the other team rejected suffered: %v", err)
		}
	})
}

// victimised returns a team that received a report with records about its domain and an unclaimed
// name, and a rejected item.
func victimised(t *testing.T, s *store.Store, victim dmarcd.TeamID) (dmarcd.ReportID, dmarcd.RejectedID) {
	t.Helper()
	delivery := storetest.Delivery(storetest.Aggregate("1", "theirs.example", firstDay, storetest.Passed("theirs.example", 7)),
		storetest.Aggregate("2", "unclaimed.example", firstDay, storetest.Passed("unclaimed.example", 1)))
	delivery.Rejections = []dmarcd.Rejection{{Member: "note.txt", Reason: "This is text, not a report."}}
	receipts := musttest.Get(s.Team(victim).Receive(t.Context(), []*dmarcd.Delivery{delivery}))(t)
	rejected, err := s.Team(victim).Rejected(t.Context(), 0, 1)
	if err != nil || len(rejected) != 1 {
		t.Fatalf("got %v and error %v, want what was rejected", rejected, err)
	}
	return receipts[0][0].ID, rejected[0].ID
}

// memberOf returns a new owner of a team.
func memberOf(t *testing.T, s *store.Store, team dmarcd.TeamID, email string) dmarcd.UserID {
	t.Helper()
	link := sha256.Sum256([]byte(email))
	musttest.Do(t, s.CreateInvitation(t.Context(), link, dmarcd.Invitation{Email: email, Team: team, Role: dmarcd.RoleOwner, ExpiresAt: time.Now().Add(time.Hour)}))
	return musttest.Get(s.UseInvitation(t.Context(), link, dmarcd.Claim{PasswordHash: "x"}))(t).ID
}

func newTeam(t *testing.T, s *store.Store, name string) dmarcd.TeamID {
	t.Helper()
	team := storetest.Team(t, s, name)
	musttest.Get(s.Team(team.ID).CreateToken(t.Context(), store.NewToken{Scope: dmarcd.ScopeWrite, Hash: sha256.Sum256([]byte(name))}))(t)
	return team.ID
}

func newAPI(t *testing.T, s *store.Store, authenticator api.Authenticator, zone *dnstest.Zone) *api.API {
	t.Helper()
	options := newOptions(t, s, authenticator)
	options.Service = useCases(s, usecase.Options{Checker: newChecker(zone), Acceptor: options.Acceptor})
	return musttest.Get(api.New(options.Options))(t)
}
