package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/httproute"
)

// minCompressed is the size in bytes from which compression pays off.
const minCompressed = 1024

// writeCompressed writes a response, in gzip if the client accepts it and it pays off.
func writeCompressed(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed && httproute.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = compress(body, gzip.DefaultCompression)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func compress(body []byte, level int) []byte {
	var packed bytes.Buffer
	// The level is valid, and a buffer never fails.
	out, _ := gzip.NewWriterLevel(&packed, level)
	_, _ = out.Write(body)
	_ = out.Close()
	return packed.Bytes()
}
