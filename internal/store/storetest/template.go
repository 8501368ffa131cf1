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

// fileCopy has the server copy the files of a template instead of logging every
// page of it, which takes four times as long.
const fileCopy = " STRATEGY FILE_COPY"

// sqliteTemplate returns the content of a migrated SQLite file, made once per
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
	return name, ensureTemplate(server, name, func(statement string) error { return admin(server, statement) }, func(name string) error {
		dsn, err := onServer(server, name)
		if err != nil {
			return err
		}
		if err := admin(server, `CREATE DATABASE `+name); err != nil {
			return err
		}
		return migrate(dsn)
	})
})

// ensureTemplate has create make the template unless it exists; run runs a statement. Processes that want it at
// the same time take turns. It gets its name when it is complete: a process may
// be killed meanwhile.
func ensureTemplate(server, name string, run, create func(string) error) error {
	ctx := context.Background()
	db, err := sql.Open("pgx", server)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // which ends the lock
	db.SetMaxOpenConns(1)             // the lock is the connection's
	if _, err := db.ExecContext(ctx, `SELECT pg_advisory_lock(hashtext('dmarcd_template'))`); err != nil {
		return fmt.Errorf("wait for another test process: %w", err)
	}
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil || exists {
		return err
	}
	unfinished := name + "_unfinished"
	for _, step := range []func() error{
		func() error { return run(`DROP DATABASE IF EXISTS ` + unfinished + ` WITH (FORCE)`) },
		func() error { return create(unfinished) },
		func() error { return run(`ALTER DATABASE ` + unfinished + ` RENAME TO ` + name) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// migrate brings a database to the present schema.
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
	folder, files, err := migrationFiles()
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

// migrationFiles finds the migrations from the folder of the test, which is in the module:
// with -trimpath the program does not know where its source is.
func migrationFiles() (folder string, files []os.DirEntry, err error) {
	at, err := os.Getwd()
	for err == nil {
		folder = filepath.Join(at, "internal", "store", "migrations", "postgres")
		if files, err = os.ReadDir(folder); err == nil || filepath.Dir(at) == at {
			return folder, files, err
		}
		at, err = filepath.Dir(at), nil
	}
	return "", nil, err
}
