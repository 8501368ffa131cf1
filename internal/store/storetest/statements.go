package storetest

import (
	"encoding/json"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// StatementsVariable names the environment variable with a file to which the statements
// that stores run on PostgreSQL are added. test/tenantsql reads it.
const StatementsVariable = "DMARCD_TEST_STATEMENTS"

// statement is a line of that file.
type statement struct {
	SQL string `json:"sql"`
	// Functions of the store that led to the statement, the innermost first, as
	// (*Team).Reports.
	Functions []string `json:"functions"`
}

// recorded returns the options with statements added to the file, where there is one.
func (db DB) recorded(t testing.TB, options store.Options) store.Options {
	t.Helper()
	name := os.Getenv(StatementsVariable)
	if name == "" || db.Engine != "postgres" {
		return options
	}
	file := musttest.Get(os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Errorf("close the statements: %v", err)
		}
	})
	observe := options.Statement // of the test
	options.Statement = func(query string) {
		if observe != nil {
			defer observe(query)
		}
		c := call{query: query}
		runtime.Callers(2, c.callers[:])
		known.Lock()
		defer known.Unlock()
		if known.calls[c] {
			return
		}
		known.calls[c] = true
		line, err := json.Marshal(statement{SQL: query, Functions: c.storeFunctions()})
		if err != nil {
			t.Errorf("record a statement: %v", err)
			return
		}
		if known.lines[string(line)] {
			return
		}
		known.lines[string(line)] = true
		// A statement may run after the end of the test that opened the store.
		_, _ = file.Write(append(line, '\n')) // what is missing, tenantsql misses
	}
	return options
}

// known are the calls that were seen and the lines that were written by all stores of the process.
var known = struct {
	sync.Mutex
	calls map[call]bool
	lines map[string]bool
}{calls: make(map[call]bool), lines: make(map[string]bool)}

// call is a statement with the stack that led to it. Most statements run many times: to
// compare stacks costs far less than to find the names of their functions.
type call struct {
	query   string
	callers [64]uintptr // 0 behind the last
}

// storeFunctions returns the functions of the store among the callers, up to the one that
// was called from outside.
func (c *call) storeFunctions() []string {
	frames := runtime.CallersFrames(c.callers[:])
	var functions []string
	for {
		frame, more := frames.Next()
		// A closure of a function that was inlined has the name of where it went.
		inside := strings.HasSuffix(path.Dir(frame.File), "internal/store") && !strings.HasSuffix(frame.File, "_test.go")
		if !inside && len(functions) > 0 {
			return functions
		}
		if name := functionName(frame.Function); inside && (len(functions) == 0 || functions[len(functions)-1] != name) {
			functions = append(functions, name)
		}
		if !more {
			return functions
		}
	}
}

// functionName returns the part of the compiler's name that tells the function, without
// its package. A closure, the body of a loop and an instance are parts of a function.
func functionName(name string) string {
	if method := strings.LastIndex(name, "(*"); method >= 0 {
		name = name[method:]
	} else {
		_, name, _ = strings.Cut(name[strings.LastIndex(name, "/")+1:], ".")
	}
	for _, part := range []string{".func", "-range", "["} {
		name, _, _ = strings.Cut(name, part)
	}
	return name
}
