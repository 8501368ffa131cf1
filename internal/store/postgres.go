package store

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// migrationLock is the key of the advisory lock that a migrating replica holds:
// "dmarcd" in ASCII.
const migrationLock = "110386840822628"

var postgresDialect = dialect{
	name:          "postgres",
	lockRow:       ` FOR UPDATE`,
	shareRow:      ` FOR SHARE`,
	skipLocked:    ` FOR UPDATE SKIP LOCKED`,
	lockMigration: `SELECT pg_advisory_lock(` + migrationLock + `)`,
	tables:        `SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema()`,
	beginSnapshot: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`,
	maxParameters: 1000,
	copyRows:      copyRowsPostgres,
	isUnique:      isUniquePostgres,
	isCollision:   isCollisionPostgres,
	isTemporary:   isTemporaryPostgres,
}

const (
	postgresConns          = 20
	postgresConnectTimeout = 3 * time.Second
)

// postgresSettings are default timeouts, which the URL can override.
var postgresSettings = map[string]string{
	"application_name":                    "dmarcd",
	"statement_timeout":                   "30s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "60s",
}

func openPostgres(dsn string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The library's error masks the password.
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = postgresConnectTimeout
	}
	for name, value := range postgresSettings {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}

func isUniquePostgres(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505"
}

// isCollisionPostgres reports deadlocks and serialization failures.
func isCollisionPostgres(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40P01" || e.Code == "40001")
}

// isTemporaryPostgres reports whether the server is unavailable, restarting, full or busy.
func isTemporaryPostgres(err error) bool {
	// Whatever the reason (no login, database being restored), the server cannot be reached.
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "40001", "40P01", "55P03", "57014", "25006": // serialization, deadlock, lock or statement timeout, read-only standby
			return true
		}
		// The classes: connection, resources, operator intervention, system error.
		return slices.ContainsFunc([]string{"08", "53", "57", "58"}, func(class string) bool { return strings.HasPrefix(e.Code, class) })
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "conn closed")
}
