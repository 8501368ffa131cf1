package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// migrationLock is the key of the advisory lock that a migrating replica holds. It is
// arbitrary, and the same in all versions.
const migrationLock = "110386840822628"

// teamsLock is the key of the advisory lock of a transaction that creates a team in a cluster:
// "teams" in ASCII.
const teamsLock = "499917090163"

var postgresDialect = dialect{
	name:       "postgres",
	lockRow:    ` FOR UPDATE`,
	shareRow:   ` FOR SHARE`,
	skipLocked: ` FOR UPDATE SKIP LOCKED`,
	// Inside IN the query may run again for each row, and then claims more than its limit.
	claimed:        func(query string) string { return ` = ANY (ARRAY(` + query + ` FOR UPDATE SKIP LOCKED))` },
	analyzeDomains: `ANALYZE domains`,
	lockMigration:  `SELECT pg_advisory_xact_lock(` + migrationLock + `)`,
	tables:         `SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema()`,
	beginSnapshot:  `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`,
	partitions:     true,
	maxParameters:  1000,
	aheadRows:      2000,
	copyRows:       copyRowsPostgres,
	queryEach:      queryEachPostgres,
	isUnique:       isUniquePostgres,
	isCollision:    isCollisionPostgres,
	isTemporary:    isTemporaryPostgres,
}

const (
	postgresConns          = 20
	postgresConnectTimeout = 3 * time.Second
)

// postgresSettings are default timeouts, which the URL can override. They are set in each
// transaction: PgBouncer refuses them at the start of a connection, and a connection of it
// serves one client after another.
var postgresSettings = map[string]string{
	"statement_timeout":                   "30s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "60s",
}

// jitOff has PostgreSQL interpret the expressions of queries: with 10^8 records, it took 2.4 s
// to compile those of a query that ran for 0.2 s.
const jitOff = `jit = off`

// sharded has the settings of a transaction apply on the workers of a cluster too, and changes
// of many shards use one connection to each worker: they may follow a change of the table of
// teams, which every server has.
const sharded = `; SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL citus.multi_shard_modify_mode = 'sequential'`

// findCitus finds out whether the database has Citus.
func (s *Store) findCitus(ctx context.Context) error {
	err := s.own().longQueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`, nil, &s.citus)
	if s.citus {
		s.settings = sharded + s.settings
	}
	return err
}

// postgresPool returns a pool for a URL, with the timeout of statements outside transactions.
// It writes the statements that begin a transaction to settings.
func postgresPool(dsn string, settings *string) (db *sql.DB, statementTimeout time.Duration, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The library's error masks the password.
		return nil, 0, fmt.Errorf("read the database URL: %w", err)
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, postgresConnectTimeout)
	if _, set := config.RuntimeParams["application_name"]; !set {
		config.RuntimeParams["application_name"] = "dmarcd"
	}
	if config.DefaultQueryExecMode == pgx.QueryExecModeExec { // for old poolers: docs/scaling.md
		config.DialFunc = withoutCancelRequests(config.DialFunc)
	}
	for _, name := range slices.Sorted(maps.Keys(postgresSettings)) {
		value, set := config.RuntimeParams[name]
		if !set {
			value = postgresSettings[name]
		}
		delete(config.RuntimeParams, name)
		timeout, err := postgresTimeout(value)
		if err != nil {
			return nil, 0, fmt.Errorf("read the database URL: %s: %w", name, err)
		}
		if name == "statement_timeout" {
			statementTimeout = timeout
		}
		*settings += `; SET LOCAL ` + name + ` = ` + strconv.FormatInt(timeout.Milliseconds(), 10)
	}
	*settings += `; SET LOCAL ` + jitOff // through a pooler, too
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, `SET `+jitOff).ReadAll()
		return err
	}
	db = sql.OpenDB(postgresConnector{Connector: stdlib.GetConnector(*config), begin: settings})
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, statementTimeout, nil
}

// postgresTimeout reads a duration as PostgreSQL does: milliseconds, or a number with a unit.
func postgresTimeout(value string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(value, 10, 32); err == nil && ms >= 0 {
		return time.Duration(ms) * time.Millisecond, nil
	}
	timeout, err := time.ParseDuration(strings.Replace(strings.ReplaceAll(value, " ", ""), "min", "m", 1))
	if err != nil || timeout < 0 {
		return 0, fmt.Errorf("%q must be milliseconds or a duration, such as 30s", value)
	}
	return timeout, nil
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
		case "40001", "40P01", "40003", "25006", "25P03", "0A000": // serialization, deadlock, lost connection, read-only standby, idle transaction, plan of an older schema
			return true
		}
		// The classes: connection, prepared statement is gone, resources, lock timeout and others in the way,
		// operator intervention or statement timeout, system error.
		return slices.ContainsFunc([]string{"08", "26", "53", "55", "57", "58"}, func(class string) bool { return strings.HasPrefix(e.Code, class) })
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "conn closed")
}

// postgresConnector opens connections whose transactions begin with settings, in one round
// trip.
type postgresConnector struct {
	driver.Connector
	begin *string // follows BEGIN
}

// Connect implements driver.Connector.
func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(context.WithValue(ctx, connecting{}, true))
	if err != nil {
		return nil, err
	}
	plain, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, fmt.Errorf("the driver is %T", conn)
	}
	return &postgresConn{Conn: plain, begin: c.begin}, nil
}

// connecting marks the context of a connection for queries. The driver opens another one to
// cancel a query.
type connecting struct{}

// withoutCancelRequests returns dial for a pooler that cannot cancel queries: PgBouncer 1.18
// ends at about one in ten such requests. It ends the query of a connection that we close.
func withoutCancelRequests(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(connecting{}) == nil {
			return nil, errors.New("this pooler does not cancel queries")
		}
		return dial(ctx, network, address)
	}
}

type postgresConn struct {
	*stdlib.Conn
	begin *string
}

// BeginTx implements driver.ConnBeginTx.
func (c *postgresConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	begin := `BEGIN`
	switch sql.IsolationLevel(options.Isolation) {
	case sql.LevelDefault:
	case sql.LevelRepeatableRead:
		begin += ` ISOLATION LEVEL REPEATABLE READ`
	default:
		return nil, fmt.Errorf("isolation level %s is not supported", sql.IsolationLevel(options.Isolation))
	}
	if options.ReadOnly {
		begin += ` READ ONLY`
	}
	tx, err := c.Conn.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + *c.begin})
	if err != nil {
		return nil, err
	}
	return postgresTx{ctx: ctx, tx: tx}, nil
}

type postgresTx struct {
	ctx context.Context //nolint:containedctx // driver.Tx has none
	tx  pgx.Tx
}

// Commit implements driver.Tx.
func (t postgresTx) Commit() error { return t.tx.Commit(t.ctx) }

// Rollback implements driver.Tx.
func (t postgresTx) Rollback() error { return t.tx.Rollback(t.ctx) }
