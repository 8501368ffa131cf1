package main

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

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
