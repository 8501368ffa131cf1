package api

// Document returns the OpenAPI 3.1 document in JSON, as the server whose API is at baseURL
// serves it. It fails where baseURL is not an absolute URL.
func Document(baseURL string) ([]byte, error) {
	d, err := newDocumentation(baseURL)
	if err != nil {
		return nil, err
	}
	return d.json, nil
}
