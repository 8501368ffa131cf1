package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// minCompressed is the size below which compression gains nothing.
const minCompressed = 1024

// writeCompressed answers with a body, as gzip where the client takes it and
// it is worth it.
func writeCompressed(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed && acceptsGzip(r) {
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

// acceptsGzip reads Accept-Encoding (RFC 9110 §12.5.3). A weight of zero means
// no; the other weights do not matter where there is one coding to choose.
func acceptsGzip(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(value, ",") {
			coding, parameter, _ := strings.Cut(item, ";")
			weight, weighted := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") && (!weighted || strings.Trim(weight, "0.") != "") {
				return true
			}
		}
	}
	return false
}
