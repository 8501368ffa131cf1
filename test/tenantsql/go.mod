// A module of its own: the parser needs a C compiler, and the daemon must not.
module github.com/dmarcd/dmarcd/test/tenantsql

go 1.26

require github.com/pganalyze/pg_query_go/v6 v6.2.5

require google.golang.org/protobuf v1.33.0
