package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// StoredPosture is the posture of a domain, with a hash of what its advice was computed from.
type StoredPosture struct {
	Domain dmarcd.DomainID
	dmarcd.Posture
	Basis [sha256.Size]byte
}

// SavePostures stores postures. One that was computed before the stored one is ignored, and so is that
// of a domain that the team does not have.
func (t *Team) SavePostures(ctx context.Context, postures []StoredPosture) error {
	postures = slices.SortedFunc(slices.Values(postures), func(a, b StoredPosture) int { return int(a.Domain - b.Domain) })
	for some := range slices.Chunk(postures, rowsPerQuery) {
		err := t.retryTx(ctx, func(tx tx) error {
			ids := make([]dmarcd.DomainID, len(some))
			for i, p := range some {
				ids[i] = p.Domain
			}
			list, args := db.In([]any{t.id}, ids)
			present, err := db.Collect(ctx, tx, `SELECT id FROM domains WHERE team_id = $1 AND deleted_at = 0 AND id IN `+list, args, db.Value[dmarcd.DomainID])
			if err != nil {
				return err
			}
			var rows [][]any
			for _, p := range some {
				if slices.Contains(present, p.Domain) {
					rows = append(rows, []any{t.id, p.Domain, p.Stage, p.Action, p.Title, p.Messages, p.Yours, p.YoursPassing, p.Basis[:], unix(p.ComputedAt)})
				}
			}
			_, err = tx.InsertMany(ctx, `INSERT INTO postures (team_id, domain_id, stage, action, title, messages, yours, yours_passing, basis, computed_at) VALUES `, rows,
				` ON CONFLICT (team_id, domain_id) DO UPDATE SET stage = excluded.stage, action = excluded.action, title = excluded.title,
					messages = excluded.messages, yours = excluded.yours, yours_passing = excluded.yours_passing,
					basis = excluded.basis, computed_at = excluded.computed_at
				WHERE postures.computed_at <= excluded.computed_at`)
			if err != nil {
				return err
			}
			return t.copyStages(ctx, tx, ids)
		})
		if err != nil {
			return fmt.Errorf("save postures: %w", err)
		}
	}
	return nil
}

// copyStages copies the stages of postures, and whether someone has to act, to their domains, where an
// index has them for PostureCounts. Few change, and only these domains are locked.
func (t *Team) copyStages(ctx context.Context, tx tx, domains []dmarcd.DomainID) error {
	type copied struct {
		domain      dmarcd.DomainID
		stage, next string
	}
	const next = `CASE WHEN postures.action IN ('', 'wait_for_reports') THEN 'nothing' ELSE 'act' END`
	list, args := db.In([]any{t.id}, domains)
	moved, err := db.Collect(ctx, tx, `SELECT postures.domain_id, postures.stage, `+next+posturesJoined+`
		AND (domains.stage <> postures.stage OR domains.next_step <> `+next+`) AND domains.id IN `+list+` ORDER BY 1`, args, func(scan db.Scanner) (c copied, err error) {
		err = scan(&c.domain, &c.stage, &c.next)
		return c, err
	})
	if err != nil || len(moved) == 0 {
		return err
	}
	if err := t.shareLock(ctx, tx); err != nil {
		return err
	}
	for _, c := range moved {
		if _, err := tx.Exec(ctx, `UPDATE domains SET stage = $1, next_step = $2 WHERE team_id = $3 AND id = $4 AND deleted_at = 0`, c.stage, c.next, t.id, c.domain); err != nil {
			return err
		}
	}
	return nil
}

// StoredPostures returns the stored postures of domains.
func (t *Team) StoredPostures(ctx context.Context, domains []dmarcd.DomainID) (map[dmarcd.DomainID]StoredPosture, error) {
	postures := make(map[dmarcd.DomainID]StoredPosture, len(domains))
	for some := range slices.Chunk(domains, rowsPerQuery) {
		list, args := db.In([]any{t.id}, some)
		all, err := db.Collect(ctx, t.store, `SELECT domain_id, stage, action, title, messages, yours, yours_passing, basis, computed_at
			FROM postures WHERE team_id = $1 AND domain_id IN `+list, args, func(scan db.Scanner) (StoredPosture, error) {
			var p StoredPosture
			var basis []byte
			var at int64
			err := scan(&p.Domain, &p.Stage, &p.Action, &p.Title, &p.Messages, &p.Yours, &p.YoursPassing, &basis, &at)
			copy(p.Basis[:], basis)
			p.ComputedAt = fromUnix(at)
			return p, err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			postures[p.Domain] = p
		}
	}
	return postures, nil
}

// Missing and Unknown select domains without a value: no policy, and a policy, grade or stage that is
// not known yet.
const (
	Missing = "missing"
	Unknown = "unknown"
)

// PostureFilter selects and sorts domains; empty fields match all.
type PostureFilter struct {
	// Search is a substring of the name, ignoring case.
	Search string
	// Policy is none, quarantine, reject, Missing or Unknown; Grade a grade or Unknown; Stage a
	// dmarcd.Stage or Unknown; Next is NextAct, NextNothing or Unknown.
	Policy, Grade, Stage, Next string
	// Sort is name, grade, policy, stage, messages or passing, with the prefix "-" for descending
	// order. The default is name. Domains without the value come last in both directions.
	Sort string
	// After continues after that row, Offset skips rows.
	After  *PosturePosition
	Offset int
	Limit  int
}

// Whether someone has to act on a domain: waiting for reports is nothing to do.
const (
	NextAct     = "act"
	NextNothing = "nothing"
)

// PosturePosition is the position of a row: its sort key, and its name among equals. A list that
// continues after it begins with the row itself if Inclusive is set.
type PosturePosition struct {
	Key       int64
	Name      string
	Inclusive bool
}

// PostureRow is a domain with its posture.
type PostureRow struct {
	dmarcd.Domain
	dmarcd.Posture
	Tags     []string
	Position PosturePosition
}

// PostureCount is the number of domains with a policy, a grade, a stage and a next step, as in
// PostureFilter.
type PostureCount struct {
	Policy, Grade, Stage, Next string
	Domains                    int
}

// Matches reports whether a filter selects the domains of a count, whatever its search.
func (f PostureFilter) Matches(c PostureCount) bool {
	for _, of := range [][2]string{{f.Policy, c.Policy}, {f.Grade, c.Grade}, {f.Stage, c.Stage}, {f.Next, c.Next}} {
		if of[0] != "" && of[0] != of[1] {
			return false
		}
	}
	return true
}

// The conditions of a PostureFilter as columns of a domain. A policy is known once the DNS has
// answered.
const (
	policyWord = `CASE WHEN domains.known_at = 0 THEN 'unknown' WHEN domains.policy = '' THEN 'missing' ELSE domains.policy END`
	gradeWord  = `CASE WHEN domains.grade = '' THEN 'unknown' ELSE domains.grade END`
	stageWord  = `CASE WHEN domains.stage = '' THEN 'unknown' ELSE domains.stage END`
	nextWord   = `CASE WHEN domains.next_step = '' THEN 'unknown' ELSE domains.next_step END`

	posturesJoined = ` FROM domains LEFT JOIN postures ON postures.team_id = domains.team_id AND postures.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0`
)

// last is the sort key of domains without a value.
const last = `9007199254740993`

// postureKeys are the sort keys in SQL. SIGN is replaced by the direction.
var postureKeys = map[string]string{
	"grade": `CASE domains.grade WHEN 'A+' THEN SIGN 1 WHEN 'A' THEN SIGN 2 WHEN 'B' THEN SIGN 3 WHEN 'C' THEN SIGN 4 WHEN 'D' THEN SIGN 5
		WHEN 'E' THEN SIGN 6 WHEN 'F' THEN SIGN 7 ELSE ` + last + ` END`,
	"policy": `CASE WHEN domains.known_at = 0 THEN ` + last + ` WHEN domains.policy = 'reject' THEN SIGN 4 WHEN domains.policy = 'quarantine' THEN SIGN 3
		WHEN domains.policy = 'none' THEN SIGN 2 ELSE SIGN 1 END`,
	"stage": `CASE postures.stage WHEN 'none' THEN SIGN 1 WHEN 'monitoring' THEN SIGN 2 WHEN 'partial' THEN SIGN 3 WHEN 'enforced' THEN SIGN 4
		WHEN 'parked' THEN SIGN 5 ELSE ` + last + ` END`,
	"messages": `CASE WHEN postures.messages IS NULL THEN ` + last + ` ELSE SIGN postures.messages END`,
	"passing": `CASE WHEN postures.yours > 0 THEN SIGN CAST(CAST(postures.yours_passing AS DOUBLE PRECISION) / postures.yours * 1000000 AS BIGINT)
		ELSE ` + last + ` END`,
}

// base returns the conditions of the search and the tag, and their arguments; $1 is the team.
func (f PostureFilter) base(t *Team) (string, []any) {
	base, args := t.tagged([]any{t.id})
	if f.Search != "" {
		args = append(args, db.Plain(strings.ToLower(f.Search)))
		base += fmt.Sprintf(` AND replace(domains.name, $%d, '') <> domains.name`, len(args)) // LIKE differs between the engines
	}
	return base, args
}

// PostureCounts counts all domains that match the search and the tag of a filter, whatever else it
// selects.
func (t *Team) PostureCounts(ctx context.Context, filter PostureFilter) ([]PostureCount, error) {
	base, args := filter.base(t)
	const columns = `domains.policy, domains.grade, domains.stage, domains.next_step, domains.known_at = 0` // in the order of an index
	return db.Collect(ctx, t.store, `SELECT `+columns+`, COUNT(*) FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0`+base+` GROUP BY `+columns, args,
		func(scan db.Scanner) (PostureCount, error) {
			var c PostureCount
			var unknown bool
			err := scan(&c.Policy, &c.Grade, &c.Stage, &c.Next, &unknown, &c.Domains)
			if c.Policy = cmp.Or(c.Policy, Missing); unknown {
				c.Policy = Unknown
			}
			c.Grade, c.Stage, c.Next = cmp.Or(c.Grade, Unknown), cmp.Or(c.Stage, Unknown), cmp.Or(c.Next, Unknown)
			return c, err
		})
}

// Postures returns a page of the domains that match the filter. It reads stored postures: no mail
// is counted.
func (t *Team) Postures(ctx context.Context, filter PostureFilter) ([]PostureRow, error) {
	base, args := filter.base(t)
	bind := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	for _, c := range []struct{ column, value string }{{policyWord, filter.Policy}, {gradeWord, filter.Grade}, {stageWord, filter.Stage}, {nextWord, filter.Next}} {
		if c.value != "" {
			base += ` AND ` + c.column + ` = ` + bind(db.Plain(c.value))
		}
	}
	word, descending := strings.CutPrefix(filter.Sort, "-")
	key, order, name, follows := `0`, ``, `domains.name`, `>`
	if expression, known := postureKeys[word]; known {
		sign := `+`
		if descending {
			sign = `-`
		}
		key = strings.ReplaceAll(expression, `SIGN `, sign)
		order = key + `, `
	} else {
		base += ` AND domains.name > ''` // has SQLite read the index that is in this order
		if descending {
			name, follows = `domains.name DESC`, `<`
		}
	}
	if after := filter.After; after != nil {
		if after.Inclusive {
			follows += `=`
		}
		at, than := bind(after.Key), bind(db.Plain(after.Name))
		base += ` AND (` + key + ` > ` + at + ` OR ` + key + ` = ` + at + ` AND domains.name ` + follows + ` ` + than + `)`
	}
	return db.Collect(ctx, t.store, `SELECT `+domainsColumns+`, domains.tags, `+key+`,
			COALESCE(postures.stage, ''), COALESCE(postures.action, ''), COALESCE(postures.title, ''), COALESCE(postures.messages, 0),
			COALESCE(postures.yours, 0), COALESCE(postures.yours_passing, 0), COALESCE(postures.computed_at, 0)`+posturesJoined+base+`
		ORDER BY `+order+name+` LIMIT `+bind(filter.Limit)+` OFFSET `+bind(filter.Offset), args, func(scan db.Scanner) (PostureRow, error) {
		var r PostureRow
		var tags string
		var computedAt int64
		var err error
		r.Domain, err = scanDomain(scan.Before(&tags, &r.Position.Key, &r.Stage, &r.Action, &r.Title, &r.Messages, &r.Yours, &r.YoursPassing, &computedAt))
		r.Tags, r.Position.Name, r.ComputedAt = strings.Fields(tags), r.Name, fromUnix(computedAt)
		return r, err
	})
}

// domainsColumns are domainColumns of a join.
var domainsColumns = "domains." + strings.ReplaceAll(strings.Join(strings.Fields(domainColumns), " "), ", ", ", domains.")
