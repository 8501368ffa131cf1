package daemon

import (
	"bytes"
	"sync"
)

// maxOutput is the number of bytes stored of an output.
const maxOutput = 64 << 20

// Output stores the end of an output, up to maxOutput. It is safe for concurrent use.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buffer.Len() > maxOutput {
		o.buffer.Next(maxOutput / 2)
	}
	return o.buffer.Write(p)
}

// String returns the stored output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func (o *Output) tail(n int) string {
	all := o.String()
	return all[max(0, len(all)-n):]
}
