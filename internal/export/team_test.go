package export_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// reportOf returns an aggregate report with two records of a domain.
func reportOf(id, domain string) string {
	record := func(source, result string) string {
		return `<record><row><source_ip>` + source + `</source_ip><count>3</count><policy_evaluated><disposition>none</disposition><dkim>` + result +
			`</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>` + domain + `</header_from></identifiers><auth_results><spf><domain>` +
			domain + `</domain><result>fail</result></spf></auth_results></record>`
	}
	begin := time.Now().Add(-48 * time.Hour).Unix()
	return fmt.Sprintf(`<feedback><report_metadata><org_name>reporter.example</org_name><email>a@reporter.example</email><report_id>%s</report_id>
		<date_range><begin>%d</begin><end>%d</end></date_range></report_metadata><policy_published><domain>%s</domain><p>none</p></policy_published>`,
		id, begin, begin+86399, domain) + record("192.0.2.1", "pass") + record("192.0.2.2", "fail") + `</feedback>`
}

// TestTeam exports a team, and wants everything that it has and no secret.
func TestTeam(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), storetest.SQLite(t)
	s := db.Open(t, store.Options{})
	acme, other := storetest.Team(t, s, "acme"), storetest.Team(t, s, "other")
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	acceptor := &intake.Acceptor{Limits: limits, Encode: shape.EncodeDetail, Recovered: func(e *recovered.Error) { t.Error(e) }}
	const secret = "correct-horse"
	seal := func() []byte { return []byte(secret) }
	accept := func(team *store.Team, text string) {
		t.Helper()
		content := musttest.Get(intake.CopyOf(strings.NewReader(text), t.TempDir(), 1<<20))(t)
		t.Cleanup(content.Close)
		musttest.Get(acceptor.Accept(ctx, team, intake.Message{Team: team.ID(), Intake: dmarcd.IntakeUpload, Content: content, Size: content.Size()}))(t)
	}
	for _, of := range []dmarcd.Team{acme, other} {
		team := s.Team(of.ID)
		musttest.Get(team.AddDomain(ctx, of.Name+".example", time.Now().Add(time.Hour)))(t)
		musttest.Get(s.OpenZone(ctx, "dns.example.net", ""))(t)
		for base := range int64(2) {
			musttest.Get(team.PublishRecord(ctx, of.Name+".example", base, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; rua=mailto:a@" + of.Name + ".example"}, nil))(t)
		}
		target := dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "ns1.example:53", Zone: of.Name + ".example"}
		musttest.Get(team.SetRecordTarget(ctx, of.Name+".example", target, func(dmarcd.PublishTarget) ([]byte, error) { return []byte(secret), nil }))(t)
		for n := range 150 { // more than a page
			accept(team, reportOf(fmt.Sprint(of.Name, n), of.Name+".example"))
		}
		accept(team, "not a report of "+of.Name)
		musttest.Get(team.CreateToken(ctx, store.NewToken{Name: "script", Scope: dmarcd.ScopeRead, Hash: [32]byte([]byte(of.Name + secret + secret + secret))}))(t)
		musttest.Get(team.AddWebhook(ctx, dmarcd.Webhook{URL: "https://hooks.example/x", Format: dmarcd.FormatStandard}, func(dmarcd.Webhook) ([]byte, error) { return seal(), nil }))(t)
		musttest.Get(team.TestAlert(ctx))(t)
		hash := [32]byte{byte(of.ID)}
		musttest.Do(t, s.CreateInvitation(ctx, hash, dmarcd.Invitation{Email: "ann@" + of.Name + ".example", Team: of.ID, Role: dmarcd.RoleOwner, ExpiresAt: time.Now().Add(time.Hour)}))
		musttest.Get(s.UseInvitation(ctx, hash, dmarcd.Claim{Email: "ann@" + of.Name + ".example", PasswordHash: secret}))(t)
	}
	use := service.New(s, service.Options{Memory: memory.NewBudget(1 << 30)})
	archive := musttest.Get(use.Team(acme.ID, service.CommandLine()).Archive(ctx))(t)
	var out bytes.Buffer
	musttest.Do(t, export.Team(ctx, archive, &out))

	read := musttest.Get(zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())))(t)
	lines := make(map[string]int)
	for _, file := range read.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		in := musttest.Get(file.Open())(t)
		content := musttest.Get(io.ReadAll(in))(t)
		if text := string(content); strings.Contains(text, secret) || strings.Contains(text, "other.example") {
			t.Errorf("%s has a secret, or data of another team", file.Name)
		}
		folder, _, inFolder := strings.Cut(file.Name, "/")
		if inFolder {
			lines[folder]++
			continue
		}
		for line := range bytes.Lines(content) {
			lines[file.Name]++
			if !json.Valid(line) {
				t.Errorf("%s: got %q, want JSON", file.Name, line)
			}
		}
	}
	for name, want := range map[string]int{
		"team.json": 1, "domains.ndjson": 1, "days.ndjson": 1, "reports.ndjson": 150, "records.ndjson": 300, "rejected.ndjson": 1,
		"managed_records.ndjson": 2, "record_targets.ndjson": 1, "events.ndjson": 1, "alerts.ndjson": 1, "members.ndjson": 1, "tokens.ndjson": 1, "webhooks.ndjson": 1, "audit.ndjson": 1,
		"originals": 150, "rejected": 1,
	} {
		if lines[name] != want {
			t.Errorf("%s: got %d lines or files, want %d", name, lines[name], want)
		}
	}
	document := string(musttest.Get(os.ReadFile("../../docs/export.md"))(t))
	for _, file := range export.Files() {
		if !slices.ContainsFunc(read.File, func(f *zip.File) bool { return f.Name == file.Name }) {
			t.Errorf("the archive has no %s", file.Name)
		}
		if !strings.Contains(document, "| `"+file.Name+"` | "+file.About+" |") {
			t.Errorf("docs/export.md does not describe %s: %s", file.Name, file.About)
		}
	}
}
