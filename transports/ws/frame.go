package ws

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// The first bytes of frames that are not fragmented, and a bit of the second.
const (
	finText  = 0x81
	finClose = 0x88
	finPing  = 0x89
	masked   = 0x80
)

// headerBytes is the size of the longest header, with its key.
const headerBytes = 14

// appendHeader appends the header of a frame. If it is masked, key is what to mask the payload with.
func appendHeader(b []byte, first byte, size int, mask bool) (_ []byte, key [4]byte) {
	var bit byte
	if mask {
		bit = masked
	}
	switch {
	case size < 126:
		b = append(b, first, bit|byte(size))
	case size <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, first, bit|126), uint16(size))
	default:
		b = binary.BigEndian.AppendUint64(append(b, first, bit|127), uint64(size))
	}
	if mask {
		_, _ = rand.Read(key[:]) // it never fails
		b = append(b, key[:]...)
	}
	return b, key
}

// xor masks or unmasks p, which stands in the payload of its frame at an offset.
func xor(p []byte, key [4]byte, offset int) {
	for i := range p {
		p[i] ^= key[(offset+i)%len(key)]
	}
}

// checkedClose returns the frame to write for a close frame of the library: if its reason is not UTF-8, one with
// the code 1007 (RFC 6455, 8.1). The library sends the reason of its peer back as it is.
func checkedClose(frame []byte) []byte {
	payload, mask := frame[2:], frame[1]&masked != 0
	if mask {
		payload = append([]byte{}, frame[6:]...)
		xor(payload, [4]byte(frame[2:6]), 0)
	}
	if len(payload) < 2 || utf8.Valid(payload[2:]) {
		return frame
	}
	code := binary.BigEndian.AppendUint16(nil, uint16(websocket.StatusInvalidFramePayloadData))
	frame, key := appendHeader(nil, finClose, len(code), mask)
	xor(code, key, 0)
	return append(frame, code...)
}
