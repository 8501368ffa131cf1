package ui

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Form is a form with its fields, and what was wrong with them.
type Form struct {
	// Path takes the form. Method is get where it narrows what a page shows,
	// post where it changes something.
	Path, Method string
	Fields       []Field
	Submit       string
	// Error is about the form as a whole.
	Error string
	// Inline puts the fields side by side.
	Inline bool
}

// Field is a field of a form.
type Field struct {
	Name, Label string
	// Type is one of HTML's input types, or select.
	Type        string
	Value, Hint string
	// Placeholder shows the form of an answer, not the question.
	Placeholder string
	Error       string
	// Autocomplete is HTML's attribute of that name.
	Autocomplete string
	Required     bool
	MinLength    int
	Choices      []Choice
	// Checked is for a checkbox, whose value is then "yes".
	Checked bool
}

// Choice is one of the answers of a select field.
type Choice struct{ Value, Label string }

// Filled returns the form with what the user entered, except passwords, and with
// the error at the field that it is about. It
// reports false for an error that is not about the input.
func (f Form) Filled(written url.Values, err error) (Form, bool) {
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return f, false
	}
	fields := make([]Field, len(f.Fields))
	placed := false
	for i, field := range f.Fields {
		if field.Type != "password" {
			field.Value = written.Get(field.Name)
			field.Checked = field.Value != ""
		}
		if field.Name == invalid.Field {
			field.Error, placed = invalid.Message, true
		}
		fields[i] = field
	}
	f.Fields = fields
	if !placed {
		f.Error = invalid.Message
	}
	return f, true
}

// Choices makes the answers of a select whose labels are its values.
func Choices[S ~string](all ...S) []Choice {
	list := make([]Choice, len(all))
	for i, s := range all {
		list[i] = Choice{Value: string(s), Label: string(s)}
	}
	return list
}

func sortChoices(list []Choice) {
	slices.SortFunc(list, func(a, b Choice) int { return strings.Compare(a.Value, b.Value) })
}
