package store_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestDeletedTeamLeavesNothing deletes a team with rows in every table, stops in the middle of the
// purge, and then searches all tables, on SQLite also the bytes of the files.
func TestDeletedTeamLeavesNothing(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		const name = "Zebrafinch mail"
		team := storetest.Team(in, in.store, name)
		gone, marker := in.store.Team(team.ID), "zebrafinch"
		domain := addDomain(in, gone, marker+".example")
		var deliveries []*dmarcd.Delivery
		for n := range 120 {
			report := storetest.Aggregate(fmt.Sprint(marker, n), domain.Name, today-dmarcd.Day(n%40), storetest.Passed(domain.Name, 7), storetest.Failed(domain.Name, 3))
			report.Organization = marker + " reporter"
			deliveries = append(deliveries, storetest.Delivery(report))
		}
		musttest.Get(gone.Receive(ctx, deliveries))(in)
		user := in.member(gone, "ann@"+marker+".example")
		in.plant(team.ID, marker)
		in.add(ours)
		in.receive(storetest.Aggregate("1", ours, today, storetest.Passed(ours, 7)))
		others := in.rowsOf(in.team.ID())
		found := in.search(marker)
		for _, table := range in.teamTables() {
			texts := slices.ContainsFunc(in.columns(table), func(column [2]string) bool { return slices.Contains(texts, strings.ToLower(column[1])) })
			if texts && table != "sessions" && !slices.Contains(found, table) {
				in.Errorf("before: got no marker in %s", table)
			}
		}

		in.must(gone.Delete(ctx, dmarcd.AuditEntry{Actor: "ann", Action: "team.delete", Target: team.ID.String()}))
		if _, err := in.store.RecipientOf(ctx, domain.ReportMailbox); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("its reporting address: got %v, want ErrNotFound", err)
		}
		if _, err := in.store.TeamByName(ctx, name); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("by name: got %v, want ErrNotFound", err)
		}
		if _, err := gone.Receive(ctx, deliveries[:1]); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("a report: got %v, want ErrNotFound", err)
		}
		if err := gone.Delete(ctx); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("again: got %v, want ErrNotFound", err)
		}
		if teams := musttest.Get(in.store.Memberships(ctx, user))(in); len(teams) != 0 {
			in.Errorf("teams of its member: got %v, want none", teams)
		}
		again := in.store.Team(storetest.Team(in, in.store, name).ID)
		if second := addDomain(in, again, domain.Name); second.ReportMailbox == domain.ReportMailbox {
			in.Error("a new team with the domain has the reporting address of the deleted one")
		}
		in.must(again.Delete(ctx))

		for range 5 { // the process ends in the middle
			if !musttest.Get(in.store.Purge(ctx))(in) {
				in.Fatal("the purge ended within 5 steps")
			}
		}
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now})
		for musttest.Get(in.store.Purge(ctx))(in) {
		}
		musttest.Get(in.store.RemoveUser(ctx, user))(in)
		for musttest.Get(in.store.Reclaim(ctx))(in) {
		}
		if in.db.Engine == "sqlite" {
			musttest.Get(in.sql().ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`))(in) // of what this test wrote since
		}
		if found := in.search(marker); len(found) > 0 {
			in.Errorf("after: got the marker in %q, want it nowhere", found)
		}
		if after := in.rowsOf(in.team.ID()); after != others {
			in.Errorf("another team: got\n%s\nwant\n%s", after, others)
		}
		if left := in.rowsOf(team.ID); left != "" {
			in.Errorf("rows with its id: got\n%s", left)
		}
		entries := musttest.Get(in.store.Audit(ctx, store.AuditFilter{Action: "team.delete"}, store.Cursor{}, 10))(in)
		if len(entries) != 1 || entries[0].Target != team.ID.String() {
			in.Errorf("audit log: got %+v, want one entry with the id of the team", entries)
		}
	})
}

// texts are the types of columns that a marker can be in.
var texts = []string{"text", "blob", "bytea"}

// member adds a user to a team.
func (in *inbox) member(team *store.Team, email string) dmarcd.UserID {
	in.Helper()
	hash := [32]byte{77}
	in.must(in.store.CreateInvitation(in.Context(), hash, dmarcd.Invitation{Email: email, Team: team.ID(), Role: dmarcd.RoleOwner, ExpiresAt: in.clock.Now().Add(time.Hour)}))
	return musttest.Get(in.store.UseInvitation(in.Context(), hash, dmarcd.Claim{Email: email, PasswordHash: "x"}))(in).ID
}

// plant adds rows to every table that has the team, with a marker in each text.
func (in *inbox) plant(team dmarcd.TeamID, marker string) {
	in.Helper()
	raw := in.sql()
	const rows = 3
	for n := range rows { // whom members refer to
		_, err := raw.ExecContext(in.Context(), fmt.Sprintf(`INSERT INTO users (id, email, name, password_hash, operator, created_at, signed_in_at)
			VALUES (%d, 'u%[1]d@example.org', '', '', FALSE, 0, 0)`, 77+n))
		in.must(err)
	}
	tables := in.teamTables()
	parents := []string{"domains", "events", "webhooks", "reports"}
	tables = slices.DeleteFunc(tables, func(table string) bool {
		return table == "team_locks" || table == "sessions" || slices.Contains(parents, table)
	})
	for _, table := range append(parents, tables...) {
		_, single := map[string]bool{"event_counters": true, "alert_scans": true, "alert_rules": true, "audit_chains": true}[table]
		for n := range rows {
			if single {
				_, err := raw.ExecContext(in.Context(), fmt.Sprintf(`DELETE FROM %s WHERE team_id = %d`, table, team))
				in.must(err)
			}
			in.plantRow(table, marker, n, map[string]int64{"team_id": int64(team)})
		}
	}
}

// plantRow adds a row with a marker in each text, and with numbers that begin at 77 where none are given.
func (in *inbox) plantRow(table, marker string, n int, ids map[string]int64) {
	in.Helper()
	var names, values []string
	for _, column := range in.columns(table) {
		text := fmt.Sprint(marker, "-", table, "-", column[0], "-", n)
		value := fmt.Sprint(77 + n)
		id, given := ids[column[0]]
		switch kind := strings.ToLower(column[1]); {
		case given:
			value = fmt.Sprint(id)
		case kind == "boolean":
			value = "FALSE"
		case kind == "text":
			value = "'" + text + "'"
		case kind == "blob":
			value = "X'" + hex.EncodeToString([]byte(text)) + "'"
		case kind == "bytea":
			value = `'\x` + hex.EncodeToString([]byte(text)) + "'"
			if in.db.Engine == "sqlite" {
				value = "X'" + hex.EncodeToString([]byte(text)) + "'"
			}
		}
		names, values = append(names, column[0]), append(values, value)
	}
	_, err := in.sql().ExecContext(in.Context(), `INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) VALUES (`+strings.Join(values, ", ")+`)`)
	if err != nil {
		in.Fatalf("%s: %v", table, err)
	}
}

// TestRemovedUserLeavesNothing removes a user with rows in every table that has users, and searches as
// TestDeletedTeamLeavesNothing. Audit logs name the user by address, which this one has no entries of.
func TestRemovedUserLeavesNothing(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx, marker := in.Context(), "zebrafinch"
		user, other := in.member(in.team, "ann@"+marker+".example"), int64(0)
		_, err := in.sql().ExecContext(ctx, `UPDATE users SET name = 'Zebrafinch', password_hash = 'zebrafinch' WHERE email LIKE '%zebrafinch%'`)
		in.must(err)
		in.must(in.sql().QueryRowContext(ctx, `INSERT INTO users (id, email, name, password_hash, operator, created_at, signed_in_at)
			VALUES (78, 'bob@example.org', '', '', FALSE, 0, 0) RETURNING id`).Scan(&other))
		var tables []string
		for _, table := range in.db.Tables(in) {
			if table == "members" || table == "audit" || !slices.ContainsFunc(in.columns(table), func(column [2]string) bool { return column[0] == "user_id" }) {
				continue
			}
			tables = append(tables, table)
			in.plantRow(table, marker, 0, map[string]int64{"team_id": int64(in.team.ID()), "user_id": int64(user)})
			in.plantRow(table, "kept", 1, map[string]int64{"team_id": int64(in.team.ID()), "user_id": other})
		}
		musttest.Get(in.store.RemoveUser(ctx, user))(in)
		if in.db.Engine == "sqlite" {
			musttest.Get(in.sql().ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`))(in)
		}
		if found := in.search(marker); len(found) > 0 {
			in.Errorf("got the marker in %q, want it nowhere", found)
		}
		for _, table := range tables {
			var gone, left int
			in.must(in.sql().QueryRowContext(ctx, fmt.Sprintf(`SELECT COUNT(CASE WHEN user_id = %d THEN 1 END), COUNT(CASE WHEN user_id = %d THEN 1 END) FROM %s`, user, other, table)).Scan(&gone, &left))
			if gone != 0 || left != 1 {
				in.Errorf("%s: got %d rows of the user and %d of another one, want none and one", table, gone, left)
			}
		}
	})
}

// teamTables returns the tables that have a team.
func (in *inbox) teamTables() []string {
	in.Helper()
	return slices.DeleteFunc(in.db.Tables(in), func(table string) bool {
		return !slices.ContainsFunc(in.columns(table), func(column [2]string) bool { return column[0] == "team_id" })
	})
}

// columns returns the names and types of the columns of a table.
func (in *inbox) columns(table string) (columns [][2]string) {
	in.Helper()
	query := `SELECT name, type FROM pragma_table_info('` + table + `')`
	if in.db.Engine == "postgres" {
		query = `SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '` + table + `'`
	}
	each(in.T, in.sql(), query, func(scan func(...any) error) error {
		var column [2]string
		err := scan(&column[0], &column[1])
		columns = append(columns, column)
		return err
	})
	return columns
}

// rowsOf returns the rows of all tables that have the team.
func (in *inbox) rowsOf(team dmarcd.TeamID) string {
	in.Helper()
	var lines []string
	for _, table := range in.teamTables() {
		where := fmt.Sprintf(` FROM %s WHERE team_id = %d`, table, team)
		var names []string
		for _, column := range in.columns(table) {
			names = append(names, `COALESCE(CAST(`+column[0]+` AS TEXT), '')`)
		}
		each(in.T, in.sql(), `SELECT `+strings.Join(names, ` || '|' || `)+where, func(scan func(...any) error) error {
			var line string
			err := scan(&line)
			lines = append(lines, table+": "+line+"\n")
			return err
		})
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// search returns the tables with a text, and the files of SQLite.
func (in *inbox) search(text string) (found []string) {
	in.Helper()
	for _, table := range in.db.Tables(in) {
		var fits []string
		for _, column := range in.columns(table) {
			as := `CAST(` + column[0] + ` AS TEXT)`
			fits = append(fits, `LOWER(`+as+`) LIKE '%`+text+`%'`, `LOWER(`+as+`) LIKE '%`+hex.EncodeToString([]byte(text))+`%'`)
		}
		var rows int
		in.must(in.sql().QueryRowContext(in.Context(), `SELECT count(*) FROM `+table+` WHERE `+strings.Join(fits, " OR ")).Scan(&rows))
		if rows > 0 {
			found = append(found, table)
		}
	}
	if in.db.Engine == "sqlite" {
		for _, file := range []string{in.db.DSN, in.db.DSN + "-wal"} {
			content := musttest.Get(os.ReadFile(file))(in)
			for _, form := range []string{text, strings.ToUpper(text[:1]) + text[1:]} {
				if n := bytes.Count(content, []byte(form)); n > 0 {
					found = append(found, fmt.Sprintf("%s (%d times)", file, n))
				}
			}
		}
	}
	return found
}
