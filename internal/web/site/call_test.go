package site_test

import (
	"net/url"
	"testing"

	"github.com/dmarcd/dmarcd/internal/web/site"
)

func TestOwnPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/app/senders?days=7": "/app/senders?days=7", "//evil.example/app/": "/app/", `/app/\evil.example`: "/app/", "https://evil.example/app/": "/app/", "": "/app/",
	} {
		if got := site.OwnPath(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// TestPageNumber checks that the number of a row on any page fits into an int.
func TestPageNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "0": 1, "-3": 1, "two": 1, "2": 2, "9223372036854775807": 1, "184467440737095517": 1} {
		if got := site.PageNumber(url.Values{"page": {text}}); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
