package store_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// maxKeyBytes limits the texts of one key together. PostgreSQL indexes rows of up to 2,704 bytes.
const maxKeyBytes = 2600

const (
	hashBytes   = 32
	domainBytes = 253
	emailBytes  = 254
	wordBytes   = 40 // of names in the program
)

// keyLimits are the limits of all texts in keys and indexes, in bytes, by what sets them.
var keyLimits = map[string]int{
	// names in the program, and random ones
	"installation.name": wordBytes, "job_leases.name": wordBytes, "alerts.kind": wordBytes,
	"spool.name": wordBytes, "spool_chunks.name": wordBytes, "addresses.mailbox": wordBytes,
	// hashes
	"sessions.hash": hashBytes, "invites.hash": hashBytes, "tokens.hash": hashBytes, "originals.hash": hashBytes, "original_chunks.hash": hashBytes,
	"unused_chunks.chunks": hashBytes, "reports.identity": hashBytes, "reports.content": hashBytes, "reports.original": hashBytes, "rejected.original": hashBytes,
	// the parsers of package dmarcd
	"teams.name": 4 * 100, "users.email": emailBytes, "invites.email": emailBytes, "addresses.name": domainBytes, "domains.name": domainBytes,
	"senders.key": dmarcd.MaxSenderKey, "sender_classes.sender": dmarcd.MaxSenderKey, "team_senders.key": 64,
	// netip.Addr.String, without a zone
	"reverse_names.address": 45,
	// the setting of the operator, and package auth
	"identities.issuer": 2048, "identities.subject": 255,
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

// incompressible returns text of so many bytes: databases compress what they index.
func incompressible(bytes int) string {
	random := make([]byte, bytes)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)[:bytes]
}

// TestLongKeys stores reports whose texts are longer than any key can be. They count, and all later
// ones do.
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
