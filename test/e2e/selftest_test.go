package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestSelfTest sends a synthetic report through the daemon. The mail servers of the
// report domain cannot be reached in the test, so it goes to the local listener.
func TestSelfTest(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		type test struct {
			Passed bool
			Stages []struct {
				Name, Detail string
				Passed       bool
			}
		}
		before := s.get("/reports").text()
		got := readAs[test](t, s.post("/domains/example.com/selftest", ""))
		var names []string
		for _, stage := range got.Stages {
			names = append(names, stage.Name)
			if passed := stage.Name != "mx" && stage.Name != "smtp"; stage.Passed != passed {
				t.Errorf("%s: got %+v", stage.Name, stage)
			}
		}
		if strings.Join(names, " ") != "mx smtp spool verification store" || got.Passed {
			t.Errorf("got %+v", got)
		}
		if after := s.get("/reports").text(); after != before {
			t.Errorf("it was counted: got %s, want %s", after, before)
		}
		if list := s.get("/insights/reports").text(); strings.Contains(list, "self-test") {
			t.Errorf("it is listed: %s", list)
		}
		s.post("/domains/unknown.example/selftest", "").wantStatus(t, http.StatusNotFound)
		s.post("/domains/example.com/selftest?x=1", "").wantStatus(t, http.StatusUnprocessableEntity)
	})
}
