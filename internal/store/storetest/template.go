package storetest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/dmarcd/dmarcd/internal/store"
)

// fileCopy makes the server copy the files of a template, in a quarter of the time
// that it needs to write every page to the log.
const fileCopy = " STRATEGY FILE_COPY"

// sqliteTemplate returns the content of a migrated SQLite file, created once per
// process.
var sqliteTemplate = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "dmarcd-storetest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "dmarcd.db")
	if err := migrate(file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// postgresTemplate returns the name of a migrated database on the server. The
// name contains a hash of the migrations, so that all test processes share the
// database and a changed schema has one of its own.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	hash, err := migrationsHash()
	if err != nil {
		return "", fmt.Errorf("read the migrations: %w", err)
	}
	name := "dmarcd_template_" + hash
	if Distributed() {
		return name, ensureTemplate(os.Getenv(ClusterVariable), name, onNodes, distributedTemplate)
	}
	server := os.Getenv(ServerVariable)
	return name, ensureTemplate(server, name, func(statement string) error { return run(server, statement) }, func(name string) error {
		dsn, err := onServer(server, name)
		if err != nil {
			return err
		}
		if err := run(server, `CREATE DATABASE `+name); err != nil {
			return err
		}
		return migrate(dsn)
	})
})

// ensureTemplate calls create unless the template exists; exec runs a statement on all
// nodes. An advisory lock serializes test processes. The template gets its final name only
// when it is complete, because a process may be killed before that.
func ensureTemplate(server, name string, exec, create func(string) error) error {
	ctx := context.Background()
	db, err := sql.Open("pgx", server)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // releases the lock
	db.SetMaxOpenConns(1)             // the lock belongs to the connection
	if _, err := db.ExecContext(ctx, `SELECT pg_advisory_lock(hashtext('dmarcd_template'))`); err != nil {
		return fmt.Errorf("lock the template on the server in %s: %w", ServerVariable, err)
	}
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil || exists {
		return err
	}
	unfinished := name + "_unfinished"
	if err := exec(`DROP DATABASE IF EXISTS ` + unfinished + ` WITH (FORCE)`); err != nil {
		return err
	}
	if err := create(unfinished); err != nil {
		return err
	}
	return exec(`ALTER DATABASE ` + unfinished + ` RENAME TO ` + name)
}

// migrate migrates a database to the current schema.
func migrate(dsn string) error {
	s, err := store.Open(context.Background(), dsn, store.Options{})
	if err != nil {
		return err
	}
	_, err = s.Migrate(context.Background())
	return errors.Join(err, s.Close())
}

// migrationsHash identifies the PostgreSQL schema.
func migrationsHash() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "internal", "store", "migrations", "postgres")
	files, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return "", err
		}
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// moduleRoot returns the folder of go.mod above the folder of the test. With -trimpath the
// program does not know where its source is.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil || filepath.Dir(folder) == folder {
			return folder, err
		}
		folder = filepath.Dir(folder)
	}
}
