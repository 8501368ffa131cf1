package site

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/dmarcd/dmarcd/internal/httproute"
)

// The assets by the names that templates use.
const (
	styleSheet   = "style.css"
	moduleScript = "app.js"
	chartScript  = "charts.js"
	licenseText  = "licenses.txt"
)

// asset is an immutable file: its name contains a hash of its content.
type asset struct {
	name    string // with the hash
	mime    string
	content []byte
	packed  func() []byte // compressed with gzip on first use
}

type assets struct {
	byName   map[string]asset // by name with the hash
	bySource map[string]asset // by name in templates
}

// loadAssets reads the static files. It concatenates our style sheets, and our modules:
// they import nothing, and each is in its own block. Those in built may be missing.
func loadAssets(files fs.FS) (*assets, error) {
	a := &assets{byName: map[string]asset{}, bySource: map[string]asset{}}
	style, err := joinFiles(files, "assets/style", "", "")
	if err != nil {
		return nil, err
	}
	script, err := joinFiles(files, "assets/modules", "{\n", "}\n")
	if err != nil {
		return nil, err
	}
	icon, err := fs.ReadFile(files, "assets/icon.svg")
	if err != nil {
		return nil, fmt.Errorf("read the assets: %w", err)
	}
	a.add(styleSheet, style)
	a.add(moduleScript, script)
	a.add("icon.svg", icon)
	for _, name := range []string{chartScript, licenseText} {
		content, err := fs.ReadFile(files, "built/"+name)
		switch {
		case err == nil:
			a.add(name, content)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("read the assets: %w", err)
		}
	}
	return a, nil
}

func joinFiles(files fs.FS, folder, before, after string) ([]byte, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, fmt.Errorf("read the assets: %w", err)
	}
	var joined bytes.Buffer
	for _, entry := range entries {
		content, err := fs.ReadFile(files, path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the assets: %w", err)
		}
		joined.WriteString(before)
		joined.Write(content)
		joined.WriteString(after)
	}
	return joined.Bytes(), nil
}

func (a *assets) add(source string, content []byte) {
	sum := sha256.Sum256(content)
	extension := path.Ext(source)
	file := asset{
		name:    strings.TrimSuffix(source, extension) + "-" + hex.EncodeToString(sum[:6]) + extension,
		mime:    mimeOf(extension),
		content: content,
		packed:  sync.OnceValue(func() []byte { return compress(content, gzip.BestCompression) }),
	}
	a.byName[file.name], a.bySource[source] = file, file
}

func mimeOf(extension string) string {
	switch extension {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}

// url returns the path of an asset, or "" if it was not built.
func (a *assets) url(source string) string {
	file, ok := a.bySource[source]
	if !ok {
		return ""
	}
	return Prefix + "/static/" + file.name
}

// Static serves an asset. Browsers may cache it forever: other content has another name.
func Static(c *Call) error {
	file, ok := c.site.options.Files.assets.byName[c.Params.Get("name")]
	if !ok {
		return ErrNoSuchPage
	}
	tag := `"` + file.name + `"`
	h := c.W.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := file.content
	if httproute.AcceptsGzip(c.R) {
		h.Set("Content-Encoding", "gzip")
		body = file.packed()
		tag = `"` + file.name + `-gzip"`
	}
	h.Set("ETag", tag)
	if strings.Contains(c.R.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", file.mime)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = c.W.Write(body) // the client may be gone
	return nil
}
