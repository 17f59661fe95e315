package bus

import (
	"encoding/binary"
	"errors"
)

// A packet is a message on the bus. Its numbers are big-endian.
//
//	1 byte   version
//	1 byte   flags
//	8 bytes  offset of its first byte in the stream of the sender
//	8 bytes  how many bytes of the other stream have arrived there
//	8 bytes  how many of these were read
//	8 bytes  epoch of the sender
//	8 bytes  number of its connection
//	8 bytes  number of the connection of the other end, as far as it is known; else 0
//	1 byte   length of the name
//	n bytes  name of the sender
//	...      bytes of the stream
type packet struct {
	flags             byte
	offset, got, read uint64
	conn, peer        uint64
	from              Life
	data              []byte
}

const (
	version = 1
	header  = 51
)

// The flags.
const (
	flagAgain = 1 << iota // bytes are missing: send them again
	flagClose             // the sender has closed the connection
)

// Life is one end of a connection: a hub, and which of its lives.
type Life struct {
	Hub   string
	Epoch uint64
}

// append appends the packet to b.
func (p *packet) append(b []byte) []byte {
	b = append(b, version, p.flags)
	b = binary.BigEndian.AppendUint64(b, p.offset)
	b = binary.BigEndian.AppendUint64(b, p.got)
	b = binary.BigEndian.AppendUint64(b, p.read)
	b = binary.BigEndian.AppendUint64(b, p.from.Epoch)
	b = binary.BigEndian.AppendUint64(b, p.conn)
	b = binary.BigEndian.AppendUint64(b, p.peer)
	b = append(b, byte(len(p.from.Hub)))
	return append(append(b, p.from.Hub...), p.data...)
}

var errPacket = errors.New("the packet is cut off or of another version")

// parse reads a packet, which shares memory with b.
func parse(b []byte) (p packet, err error) {
	if len(b) < header || b[0] != version || len(b) < header+int(b[header-1]) {
		return p, errPacket
	}
	p.flags = b[1]
	p.offset = binary.BigEndian.Uint64(b[2:])
	p.got = binary.BigEndian.Uint64(b[10:])
	p.read = binary.BigEndian.Uint64(b[18:])
	p.from.Epoch = binary.BigEndian.Uint64(b[26:])
	p.conn = binary.BigEndian.Uint64(b[34:])
	p.peer = binary.BigEndian.Uint64(b[42:])
	end := header + int(b[header-1])
	p.from.Hub, p.data = string(b[header:end]), b[end:]
	return p, nil
}
