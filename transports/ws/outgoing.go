package ws

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// The first byte of a close frame, and the bits of the second.
const (
	finClose   = 0x88
	masked     = 0x80
	lengthBits = 0x7f
)

// outgoing follows the frames that the library writes, in order to check the reason of a close, which
// the library does not: it sends the close frame of its peer back as it is. The library writes no bytes
// of two frames at once, and the first bytes of a frame include its header.
type outgoing struct {
	left int // bytes of the frame that has begun
}

// checked returns the bytes to write for p: in place of a close frame whose reason is not UTF-8 one with the
// code 1007 (RFC 6455, 8.1).
func (o *outgoing) checked(p []byte) []byte {
	if o.left > 0 {
		o.left = max(0, o.left-len(p))
		return p
	}
	from, size := frameOf(p)
	o.left = max(0, from+size-len(p))
	if o.left > 0 || len(p) == 0 || p[0] != finClose || utf8.Valid(reasonIn(p[:from], p[from:])) {
		return p
	}
	frame := []byte{finClose, 2}
	if p[1]&masked != 0 {
		frame = append(frame, 0, 0, 0, 0) // a mask of zeros is allowed
		frame[1] |= masked
	}
	return binary.BigEndian.AppendUint16(frame, uint16(websocket.StatusInvalidFramePayloadData))
}

// frameOf returns where the payload of the frame that p begins with is, and its size; nothing if p has no
// whole header.
func frameOf(p []byte) (from, size int) {
	if len(p) < 2 {
		return len(p), 0
	}
	from, size = 2, int(p[1]&lengthBits)
	switch {
	case size == 126 && len(p) >= 4:
		from, size = 4, int(binary.BigEndian.Uint16(p[2:]))
	case size == 127 && len(p) >= 10:
		from, size = 10, int(binary.BigEndian.Uint64(p[2:])) //nolint:gosec // the library has the payload in memory
	}
	if p[1]&masked != 0 {
		from += 4
	}
	return min(from, len(p)), size
}

// reasonIn returns the reason in the payload of a close frame: what follows the code.
func reasonIn(header, payload []byte) []byte {
	if len(payload) < 2 {
		return nil
	}
	reason := append([]byte{}, payload[2:]...)
	if header[1]&masked != 0 {
		mask := header[len(header)-4:]
		for i := range reason {
			reason[i] ^= mask[(i+2)%4]
		}
	}
	return reason
}
