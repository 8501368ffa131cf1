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
	// packWindow is the window of the compression. It bounds memory; reports repeat within
	// much shorter distances.
	packWindow = 512 << 10
	// unpackMemory limits the memory for decompression.
	unpackMemory = 8 << 20
)

// packer compresses originals. It reuses encoders, which have large tables.
type packer struct{ idle sync.Pool }

// pack compresses the content of a message into a copy, and describes it. It stops at an error
// of ctx, the content or the copy.
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
	// Reset, or the pool would keep the copy alive.
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

// Unpack decompresses an original. Damaged data returns an error on read.
func Unpack(packed io.Reader) io.Reader {
	// A single goroutine, that of the caller, needs no Close.
	decoder, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(unpackMemory), zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return stoppable{nil, func() error { return err }}
	}
	return decoder
}
