package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/httproute"
)

// documentJSON is openapi.yaml in JSON, written by `make gen`. built has the viewer of the page,
// compressed by scripts/build-assets.sh; without npm it is empty. plainPage is what the page shows
// without the viewer.
var (
	//go:embed openapi.json
	documentJSON []byte
	//go:embed all:built
	built embed.FS
	//go:embed docs.html.tmpl
	plainPage string
)

// writtenURL is the address of the server in openapi.yaml and the file generated from it.
const writtenURL = "http://127.0.0.1:8080/api"

// viewerFiles are the files of the viewer with their media types. The first two must be there for
// the page to use it.
var viewerFiles = []struct{ name, mime string }{
	{"viewer.js", "text/javascript; charset=utf-8"},
	{"viewer.css", "text/css; charset=utf-8"},
	{"licenses.txt", "text/plain; charset=utf-8"},
}

// documentation serves the OpenAPI document and its page. It needs no token: it contains no data
// of any team.
type documentation struct {
	json, html *file
	viewer     map[string]*file // empty if it was not built
	policy     string           // Content-Security-Policy of the page
}

// file is a file with what is needed to serve it.
type file struct {
	mime, tag     string
	packed, plain []byte // compressed with gzip, and as it is; plain is nil for built files
}

// newDocumentation returns the documentation of the API at baseURL, an absolute URL.
func newDocumentation(baseURL string) (*documentation, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL of the OpenAPI document: %w", err)
	}
	if base.Scheme == "" || base.Host == "" {
		return nil, fmt.Errorf("base URL of the OpenAPI document: %q is not absolute", baseURL)
	}
	// RFC 3986 §6.2.3: an empty path is "/". The paths of the document begin with a slash, and an
	// OpenAPI client concatenates the two.
	quoted, err := json.Marshal(strings.TrimSuffix(baseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("base URL of the OpenAPI document: %w", err)
	}
	d := &documentation{viewer: map[string]*file{}}
	for _, f := range viewerFiles {
		packed, err := fs.ReadFile(built, "built/"+f.name+".gz")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the viewer of the API: %w", err)
		}
		d.viewer[f.name] = newFile(f.mime, nil, packed)
	}
	d.json = packFile("application/json", bytes.ReplaceAll(documentJSON, []byte(writtenURL), quoted[1:len(quoted)-1]))
	page, err := d.renderPage()
	if err != nil {
		return nil, err
	}
	d.html = packFile("text/html; charset=utf-8", page)
	// Without inline scripts and other servers. The viewer puts style elements into the page. The page
	// may have another origin than the base URL: both may receive requests.
	styles := "'self'"
	if d.hasViewer() {
		styles += " 'unsafe-inline'"
	}
	d.policy = "default-src 'none'; script-src 'self'; style-src " + styles + "; img-src 'self' data:; connect-src 'self' " +
		base.Scheme + "://" + base.Host + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return d, nil
}

func (d *documentation) hasViewer() bool {
	return d.viewer["viewer.js"] != nil && d.viewer["viewer.css"] != nil
}

func newFile(mime string, plain, packed []byte) *file {
	sum := sha256.Sum256(packed)
	// Weak: it is the same for both codings.
	return &file{mime: mime, tag: `W/"` + hex.EncodeToString(sum[:12]) + `"`, packed: packed, plain: plain}
}

func packFile(mime string, plain []byte) *file {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(plain) // a buffer does not fail
	_ = w.Close()
	return newFile(mime, plain, packed.Bytes())
}

// pageOperation is an operation on the page without the viewer.
type pageOperation struct {
	Method, Path, Summary, Scope string
}

// renderPage returns the page: the operations, which the viewer replaces.
func (d *documentation) renderPage() ([]byte, error) {
	page, err := template.New("docs").Parse(plainPage)
	if err != nil {
		return nil, fmt.Errorf("read the page of the API: %w", err)
	}
	type section struct {
		Name, Description string
		Operations        []pageOperation
	}
	data := struct {
		Viewer bool
		Tags   []section
	}{Viewer: d.hasViewer()}
	document, err := readDocument()
	if err != nil {
		return nil, err
	}
	for _, tag := range document.Tags {
		s := section{Name: tag.Name, Description: tag.Description}
		for path, item := range document.Paths {
			for method, o := range item.operations() {
				if o == nil || !slices.Contains(o.Tags, tag.Name) {
					continue
				}
				s.Operations = append(s.Operations, pageOperation{Method: method, Path: path, Summary: o.Summary, Scope: o.Scope})
			}
		}
		slices.SortFunc(s.Operations, func(a, b pageOperation) int {
			return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
		})
		data.Tags = append(data.Tags, s)
	}
	var html bytes.Buffer
	if err := page.Execute(&html, data); err != nil {
		return nil, fmt.Errorf("render the page of the API: %w", err)
	}
	return html.Bytes(), nil
}

func (d *documentation) document(c *call) error { return d.json.write(c) }

func (d *documentation) page(c *call) error {
	c.w.Header().Set("Content-Security-Policy", d.policy)
	c.w.Header().Set("Referrer-Policy", "no-referrer")
	return d.html.write(c)
}

// viewerFile serves a file of the viewer.
func (d *documentation) viewerFile(c *call) error {
	f, ok := d.viewer[c.params.Get("file")]
	if !ok {
		return errNoSuchPath
	}
	return f.write(c)
}

// write answers with the file, compressed if the client accepts it, or with 304 if the client has it.
func (f *file) write(c *call) error {
	h := c.w.Header()
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	// The page and its files change together, with the version of the server.
	h.Set("Cache-Control", "no-cache")
	if hasTag(c.r.Header.Values("If-None-Match"), f.tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", f.mime)
	h.Set("X-Content-Type-Options", "nosniff")
	if httproute.AcceptsGzip(c.r) {
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(f.packed)))
		_, _ = c.w.Write(f.packed) // the client has disconnected
		return nil
	}
	if f.plain != nil {
		h.Set("Content-Length", strconv.Itoa(len(f.plain)))
		_, _ = c.w.Write(f.plain)
		return nil
	}
	r, err := gzip.NewReader(bytes.NewReader(f.packed))
	if err != nil {
		return fmt.Errorf("read a file of the viewer: %w", err)
	}
	_, _ = io.Copy(c.w, r) //nolint:gosec // our own file, of known size
	return nil
}

// openAPI is what this package reads of its own document.
type openAPI struct {
	Tags       []struct{ Name, Description string }
	Paths      map[string]pathItem
	Components struct {
		Parameters map[string]struct{ Name, In string }
		Schemas    map[string]struct{ Properties map[string]any }
	}
}

type pathItem struct {
	Parameters                    parameters
	Get, Post, Put, Patch, Delete *operation
}

type operation struct {
	Summary    string
	Tags       []string
	Scope      string `json:"x-scope"`
	Parameters parameters

	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			}
		}
	}
}

// operations returns the operations by method; some are nil.
func (p pathItem) operations() map[string]*operation {
	return map[string]*operation{
		http.MethodGet: p.Get, http.MethodPost: p.Post, http.MethodPut: p.Put,
		http.MethodPatch: p.Patch, http.MethodDelete: p.Delete,
	}
}

// parameters are the parameters of an operation or path in the OpenAPI document, inline or as a
// reference.
type parameters []struct {
	Ref  string `json:"$ref"`
	Name string
	In   string
}

func readDocument() (document openAPI, err error) {
	if err = json.Unmarshal(documentJSON, &document); err != nil {
		return document, fmt.Errorf("read openapi.json: %w", err)
	}
	return document, nil
}

// inputs are what a route reads: the names of query parameters, headers, and members of the JSON body.
type inputs struct {
	parameters, headers, members []string
	readsBody                    bool
}

// documentedInputs returns the inputs of each route of the OpenAPI document, by its name.
func documentedInputs() (map[string]inputs, error) {
	document, err := readDocument()
	if err != nil {
		return nil, err
	}
	all := map[string]inputs{}
	for path, item := range document.Paths {
		for method, o := range item.operations() {
			if o == nil {
				continue
			}
			var in inputs
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				if target, isRef := strings.CutPrefix(p.Ref, "#/components/parameters/"); isRef {
					p.Name, p.In = document.Components.Parameters[target].Name, document.Components.Parameters[target].In
				}
				switch p.In {
				case "query":
					in.parameters = append(in.parameters, p.Name)
				case "header":
					in.headers = append(in.headers, p.Name)
				}
			}
			body := strings.TrimPrefix(o.RequestBody.Content["application/json"].Schema.Ref, "#/components/schemas/")
			in.readsBody = len(o.RequestBody.Content) > 0
			in.members = slices.Sorted(maps.Keys(document.Components.Schemas[body].Properties))
			r := route{method: method, path: path}
			all[r.name()] = in
		}
	}
	return all, nil
}
