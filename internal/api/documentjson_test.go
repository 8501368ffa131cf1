package api

// Document returns the OpenAPI 3.1 document in JSON, as a server with the base URL serves it. It
// fails if baseURL is not an absolute URL.
func Document(baseURL string) ([]byte, error) {
	d, err := newDocumentation(baseURL)
	if err != nil {
		return nil, err
	}
	return d.json.plain, nil
}
