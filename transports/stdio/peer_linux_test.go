package stdio_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func TestTheUserAtTheOtherEndOfASocketIsKnown(t *testing.T) {
	l, err := stdio.Listen(filepath.Join(t.TempDir(), "s"), stdio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := net.Dial("unix", l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(link.Reason{Cause: link.PeerGone})
	if got, ok := conn.PeerUID(); !ok || int(got) != os.Getuid() {
		t.Errorf("got %d, %v, want %d", got, ok, os.Getuid())
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe := stdio.New(r, w, stdio.Options{})
	defer pipe.Close(link.Reason{Cause: link.PeerGone})
	if got, ok := pipe.PeerUID(); ok {
		t.Errorf("a pipe: got %d, want no user", got)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	far, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	remote := stdio.New(far, far, stdio.Options{})
	defer remote.Close(link.Reason{Cause: link.PeerGone})
	if got, ok := remote.PeerUID(); ok {
		t.Errorf("a connection by TCP: got %d, want no user", got)
	}
}
