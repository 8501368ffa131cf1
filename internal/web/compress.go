package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/httproute"
)

// minCompressed is the size below which compression gains nothing.
const minCompressed = 1024

// writeCompressed answers with a body, as gzip where the client takes it and
// it is worth it.
func writeCompressed(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed && httproute.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = compress(body, gzip.DefaultCompression)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left cannot be told
}

func compress(body []byte, level int) []byte {
	var packed bytes.Buffer
	// Neither the level nor a buffer can be wrong.
	out, _ := gzip.NewWriterLevel(&packed, level)
	_, _ = out.Write(body)
	_ = out.Close()
	return packed.Bytes()
}
