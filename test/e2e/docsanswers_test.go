package e2e_test

import (
	"net/http"
	"testing"
)

// TestDocumentationHasNoParameters sends a parameter to what needs no token.
func TestDocumentationHasNoParameters(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		for _, path := range []string{"/openapi.json?version=3", "/docs?page=2"} {
			answer := s.send(request{method: http.MethodGet, path: path})
			answer.wantStatus(t, http.StatusUnprocessableEntity)
			if got := answer.header.Get("Dmarcd-Error"); got != "unknown_parameter" {
				t.Errorf("%s: got the code %q, want unknown_parameter", path, got)
			}
		}
	})
}
