package zone

import (
	"bytes"
	"net/netip"
)

// NewUnbound returns a server that does not listen.
func NewUnbound(options Options) *Server { return newServer(options) }

// Respond returns the messages that answer one.
func (s *Server) Respond(data []byte, from netip.Addr, stream bool) (replies [][]byte) {
	err := s.respond(data, from, stream, func(reply []byte) error {
		replies = append(replies, reply)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return replies
}

// RestoreBody restores a zone file whose checksum is right.
func (z *Zone) RestoreBody(body []byte) error { return z.restore(bytes.NewReader(body)) }

// SnapshotBody returns a snapshot without its checksum.
func (z *Zone) SnapshotBody() []byte {
	var file bytes.Buffer
	if err := z.write(&file); err != nil {
		panic(err)
	}
	return file.Bytes()[:file.Len()-checksumBytes]
}
