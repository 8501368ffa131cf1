package apitest

import "encoding/json"

// tighten returns the OpenAPI document with every object closed that does not
// say for itself whether it may have additional properties.
//
// The strict mode of the library would do the same, but takes no heed of an
// object that is open on purpose.
func tighten(document []byte) ([]byte, error) {
	var root map[string]any
	if err := json.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	closeObjects(root)
	return json.Marshal(root)
}

func closeObjects(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			closeObjects(item)
		}
	case map[string]any:
		_, set := node["additionalProperties"]
		if node["type"] == "object" && !set {
			node["additionalProperties"] = false
		}
		for _, member := range node {
			closeObjects(member)
		}
	}
}
