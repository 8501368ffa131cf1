package e2e_test

import (
	"net/http"
	"testing"
)

// documentationHasNoParameters sends a parameter to what needs no token.
func documentationHasNoParameters(t *testing.T, s *server) {
	for _, path := range []string{"/openapi.json?version=3", "/docs?page=2"} {
		answer := s.send(request{method: http.MethodGet, path: path})
		answer.wantStatus(t, http.StatusUnprocessableEntity)
		if got := answer.header.Get("Dmarcd-Error"); got != "unknown_parameter" {
			t.Errorf("%s: got the code %q, want unknown_parameter", path, got)
		}
	}
}
