package db

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

var postgresDialect = Dialect{
	Engine:     Postgres,
	LockRow:    ` FOR UPDATE`,
	ShareRow:   ` FOR SHARE`,
	SkipLocked: ` FOR UPDATE SKIP LOCKED`,
	// Inside IN the query may run again for each row, and then claims more than its limit.
	Claimed:       func(query string) string { return ` = ANY (ARRAY(` + query + ` FOR UPDATE SKIP LOCKED))` },
	Partitions:    true,
	StepRows:      2000,
	lockMigration: `SELECT pg_advisory_xact_lock(` + migrationLock + `)`,
	tables:        `SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema()`,
	beginSnapshot: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`,
	maxParameters: 1000,
	copyRows:      copyRowsPostgres,
	queryEach:     queryEachPostgres,
	isUnique:      isUniquePostgres,
	isCollision:   isCollisionPostgres,
	isTemporary:   isTemporaryPostgres,
}

const (
	postgresConns          = 20
	postgresConnectTimeout = 3 * time.Second
)

// postgresSettings are default timeouts, which the URL can override. They are set in each
// transaction: PgBouncer rejects them at the start of a connection, and shares a connection between
// clients.
var postgresSettings = map[string]string{
	"statement_timeout":                   "30s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "60s",
}

// jitOff disables just-in-time compilation: with 10^8 records, it took 2.4 s to compile the
// expressions of a query that ran for 0.2 s.
const jitOff = `jit = off`

// sharded are the settings of a transaction in a cluster: its settings also apply on the workers,
// and a change of many shards uses one connection to each worker, because it may follow a change of
// a reference table, which every server has a copy of.
const sharded = `; SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL citus.multi_shard_modify_mode = 'sequential'`

// OpenPostgres connects to the database of a postgres:// URL.
func OpenPostgres(ctx context.Context, url string, observer Observer) (*DB, error) {
	d := &DB{Dialect: postgresDialect, Observer: observer}
	if err := d.postgresPool(url); err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if _, err := d.connected(ctx); err != nil {
		return nil, err
	}
	err := d.Read().QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`, nil, &d.Citus)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the extensions of the database: %w", err), d.Close())
	}
	if d.Citus {
		d.settings = sharded + d.settings
	}
	return d, nil
}

// postgresPool creates the pool for a URL, and reads the timeouts from it.
func (d *DB) postgresPool(url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err // it masks the password
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
			return fmt.Errorf("%s: %w", name, err)
		}
		if name == "statement_timeout" {
			d.timeout = timeout
		}
		d.settings += `; SET LOCAL ` + name + ` = ` + strconv.FormatInt(timeout.Milliseconds(), 10)
	}
	d.settings += `; SET LOCAL ` + jitOff // through a pooler, too
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, `SET `+jitOff).ReadAll()
		return err
	}
	d.writer = sql.OpenDB(postgresConnector{Connector: stdlib.GetConnector(*config), begin: &d.settings})
	d.writer.SetMaxOpenConns(postgresConns)
	d.writer.SetMaxIdleConns(postgresConns)
	d.writer.SetConnMaxIdleTime(5 * time.Minute)
	d.reader = d.writer
	return nil
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
		// The classes: connection, missing prepared statement, resources, lock not available,
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

// connecting marks the context in which a connection for queries is opened. The driver opens
// others, without the mark, to cancel queries.
type connecting struct{}

// withoutCancelRequests wraps dial for a pooler that cannot cancel queries: PgBouncer 1.18 exits at
// about one in ten such requests. It ends the query of a connection that is closed.
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
