package store_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// maxKeyBytes limits the total length of the texts in one key. PostgreSQL indexes rows of up to
// 2,704 bytes.
const maxKeyBytes = 2600

const (
	hashBytes   = 32
	domainBytes = 253
	emailBytes  = 254
	wordBytes   = 40 // of names in the program
)

// keyLimits are the maximum lengths of all texts in keys and indexes, in bytes, grouped by what
// enforces them.
var keyLimits = map[string]int{
	// names in the program, and random ones
	"installation.name": wordBytes, "job_leases.name": wordBytes, "alerts.kind": wordBytes, "record_versions.kind": wordBytes, "record_proposals.kind": wordBytes, "record_attempts.kind": wordBytes,
	"spool.name": wordBytes, "spool_chunks.name": wordBytes, "addresses.mailbox": wordBytes, "test_addresses.mailbox": wordBytes,
	"domains.policy": wordBytes, "domains.grade": wordBytes, "domains.stage": wordBytes, "domains.next_step": wordBytes,
	// hashes
	"sessions.hash": hashBytes, "recovery_codes.hash": hashBytes, "invites.hash": hashBytes, "mailed_links.hash": hashBytes, "browsers.hash": hashBytes, "logout_tokens.hash": hashBytes, "tokens.hash": hashBytes, "idempotency_keys.hash": hashBytes, "originals.hash": hashBytes, "original_chunks.hash": hashBytes,
	"unused_chunks.chunks": hashBytes, "reports.identity": hashBytes, "reports.content": hashBytes, "reports.original": hashBytes, "rejected.original": hashBytes,
	// the parsers of package dmarcd
	"teams.name": 4 * 100, "users.email": emailBytes, "invites.email": emailBytes, "addresses.name": domainBytes, "domains.name": domainBytes,
	"senders.key": dmarcd.MaxSenderKey, "sender_classes.sender": dmarcd.MaxSenderKey, "team_senders.key": 64,
	// netip.Addr.String, without a zone
	"reverse_names.address": 45,
	// the setting of the operator, and package auth
	"identities.issuer": 2048, "identities.subject": 255, "passkeys.credential_id": 1023,
	// the directory of the certificate authority, and the host
	"certificate_files.name": 2048,
	// package secret
	"audit_keys.name": 8,
	// the setting of the operator, and random
	"zone.name": domainBytes, "zone_names.label": wordBytes, "policy_hosts.label": wordBytes, "policy_hosts.domain": domainBytes,
	"certificate_orders.organization": domainBytes, "certificate_pauses.organization": domainBytes,
	// keyText
	"reports.external_id": dmarcd.MaxKeyText, "selectors.signer": dmarcd.MaxKeyText, "selectors.selector": dmarcd.MaxKeyText, "alerts.subject": dmarcd.MaxKeyText,
	"shares.from_path": dmarcd.MaxKeyText + 1, "shares.policy_path": dmarcd.MaxKeyText + 1, // with a dot
	// maxMember
	"rejected.member": 1100,
}

// TestKeysHaveLimits compares the texts in keys and indexes with keyLimits.
func TestKeysHaveLimits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		db.Open(t, store.Options{})
		columns := `SELECT l.name, m.name, c.name FROM sqlite_master m JOIN pragma_index_list(m.name) l JOIN pragma_index_info(l.name) i
			JOIN pragma_table_info(m.name) c ON c.cid = i.cid WHERE m.type = 'table' AND c.type IN ('TEXT', 'BLOB')`
		if db.Engine == "postgres" {
			columns = `SELECT i.relname, t.relname, a.attname FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
				JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (x.indkey)
				WHERE t.relnamespace = 'public'::regnamespace AND a.atttypid NOT IN ('bigint'::regtype, 'integer'::regtype, 'boolean'::regtype)`
		}
		used, sums := make(map[string]bool), make(map[string]int)
		each(t, db.SQL(t), columns, func(scan func(...any) error) error {
			var index, table, column string
			err := scan(&index, &table, &column)
			name := table + "." + column
			limit, known := keyLimits[name]
			if err == nil && !known {
				t.Errorf("%s is in the key or index %s, without a limit in keyLimits", name, index)
			}
			used[name] = true
			sums[index] += limit
			return err
		})
		for index, sum := range sums {
			if sum > maxKeyBytes {
				t.Errorf("%s: its texts have up to %d bytes, want at most %d", index, sum, maxKeyBytes)
			}
		}
		for name := range keyLimits {
			if !used[name] {
				t.Errorf("%s is in no key or index", name)
			}
		}
	})
}

// incompressible returns text of this length that does not compress: databases compress what they
// index.
func incompressible(bytes int) string {
	random := make([]byte, bytes)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)[:bytes]
}

// TestLongKeys stores reports whose texts are longer than any key can be. They and all later ones
// count.
func TestLongKeys(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		id := addDomain(in, in.team, ours).ID
		for name, edit := range map[string]func(report *dmarcd.NewReport, record *aggregate.Record, text string){
			"selector": func(_ *dmarcd.NewReport, r *aggregate.Record, text string) { r.DKIMResults[0].Selector = text },
			"signer": func(_ *dmarcd.NewReport, r *aggregate.Record, text string) {
				r.DKIMResults[0].Domain = text + "." + ours
			},
			"From domain": func(report *dmarcd.NewReport, r *aggregate.Record, text string) {
				r.HeaderFrom, report.Shares[0].From = text, text
			},
			"policy domain": func(report *dmarcd.NewReport, _ *aggregate.Record, text string) { report.Domain = text },
			"report id":     func(report *dmarcd.NewReport, _ *aggregate.Record, text string) { report.ExternalID = text },
			"reporter":      func(report *dmarcd.NewReport, _ *aggregate.Record, text string) { report.Organization = text },
			"source":        func(_ *dmarcd.NewReport, r *aggregate.Record, text string) { r.Source = text },
		} {
			for form, text := range map[string]string{
				"text": incompressible(60_000), "more text": incompressible(1 << 20), "a little text": incompressible(2_690),
				"NUL": strings.Repeat("\x00", 2_000), "no UTF-8": strings.Repeat("\xff", 2_000), "runes": strings.Repeat("ä€𝄞", 500),
			} {
				record := storetest.Passed(ours, 1)
				record.DKIMResults = []aggregate.DKIMResult{{Domain: ours, Selector: "s", Result: aggregate.ResultPass}}
				report := storetest.Aggregate(name+form, ours, today, record)
				edit(&report, &record, text)
				report.EachRecord = func(yield func(aggregate.Record, error) bool) { yield(record, nil) }
				receipts, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{storetest.Delivery(report)})
				if err != nil || receipts[0][0].Status != dmarcd.Stored && name != "From domain" {
					in.Errorf("a long %s of %s: got %v and %v, want it stored", name, form, receipts, err)
				}
				rejection := storetest.Delivery()
				rejection.Original = storetest.Original([]byte(name + form))
				rejection.Rejections = []dmarcd.Rejection{{Member: text, Reason: text}}
				in.deliver(rejection)
			}
		}
		for i, text := range []string{incompressible(9_000), strings.Repeat("\xff", 9_000)} {
			in.must(in.team.SaveDetections(in.Context(), []dmarcd.Detection{{Kind: dmarcd.VolumeSpike, Domain: id, Subject: text, Day: today - dmarcd.Day(i)}}, nil))
		}
		in.sound()
		length := "length(CAST(%s AS BLOB))"
		if in.db.Engine == "postgres" {
			length = "octet_length(%s)"
		}
		for name, limit := range keyLimits {
			table, column, _ := strings.Cut(name, ".")
			var longest int
			query := `SELECT COALESCE(MAX(` + fmt.Sprintf(length, column) + `), 0) FROM ` + table
			musttest.Do(in, in.sql().QueryRowContext(in.Context(), query).Scan(&longest))
			if longest > limit {
				in.Errorf("%s: got %d bytes, want at most %d", name, longest, limit)
			}
		}
	})
}

// TestKeysBeginWithTheTeam checks the tables with a team_id: a cluster shards all but the
// directories by team, so that their keys begin with it and their references stay in a shard.
func TestKeysBeginWithTheTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		db.Open(t, store.Options{})
		raw := db.SQL(t)
		tenants := `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'team_id'`
		// The rowid is in no index.
		unique := `SELECT m.name, l.name, (SELECT i.name FROM pragma_index_info(l.name) i WHERE i.seqno = 0)
			FROM sqlite_master m JOIN pragma_index_list(m.name) l WHERE m.type = 'table' AND l."unique" = 1`
		references := `SELECT m.name, f."table", group_concat(f."from"), group_concat(f."to")
			FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' GROUP BY m.name, f.id`
		if db.Engine == "postgres" {
			tenants = `SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'team_id' AND table_name NOT LIKE 'records\_%'`
			unique = `SELECT t.relname, i.relname, a.attname FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
				JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
				WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace`
			references = `SELECT t.relname, p.relname,
					(SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(c.conkey) WITH ORDINALITY k (num, n) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.num),
					(SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(c.confkey) WITH ORDINALITY k (num, n) JOIN pg_attribute a ON a.attrelid = p.oid AND a.attnum = k.num)
				FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class p ON p.oid = c.confrelid WHERE c.contype = 'f'`
		}
		var tables []string
		each(t, raw, tenants, func(scan func(...any) error) error {
			var table string
			err := scan(&table)
			tables = append(tables, table)
			return err
		})
		slices.Sort(tables)
		for _, table := range store.Directories() {
			if !slices.Contains(tables, table) {
				t.Errorf("%s is a directory, but has no team", table)
			}
		}
		tables = slices.DeleteFunc(tables, func(table string) bool { return slices.Contains(store.Directories(), table) })
		each(t, raw, unique, func(scan func(...any) error) error {
			var table, index, first string
			err := scan(&table, &index, &first)
			if err == nil && slices.Contains(tables, table) && first != "team_id" {
				t.Errorf("%s: %s begins with %s, want team_id", table, index, first)
			}
			return err
		})
		each(t, raw, references, func(scan func(...any) error) error {
			var table, other, from, to string
			err := scan(&table, &other, &from, &to)
			if err == nil && slices.Contains(tables, table) != slices.Contains(tables, other) && other != "teams" {
				t.Errorf("%s refers to %s, which a cluster has on another server", table, other)
			}
			if err != nil || !slices.Contains(tables, table) {
				return err
			}
			if table == "records" {
				t.Errorf("records refers to %s: it would be checked for each of millions", other)
			}
			if slices.Contains(tables, other) && !strings.HasPrefix(from+" "+to, "team_id,") {
				t.Errorf("%s (%s) refers to %s (%s), want the team in the key", table, from, other, to)
			}
			return nil
		})
	})
}
