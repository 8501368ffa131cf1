package demo_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// TestStepsFitTogether wants every step to be made by a user who is in the team by then
// and may do it, and to what is there.
func TestStepsFitTogether(t *testing.T) {
	t.Parallel()
	steps := scenario().Steps()
	if !slices.IsSortedFunc(steps, func(a, b demo.Step) int { return a.At.Compare(b.At) }) {
		t.Error("got steps out of order")
	}
	type in struct{ team, name string }
	roles, there := map[in]dmarcd.Role{}, map[in]bool{}
	for _, d := range steps {
		if !d.At.Before(end) {
			t.Errorf("%+v: got a step to come", d)
		}
		needs := dmarcd.RightManage
		switch d.Action {
		case demo.Joined:
			roles[in{d.Team, d.By}], needs = dmarcd.Role(d.Detail), dmarcd.RightSee
			if demo.NameOf(d.By) == "" {
				t.Errorf("%s: got no name", d.By)
			}
		case demo.AddedDomain, demo.CreatedToken:
			there[in{d.Team, d.Target}] = true
		case demo.SetPurpose, demo.RevokedToken:
			if !there[in{d.Team, d.Target}] {
				t.Errorf("%+v: got a step to what is not there", d)
			}
		case demo.UploadedReport:
			needs = dmarcd.RightChange
		case demo.Invited, demo.AddedMailbox:
		}
		if !roles[in{d.Team, d.By}].Can(needs) {
			t.Errorf("%+v: got a step by a user who may not make it", d)
		}
	}
	for _, d := range scenario().Domains() {
		if !there[in{d.Team, d.Name}] {
			t.Errorf("%s: got no member who adds it to %s", d.Name, d.Team)
		}
	}
	for _, role := range []dmarcd.Role{dmarcd.RoleOwner, dmarcd.RoleEditor, dmarcd.RoleViewer} {
		found := false
		for who, has := range roles {
			found = found || who.team == demo.FirstTeam && has == role
		}
		if !found {
			t.Errorf("got no %s in the first team", role)
		}
	}
	if owner := (in{demo.SecondTeam, demo.Ada}); roles[owner] != dmarcd.RoleOwner || roles[in{demo.FirstTeam, demo.Ada}] != dmarcd.RoleOwner {
		t.Error("got no member who owns both teams")
	}
}

func TestNonReportsCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, nonReports := range scenario().NonReports() {
		var read int
		err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(nonReports.Content), unpack.DefaultLimits(), func(part *unpack.Part) error {
			if part.Kind != unpack.Aggregate {
				return nil
			}
			reader := aggregate.NewReader(part, aggregate.DefaultLimits())
			for _, err := range reader.All() {
				if err != nil {
					break
				}
				read++
			}
			return nil
		})
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", nonReports.Name, err)
		}
		if read > 0 || nonReports.Kind != "" || nonReports.Intake == "" || nonReports.SentAt.After(end.Add(-24*time.Hour)) {
			t.Errorf("%s: got %d records of a %q by %q at %s, want nothing readable, some days ago", nonReports.Name, read, nonReports.Kind, nonReports.Intake, nonReports.SentAt)
		}
	}
}
