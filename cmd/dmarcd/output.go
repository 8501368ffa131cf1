package main

import (
	"encoding/json"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/dmarcd/dmarcd/client"
)

// jsonFlag adds the flag --json.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// jsonArray prints the elements of a JSON array one by one.
type jsonArray struct {
	out  io.Writer
	some bool
}

// next begins an element.
func (j *jsonArray) next() error {
	separator := "[\n"
	if j.some {
		separator = ",\n"
	}
	j.some = true
	_, err := io.WriteString(j.out, separator)
	return err
}

func (j *jsonArray) end() error {
	closing := "]\n"
	if !j.some {
		closing = "[]\n"
	}
	_, err := io.WriteString(j.out, closing)
	return err
}

// printList prints a list as JSON or as a table.
func printList[T any](w io.Writer, asJSON bool, list []T, heading []string, row func(T) []string) error {
	if asJSON {
		return printJSON(w, list)
	}
	return printTable(w, heading, convert(list, row))
}

// printTable prints rows in columns. It replaces control characters: a cell may contain a
// record from DNS.
func printTable(w io.Writer, heading []string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		if _, err := io.WriteString(table, strings.Join(convert(row, printable), "\t")+"\n"); err != nil {
			return err
		}
	}
	return table.Flush()
}

// orDash returns "-" for a missing value.
func orDash[T ~string](value *T) string {
	if value == nil || *value == "" {
		return "-"
	}
	return string(*value)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// convert maps a slice. The result is never nil, so JSON lists are never null.
func convert[A, B any](list []A, f func(A) B) []B {
	converted := make([]B, len(list))
	for i, a := range list {
		converted[i] = f(a)
	}
	return converted
}

// first returns at most limit items of a list, or its first error.
func first[T any](limit int, items iter.Seq2[T, error]) ([]T, error) {
	return client.Collect(func(yield func(T, error) bool) {
		n := 0
		for item, err := range items {
			if n++; !yield(item, err) || n == limit {
				return
			}
		}
	})
}

// progress returns functions to advance and end a progress bar. No bar is shown for fewer
// than least items.
func (p *program) progress(total, least int, what string) (advance func(n int), done func()) {
	if total < least {
		return func(int) {}, func() {}
	}
	return p.bar(int64(total), decor.Name(what+" "), decor.CountersNoUnit("%d / %d "))
}

// progressBytes is progress for bytes, with the transfer rate.
func (p *program) progressBytes(total int64, what string) (advance func(n int), done func()) {
	return p.bar(total, decor.Name(what+" "), decor.CountersKibiByte("% .1f / % .1f "),
		decor.EwmaSpeed(decor.SizeB1024(0), "% .1f ", 30))
}

func (p *program) bar(total int64, before ...decor.Decorator) (advance func(n int), done func()) {
	if !isTerminal(p.err) {
		return func(int) {}, func() {}
	}
	bars := mpb.New(mpb.WithOutput(p.err), mpb.WithWidth(40))
	bar := bars.AddBar(total, mpb.PrependDecorators(before...),
		mpb.AppendDecorators(decor.Percentage(), decor.Name("  "), decor.EwmaETA(decor.ET_STYLE_GO, 30)))
	began := time.Now()
	return func(n int) {
			bar.EwmaIncrBy(n, time.Since(began))
			began = time.Now()
		}, func() {
			bar.Abort(false)
			bars.Wait()
		}
}
