package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// readFile returns the values in the configuration file, by Setting.Key. The extension
// determines the format.
func readFile(path string) (map[string]given, error) {
	if path == "" {
		return nil, nil
	}
	decode := decodeTOML
	switch filepath.Ext(path) {
	case ".toml":
	case ".yaml", ".yml":
		decode = decodeYAML
	default:
		return nil, fmt.Errorf("file %s: its name must end in .toml, .yaml or .yml", path)
	}
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	tree, err := decode(content)
	if err != nil {
		// Both libraries spread some messages over several lines.
		return nil, fmt.Errorf("file %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	f := fileReader{origin: "file " + path, values: make(map[string]given)}
	f.section("", tree)
	return f.values, errors.Join(f.bad...)
}

func decodeTOML(content []byte) (map[string]any, error) {
	var tree map[string]any
	err := toml.Unmarshal(content, &tree)
	return tree, err
}

func decodeYAML(content []byte) (map[string]any, error) {
	var tree map[string]any
	d := yaml.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("yaml: the file must contain one document only")
	}
	return tree, nil
}

// fileReader collects the values and errors of one file.
type fileReader struct {
	origin string
	values map[string]given
	bad    []error
}

// section reads the keys of a section, whose name ends in a dot or is empty at the top.
func (f *fileReader) section(name string, tree map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		f.entry(name+key, tree[key])
	}
}

func (f *fileReader) entry(key string, value any) {
	var keys []string
	for _, s := range Settings() {
		keys = append(keys, s.Key)
	}
	isSection := slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, key+".") })

	if tree, ok := value.(map[string]any); ok {
		f.section(key+".", tree)
		return
	}
	if isSection {
		if value != nil { // a section without keys is empty in YAML
			f.fail("%q is a section: write its settings below it", key)
		}
		return
	}
	if slices.Contains(removed, key) {
		f.bad = append(f.bad, errRemoved(f.origin+": "+key))
		return
	}
	if !slices.Contains(keys, key) {
		hint := ""
		if near := nearest(key, keys, 0); near != "" {
			hint = fmt.Sprintf(": did you mean %q?", near)
		}
		f.fail("unknown key %q%s", key, hint)
		return
	}
	if _, twice := f.values[key]; twice {
		f.fail("%q is set twice", key)
		return
	}
	text, ok := plainText(value)
	if !ok {
		f.fail("%q must be text, a number, or a list of text", key)
		return
	}
	f.values[key] = given{text: text, origin: f.origin}
}

func (f *fileReader) fail(format string, args ...any) {
	f.bad = append(f.bad, fmt.Errorf("%s: "+format, append([]any{f.origin}, args...)...))
}

// plainText writes a value as it would be written in the environment.
func plainText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return "", false
			}
			items[i] = text
		}
		return strings.Join(items, ","), true
	default:
		return "", false
	}
}
