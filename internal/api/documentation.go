package api

import "net/http"

// documentation serves the description of the interface, to machines and to
// people. It needs no token: it tells nothing of any team.
type documentation struct {
	doc  *document
	docs *docsPage
}

func newDocumentation(baseURL string) (*documentation, error) {
	doc, err := newDocument(baseURL)
	if err != nil {
		return nil, err
	}
	docs, err := newDocsPage(doc)
	if err != nil {
		return nil, err
	}
	return &documentation{doc: doc, docs: docs}, nil
}

func (d *documentation) document(c *call) error {
	writeBody(c.w, http.StatusOK, d.doc.json())
	return nil
}

func (d *documentation) page(c *call) error {
	d.docs.servePage(c.w, c.r)
	return nil
}

func (d *documentation) style(c *call) error {
	d.docs.serveStyle(c.w, c.r)
	return nil
}
