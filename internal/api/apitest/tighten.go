package apitest

import (
	"encoding/json"
	"maps"
)

// tighten returns the OpenAPI document with additionalProperties: false in every object that does
// not set it, and with the responses of x-unmatched among its components. The strict mode of the library would also close objects that are open on purpose.
func tighten(document []byte) ([]byte, error) {
	var root map[string]any
	if err := json.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	if components, ok := root["components"].(map[string]any); ok {
		responses, _ := components["responses"].(map[string]any)
		unmatched, _ := root["x-unmatched"].(map[string]any)
		if responses != nil {
			maps.Copy(responses, unmatched)
		}
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
