package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// ClusterVariable names the environment variable with the URL of a database on the coordinator
// of a Citus cluster. If it is set, tests run on distributed databases of that cluster instead
// of plain PostgreSQL.
const ClusterVariable = "DMARCD_TEST_CITUS"

// Distributed reports whether the databases of Postgres are distributed.
func Distributed() bool { return os.Getenv(ClusterVariable) != "" }

// EmptyCluster creates a database of the cluster without a schema and drops it after the test.
// Skip the test unless Distributed; `make test` reports that Citus was skipped.
func EmptyCluster(t testing.TB) DB {
	t.Helper()
	name := "dmarcd_test_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if err := dropDatabase(onNodes, name); err != nil {
			t.Error(err)
		}
	})
	musttest.Do(t, createCluster(name))
	dsn := musttest.Get(onServer(os.Getenv(ClusterVariable), name))(t)
	return DB{Engine: "postgres", DSN: dsn}
}

// createCluster creates a database on all nodes that is a cluster of its own.
func createCluster(name string) error {
	if err := onNodes(`CREATE DATABASE ` + name); err != nil {
		return err
	}
	nodes, err := clusterNodes()
	if err != nil {
		return err
	}
	for i, node := range nodes {
		if err := runIn(node.url, name, `CREATE EXTENSION citus`); err != nil {
			return err
		}
		join := `citus_add_node`
		if i == 0 {
			join = `citus_set_coordinator_host`
		}
		if err := runIn(nodes[0].url, name, fmt.Sprintf(`SELECT %s('%s', %d)`, join, node.host, node.port)); err != nil {
			return err
		}
	}
	return nil
}

// distributedTemplate creates a migrated and distributed database on all nodes.
func distributedTemplate(name string) error {
	if err := createCluster(name); err != nil {
		return err
	}
	dsn, err := onServer(os.Getenv(ClusterVariable), name)
	if err != nil {
		return err
	}
	if err := migrate(dsn); err != nil {
		return err
	}
	s, err := store.Open(context.Background(), dsn, store.Options{})
	if err != nil {
		return err
	}
	_, err = s.Distribute(context.Background(), nil)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	// Citus keeps connections open, but a template must have none when it is copied.
	return errors.Join(
		onNodes(`ALTER DATABASE `+name+` WITH ALLOW_CONNECTIONS false`),
		onNodes(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '`+name+`'`))
}

// node is a server of the cluster.
type node struct {
	url  string
	host string
	port int
}

// clusterNodes returns the servers of the cluster, the coordinator first.
func clusterNodes() (nodes []node, err error) {
	server := os.Getenv(ClusterVariable)
	db, err := sql.Open("pgx", server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(context.Background(), `SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND noderole = 'primary' ORDER BY groupid`)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of the Citus cluster in %s: %w", ClusterVariable, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports errors
	for rows.Next() {
		var n node
		if err := rows.Scan(&n.host, &n.port); err != nil {
			return nil, err
		}
		dsn, err := url.Parse(server)
		if err != nil {
			return nil, err
		}
		dsn.Host = net.JoinHostPort(n.host, strconv.Itoa(n.port))
		n.url = dsn.String()
		nodes = append(nodes, n)
	}
	return nodes, rows.Err()
}

// onNodes runs a statement on each node of the cluster.
func onNodes(statement string) error {
	nodes, err := clusterNodes()
	for _, node := range nodes {
		err = errors.Join(err, runIn(node.url, "postgres", statement))
	}
	return err
}
