package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// KeptCheck is an entry of a domain's history: a check, which came out the same
// from FirstAt to LastAt, and what was different from the one before.
type KeptCheck struct {
	ID      string `json:"id"`
	FirstAt string `json:"first_at"`
	LastAt  string `json:"last_at"`
	Check
	Changes []Change `json:"changes"`
}

// NewKeptCheck returns the shape of an entry from the texts that Document and
// Changes made.
func NewKeptCheck(k dmarcd.KeptCheck) (KeptCheck, error) {
	shape := KeptCheck{ID: k.ID.String(), FirstAt: Time(k.FirstAt), LastAt: Time(k.LastAt), Changes: []Change{}}
	if err := json.Unmarshal([]byte(k.Document), &shape.Check); err != nil {
		return KeptCheck{}, fmt.Errorf("read check %s: %w", k.ID, err)
	}
	shape.CheckedAt = shape.LastAt
	if k.Changes != "" {
		if err := json.Unmarshal([]byte(k.Changes), &shape.Changes); err != nil {
			return KeptCheck{}, fmt.Errorf("read the changes of check %s: %w", k.ID, err)
		}
	}
	return shape, nil
}

// Document returns a full check as it is kept.
func Document(c dmarcd.Check) string { return encode(NewCheck(c)) }

// encode never fails: our own shapes can be encoded. It leaves < > & readable.
func encode(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return text.String()
}

// Change is one difference between two checks. Path names the member, such as
// dmarc.record or dkim.google.bits. Of the tree of SPF only records are compared
// that terms of both checks lead to, each once and wherever it is in the tree:
// spf.tree.include:_spf.example.com.record. What else is different in the tree
// follows from these and from spf.record.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before"` // "" where it was not there
	After  string `json:"after"`  // "" where it is not any more
}

// passedOver are members that differ without a change in the DNS, or follow from
// others.
var passedOver = []string{"checked_at", "next_step", "dmarc.queries"}

// Changes compares two documents and returns what is different, as it is kept;
// "" where nothing is, or where the first document is "". What either side could
// not see is no difference.
func Changes(before, after string) string {
	if before == "" {
		return ""
	}
	was, is := flatten(before), flatten(after)
	paths := map[string]bool{}
	for path := range was.values {
		paths[path] = true
	}
	for path := range is.values {
		paths[path] = true
	}
	var changes []Change
	for path := range paths {
		if was.values[path] != is.values[path] && !was.hides(path) && !is.hides(path) && !followsFromRecord(path, was, is) {
			changes = append(changes, Change{Path: path, Before: was.values[path], After: is.values[path]})
		}
	}
	if len(changes) == 0 {
		return ""
	}
	slices.SortFunc(changes, func(a, b Change) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return encode(changes)
}

// flat is a document as one value for each path.
type flat struct {
	values map[string]string
	unseen []string // the paths of what was inconclusive
}

func flatten(document string) flat {
	f := flat{values: map[string]string{}}
	decoder := json.NewDecoder(bytes.NewReader([]byte(document)))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err == nil {
		f.add("", root)
	}
	return f
}

// treePath is where the terms of SPF records are.
const treePath = "spf.tree"

// followsFromRecord reports whether the path is that of a record in the tree of SPF
// that only one of the checks has: the record that names it is different, too.
func followsFromRecord(path string, was, is flat) bool {
	return strings.HasPrefix(path, treePath+".") && (was.values[path] == "" || is.values[path] == "")
}

// hides reports whether a path lies in a part that was inconclusive, or is a
// finding about one.
func (f flat) hides(path string) bool {
	finding, isFinding := strings.CutPrefix(path, "findings.")
	return slices.ContainsFunc(f.unseen, func(part string) bool {
		if isFinding {
			// Findings are named by the part as a whole, with hyphens.
			part, _, _ = strings.Cut(strings.ReplaceAll(part, "_", "-"), ".")
			return strings.HasPrefix(finding, part+".")
		}
		return strings.HasPrefix(path, part+".")
	})
}

func below(path, member string) string {
	if path == "" {
		return member
	}
	return path + "." + member
}

func (f *flat) add(path string, value any) {
	if slices.Contains(passedOver, path) {
		return
	}
	if path == treePath {
		f.addTree(value)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if id, ok := value["id"].(string); ok {
			// Of a finding only whether it is there: its words may count days.
			f.values["findings."+id] = fmt.Sprint(value["level"])
			return
		}
		if value["status"] == "inconclusive" {
			f.unseen = append(f.unseen, path)
		}
		for member, v := range value {
			f.add(below(path, member), v)
		}
	case []any:
		for i, v := range value {
			f.add(below(path, elementName(i, v)), v)
		}
	case nil:
	default:
		f.values[path] = fmt.Sprint(value)
	}
}

// addTree adds the records that terms lead to.
func (f *flat) addTree(terms any) {
	list, _ := terms.([]any)
	for _, element := range list {
		term, _ := element.(map[string]any)
		if record, _ := term["record"].(string); record != "" {
			f.values[fmt.Sprintf("%s.%v.record", treePath, term["term"])] = record
		}
		f.addTree(term["terms"])
	}
}

// elementName names an element of a list by what it is about, so that another
// order is no change; by its place where it is about nothing.
func elementName(i int, element any) string {
	switch element := element.(type) {
	case string:
		return element
	case map[string]any:
		for _, key := range []string{"selector", "host", "term", "uri"} {
			if name, ok := element[key].(string); ok {
				return name
			}
		}
	}
	return strconv.Itoa(i)
}
