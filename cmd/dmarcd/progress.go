package main

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress returns a function that moves a bar on, and one that ends it. The bar
// is shown to a person who would otherwise wonder: from least things on.
func (p *program) progress(total, least int, what string) (advance func(n int), done func()) {
	if total < least || !isTerminal(p.err) {
		return func(int) {}, func() {}
	}
	bars := mpb.New(mpb.WithOutput(p.err), mpb.WithWidth(40))
	bar := bars.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(what+" "), decor.CountersNoUnit("%d / %d ")),
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
