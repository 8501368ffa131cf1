package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// documentJSON and docsHTML are openapi.yaml in JSON and as a page. `make gen` writes
// them.
var (
	//go:embed openapi.json
	documentJSON []byte
	//go:embed docs.html
	docsHTML []byte
	//go:embed docs.css
	docsStyle []byte
)

// writtenURL is the address of the server in openapi.yaml and what is made from it.
const writtenURL = "http://127.0.0.1:8080/api"

// docsPolicy is the Content-Security-Policy of the page: its own style sheet
// and nothing else, no script, no frame around it.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// documentation serves the description of the interface, to machines and to
// people. It needs no token: it contains no data of any team.
type documentation struct {
	json, html []byte
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
	// RFC 3986 §6.2.3: an empty path is "/". The paths of the document bring
	// their own slash, and an OpenAPI client joins the two as they stand.
	baseURL = strings.TrimSuffix(baseURL, "/")
	quoted, err := json.Marshal(baseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL of the OpenAPI document: %w", err)
	}
	// In the commands the address is in single quotes of a POSIX shell.
	inShell := html.EscapeString(strings.ReplaceAll(baseURL, "'", `'\''`))
	page := strings.NewReplacer("&#39;"+writtenURL, "&#39;"+inShell, writtenURL, html.EscapeString(baseURL)).Replace(string(docsHTML))
	return &documentation{
		json: bytes.ReplaceAll(documentJSON, []byte(writtenURL), quoted[1:len(quoted)-1]),
		html: []byte(page),
	}, nil
}

func (d *documentation) document(c *call) error {
	writeBody(c.w, http.StatusOK, d.json)
	return nil
}

func (d *documentation) page(c *call) error {
	writeDocs(c.w, "text/html; charset=utf-8", d.html)
	return nil
}

func (d *documentation) style(c *call) error {
	writeDocs(c.w, "text/css; charset=utf-8", docsStyle)
	return nil
}

func writeDocs(w http.ResponseWriter, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Security-Policy", docsPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	// The page and its style change together, with the version of the server.
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(body) // the client has gone
}

// parameters are those of an operation or a path in the OpenAPI document, each of them
// written out or a reference.
type parameters []struct {
	Ref  string `json:"$ref"`
	Name string
	In   string
}

// queryParameters returns the names of the query parameters of each route of the OpenAPI
// document, by its name.
func queryParameters() (map[string][]string, error) {
	type operation struct{ Parameters parameters }
	var document struct {
		Paths map[string]struct {
			operation
			Get, Post, Put, Patch, Delete *operation
		}
		Components struct {
			Parameters map[string]struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(documentJSON, &document); err != nil {
		return nil, fmt.Errorf("read openapi.json: %w", err)
	}
	names := map[string][]string{}
	for path, item := range document.Paths {
		for method, o := range map[string]*operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		} {
			if o == nil {
				continue
			}
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				if target, isRef := strings.CutPrefix(p.Ref, "#/components/parameters/"); isRef {
					p.Name, p.In = document.Components.Parameters[target].Name, document.Components.Parameters[target].In
				}
				if p.In == "query" {
					r := route{method: method, path: path}
					names[r.name()] = append(names[r.name()], p.Name)
				}
			}
		}
	}
	return names, nil
}
