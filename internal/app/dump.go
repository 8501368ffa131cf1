package app

import (
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/internal/store"
)

// dumpParameters are the parameters of a database URL that pg_dump needs to connect as dmarcd does.
// It refuses those of dmarcd's driver, and the password is not for the list of processes.
var dumpParameters = []string{
	"host", "port", "user", "dbname", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslnegotiation", "target_session_attrs",
}

// DumpCommand returns the command that backs up a PostgreSQL database to a file, without the spool,
// whose failure reports are not redacted yet. It is "" for SQLite.
func DumpCommand(database, file string) (string, error) {
	if !store.IsPostgres(database) {
		return "", nil
	}
	u, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(dumpParameters, name) {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return "pg_dump --format=custom --exclude-table-data='spool*' --file=" + shellQuoted(file) + " --dbname=" + shellQuoted(u.String()), nil
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
