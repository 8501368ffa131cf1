// Package musttest ends a test at a step that fails and that the rest of the test builds on. What
// the steps return is up to the test.
package musttest

// TB is the part of testing.TB that this package uses; rapid.T has it too.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if err is not nil.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get has a test continue with the value that a function returned, or end with its error:
//
//	domains := musttest.Get(team.Domains(ctx, "", 100))(t)
func Get[T any](value T, err error) func(t TB) T {
	return func(t TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}
