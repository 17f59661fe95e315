package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// network is everything that passes the loopback interface of a network namespace.
type network struct {
	socket int
	over   atomic.Bool
	done   sync.WaitGroup

	file    bytes.Buffer // as libpcap writes it
	streams map[direction]*tcpStream
}

// direction is one direction of a TCP connection.
type direction struct{ from, to string }

// tcpStream is what was sent in it.
type tcpStream struct {
	next    uint32
	begun   bool
	gap     bool // something was not recorded
	payload []byte
}

// The settings of the socket and the format that package syscall does not have.
const (
	allProtocols  = 0x0300 // ETH_P_ALL in network order
	outgoing      = 4      // PACKET_OUTGOING: on loopback everything comes in too
	forceBuffer   = 33     // SO_RCVBUFFORCE
	largestPacket = 256 << 10
	ethernet      = 14
)

// recordLoopback records until stop is called.
func recordLoopback(t *testing.T) *network {
	t.Helper()
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	r := &network{streams: map[direction]*tcpStream{}}
	if r.socket, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, allProtocols); err != nil {
		t.Fatal(err)
	}
	_ = syscall.SetsockoptInt(r.socket, syscall.SOL_SOCKET, forceBuffer, 64<<20) // else what is lost is a gap
	timeout := syscall.NsecToTimeval(int64(50 * time.Millisecond))
	if err := syscall.SetsockoptTimeval(r.socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &timeout); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(r.socket, &syscall.SockaddrLinklayer{Protocol: allProtocols, Ifindex: lo.Index}); err != nil {
		t.Fatal(err)
	}
	for _, field := range []any{uint32(0xa1b2c3d4), uint16(2), uint16(4), uint32(0), uint32(0), uint32(largestPacket), uint32(1)} {
		_ = binary.Write(&r.file, binary.LittleEndian, field) // a bytes.Buffer takes everything
	}
	r.done.Go(r.run)
	return r
}

func (r *network) run() {
	packet := make([]byte, largestPacket)
	for {
		n, from, err := syscall.Recvfrom(r.socket, packet, 0)
		if err != nil {
			if r.over.Load() {
				return
			}
			continue // nothing has passed for a while
		}
		if at, is := from.(*syscall.SockaddrLinklayer); is && at.Pkttype == outgoing {
			continue
		}
		r.add(packet[:n])
	}
}

// stop ends the recording once nothing more has passed for a while.
func (r *network) stop() {
	r.over.Store(true)
	r.done.Wait()
	_ = syscall.Close(r.socket)
}

// add adds a packet to the file, and its payload to its stream.
func (r *network) add(packet []byte) {
	now := time.Now()
	for _, field := range []uint32{uint32(now.Unix()), uint32(now.Nanosecond() / 1000), uint32(len(packet)), uint32(len(packet))} {
		_ = binary.Write(&r.file, binary.LittleEndian, field) // a bytes.Buffer takes everything
	}
	r.file.Write(packet)
	if len(packet) < ethernet+20 || binary.BigEndian.Uint16(packet[12:]) != 0x0800 || packet[ethernet+9] != syscall.IPPROTO_TCP {
		return // no TCP over IPv4
	}
	ip := packet[ethernet:]
	length := int(binary.BigEndian.Uint16(ip[2:])) // 0 of one that is longer than the field can say
	if length == 0 || length > len(ip) {
		length = len(ip)
	}
	tcp := ip[int(ip[0]&15)*4 : length]
	place := func(host []byte, port []byte) string {
		return fmt.Sprintf("%s:%d", net.IP(host), binary.BigEndian.Uint16(port))
	}
	key := direction{place(ip[12:16], tcp[0:2]), place(ip[16:20], tcp[2:4])}
	s := r.streams[key]
	if s == nil {
		s = &tcpStream{}
		r.streams[key] = s
	}
	s.add(binary.BigEndian.Uint32(tcp[4:]), tcp[13]&2 != 0, tcp[int(tcp[12]>>4)*4:])
}

// add appends what has not been seen.
func (s *tcpStream) add(seq uint32, syn bool, data []byte) {
	if syn {
		*s = tcpStream{next: seq + 1, begun: true, payload: s.payload}
		return
	}
	if ahead := int32(seq - s.next); ahead > 0 && len(data) > 0 {
		s.gap = true
	} else if seen := int(-ahead); seen > 0 {
		data = data[min(seen, len(data)):]
	}
	if len(data) > 0 {
		s.payload = append(s.payload, data...)
		s.next = seq + uint32(len(data))
	}
}

// notTLS returns the first bytes of a stream that are not part of a record of TLS (RFC 8446, 5.1),
// nil if there are none.
func (s *tcpStream) notTLS() []byte {
	const header, most = 5, 1<<14 + 256
	for rest := s.payload; len(rest) >= header; {
		length := int(binary.BigEndian.Uint16(rest[3:]))
		if rest[0] < 20 || rest[0] > 23 || rest[1] != 3 || rest[2] > 4 || length > most {
			return rest[:min(len(rest), 100)]
		}
		if length+header > len(rest) {
			return nil // the connection was cut
		}
		rest = rest[header+length:]
	}
	return nil
}
