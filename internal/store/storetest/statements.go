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

// StatementsVariable names the environment variable with the path of a file. If it is set,
// stores append the statements that they run on PostgreSQL to that file, which test/tenantsql
// reads.
const StatementsVariable = "DMARCD_TEST_STATEMENTS"

// statement is a line of that file.
type statement struct {
	SQL string `json:"sql"`
	// Functions are the functions of the store that led to the statement, innermost first,
	// such as (*Team).Reports.
	Functions []string `json:"functions"`
}

// recording returns options that also append statements to the file, if there is one.
func (db DB) recording(t testing.TB, options store.Options) store.Options {
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
	observe := options.Statement // the test's own observer
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
		line, err := json.Marshal(statement{SQL: query, Functions: c.storeFunctions()})
		if err != nil {
			t.Errorf("record a statement: %v", err)
			return
		}
		if !known.lines[string(line)] {
			if _, err := file.Write(append(line, '\n')); err != nil {
				return // the test that opened the store has ended; another may write the line
			}
			known.lines[string(line)] = true
		}
		known.calls[c] = true
	}
	return options
}

// known holds the calls that stores of this process made and the lines that they wrote.
var known = struct {
	sync.Mutex
	calls map[call]bool
	lines map[string]bool
}{calls: make(map[call]bool), lines: make(map[string]bool)}

// call is a statement with the stack that led to it. Most statements run many times, and
// comparing stacks costs far less than finding the names of their functions.
type call struct {
	query   string
	callers [64]uintptr // zero after the last
}

// storeFunctions returns the functions of the store among the callers, from the innermost to
// the one that was called from outside.
func (c *call) storeFunctions() []string {
	frames := runtime.CallersFrames(c.callers[:])
	var functions []string
	for {
		frame, more := frames.Next()
		// The file decides: a closure of an inlined function is named after the function that
		// it was inlined into.
		inside := strings.HasSuffix(path.Dir(frame.File), "internal/store") && !strings.HasSuffix(frame.File, "_test.go")
		if !inside && len(functions) > 0 && !strings.HasSuffix(path.Dir(frame.File), "internal/store/db") {
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

// functionName returns the name of a function without its package, from the compiler's name
// of the function, of a closure or range-over-func body in it, or of an instance of it:
// ".../internal/store.(*Team).Reports.func1" becomes "(*Team).Reports".
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
