package intake

import (
	"context"
	"crypto/sha256"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/dmarcd/dmarcd"
)

const (
	// packWindow is how far back the compression looks. It bounds the memory of
	// packing and unpacking; a report repeats itself at a much shorter distance.
	packWindow = 512 << 10
	// unpackMemory bounds what reading an original back may take.
	unpackMemory = 8 << 20
)

// packer compresses originals. Its encoders have large tables and are used again.
type packer struct{ idle sync.Pool }

// pack compresses the content of a message into a copy, and returns what tells of it.
// It ends early with the error of ctx, of the content, or of the copy.
func (p *packer) pack(ctx context.Context, m Message, to *Copy) (dmarcd.Original, error) {
	encoder, ok := p.idle.Get().(*zstd.Encoder)
	if !ok {
		var err error
		encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dmarcd.Original{}, err
		}
	}
	encoder.Reset(to)
	// Without this the pool would keep the copy alive.
	defer func() { encoder.Reset(nil); p.idle.Put(encoder) }()
	hash := sha256.New()
	content := stoppable{io.TeeReader(io.NewSectionReader(m.Content, 0, m.Size), hash), ctx.Err}
	size, err := encoder.ReadFrom(content)
	if err != nil {
		return dmarcd.Original{}, err
	}
	if err := encoder.Close(); err != nil {
		return dmarcd.Original{}, err
	}
	return dmarcd.Original{
		Hash: dmarcd.Hash(hash.Sum(nil)), Size: size,
		Packed: func() io.Reader { return to.Reader() }, PackedSize: to.Size(),
	}, nil
}

// Unpack reads the bytes of an original back from their packed form. Bytes that are
// not what was packed give an error when they are read.
func Unpack(packed io.Reader) io.Reader {
	// One goroutine, the caller's, so that nothing has to be closed.
	decoder, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(unpackMemory), zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return stoppable{nil, func() error { return err }}
	}
	return decoder
}
