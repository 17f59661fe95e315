//go:build unix

package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func TestEachLineIsAMessageAndEachMessageALine(t *testing.T) {
	c, in, out := pipes(t, stdio.Options{})
	_, _ = io.WriteString(in, "{\"id\":1}\n\r\nlast")
	_ = in.Close()
	for _, want := range []string{`{"id":1}`, "", "last"} {
		if got, err := receive(c); got != want || err != nil {
			t.Errorf("received: got %q %v, want %q", got, err, want)
		}
	}
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("then: got %v, want EOF", err)
	}

	// The output stays open after the end of the input.
	go func() {
		_ = c.Send(context.Background(), []byte("one"))
		_ = c.SendBatch(context.Background(), [][]byte{[]byte("two"), {}, []byte("four")})
		_ = c.Close(link.Reason{Cause: link.Normal})
	}()
	if got, _ := io.ReadAll(out); string(got) != "one\ntwo\n\nfour\n" {
		t.Errorf("sent: got %q, want a line for each message", got)
	}
}

func TestASentMessageMayBeOverwrittenAtOnce(t *testing.T) {
	c, _, out := pipes(t, stdio.Options{})
	var want string
	var batch [][]byte
	for _, size := range []int{1, 5_000, 70_000, 3, 40_000, 40_000} {
		batch = append(batch, []byte(strings.Repeat("x", size)))
		want += strings.Repeat("x", size) + "\n"
	}
	go func() {
		for _, m := range batch {
			own := bytes.Clone(m)
			_ = c.Send(context.Background(), own)
			clear(own)
		}
		_ = c.SendBatch(context.Background(), batch)
		for _, m := range batch {
			clear(m)
		}
		_ = c.Close(link.Reason{Cause: link.Normal})
	}()
	if got, _ := io.ReadAll(out); string(got) != want+want {
		t.Errorf("got %d bytes, want the %d that were sent", len(got), len(want+want))
	}
}

func TestALineBreakInAMessageDoesNotBreakTheLine(t *testing.T) {
	c, _, out := pipes(t, stdio.Options{})
	pretty := "{\n\t\"a\": 1,\r\n\t\"b\": \"" + strings.Repeat("x", 100_000) + "\"\n}"
	go func() {
		_ = c.Send(context.Background(), []byte(pretty))
		_ = c.Send(context.Background(), []byte(strings.Repeat("y", 100_000)))
		_ = c.Close(link.Reason{})
	}()
	got, _ := io.ReadAll(out)
	want := strings.NewReplacer("\n", " ", "\r", " ").Replace(pretty) + "\n" + strings.Repeat("y", 100_000) + "\n"
	if string(got) != want {
		t.Errorf("sent: got %d bytes with %d lines, want %d with 2", len(got), strings.Count(string(got), "\n"), len(want))
	}
	if strings.Count(pretty, "\n") != 3 {
		t.Error("the message of the caller was changed")
	}
}

func TestALineOverTheLimitIsRejectedAndTheConnectionStaysOpen(t *testing.T) {
	c, in, _ := pipes(t, stdio.Options{})
	go func() {
		_, _ = io.WriteString(in, "the head")
		for range 10_485_761 / 1009 {
			_, _ = io.WriteString(in, strings.Repeat("x", 1009))
		}
		_, _ = io.WriteString(in, strings.Repeat("x", 10_485_761%1009-16)+"the tail\nnext\n")
	}()
	_, err := receive(c)
	if r := rejectOf(err); r.Size != 10_485_761 || r.Limit != 10_485_760 || r.Cause != link.TooLarge {
		t.Errorf("a line of 10,485,761 bytes: got %v, want it rejected with its size and the limit", err)
	} else if !strings.HasPrefix(r.Head, "the headxxx") || !strings.HasSuffix(r.Tail, "xxxthe tail") || len(r.Head) != 256 || len(r.Tail) != 256 {
		t.Errorf("its ends: got %q and %q, want 256 bytes of each", r.Head, r.Tail)
	}
	if got, err := receive(c); got != "next" {
		t.Errorf("the line after it: got %q %v, want next", got, err)
	}
}

func TestCloseWakesReceiveAndSend(t *testing.T) {
	for name, open := range map[string]func() *stdio.Conn{
		"pipes": func() *stdio.Conn {
			c, _, _ := pipes(t, stdio.Options{})
			return c
		},
		"a socket": func() *stdio.Conn {
			a, _ := sockets(t)
			return a
		},
		"files that cannot be polled": func() *stdio.Conn {
			c, _, _ := blocking(t)
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open()
			errs := make(chan error, 2)
			go func() { _, err := receive(c); errs <- err }()
			go func() {
				for {
					if err := c.Send(context.Background(), make([]byte, 100_000)); err != nil {
						errs <- err
						return
					}
				}
			}()
			_ = c.Close(link.Reason{Cause: link.Normal})
			for range 2 {
				if err := <-errs; !errors.Is(err, net.ErrClosed) {
					t.Errorf("a running call: got %v, want net.ErrClosed", err)
				}
			}
			if _, err := receive(c); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Receive afterwards: got %v, want net.ErrClosed", err)
			}
		})
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	c, _, _ := pipes(t, stdio.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { _, err := c.Receive(ctx); got <- err }()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive: got %v, want context.Canceled", err)
	}
}

// blocking returns a connection over pipes in blocking mode, which cannot be polled.
func blocking(t *testing.T) (c *stdio.Conn, in, out *os.File) {
	t.Helper()
	var a, b [2]int
	if err := errors.Join(syscall.Pipe(a[:]), syscall.Pipe(b[:])); err != nil {
		t.Fatal(err)
	}
	file := func(fd int) *os.File { return os.NewFile(uintptr(fd), "pipe") }
	in, out = file(a[1]), file(b[0])
	t.Cleanup(func() { // which also ends the goroutines that Close left
		_ = in.Close()
		_ = out.Close()
	})
	return stdio.Files(file(a[0]), file(b[1]), stdio.Options{}), in, out
}

func TestFilesThatCannotBePolledExchangeLines(t *testing.T) {
	c, in, out := blocking(t)
	r := bufio.NewReader(out)
	for i := range 100 {
		m := fmt.Sprint(i, strings.Repeat("x", i*100))
		go func() { _, _ = io.WriteString(in, m+"\n") }()
		if got, err := receive(c); got != m || err != nil {
			t.Fatalf("received: got %q %v, want %q", got, err, m)
		}
		sent := make(chan error)
		go func() { sent <- c.Send(context.Background(), []byte(m)) }()
		if got, err := r.ReadString('\n'); got != m+"\n" {
			t.Fatalf("sent: got %q %v, want %q", got, err, m)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	_ = in.Close()
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("at the end of the input: got %v, want EOF", err)
	}
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("a second time: got %v, want EOF", err)
	}
	_ = out.Close()
	if err := c.Send(t.Context(), []byte("unread")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("with a closed output: got %v, want a broken pipe", err)
	}
	_ = c.Close(link.Reason{})
}

// sockets returns both ends of a Unix socket.
func sockets(tb testing.TB) (server, client *stdio.Conn) {
	tb.Helper()
	l, err := stdio.Listen(socketPath(tb), stdio.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("unix", l.Path())
	if err != nil {
		tb.Fatal(err)
	}
	client = stdio.New(c, c, stdio.Options{})
	server, err = l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = server.Close(link.Reason{}), client.Close(link.Reason{}) })
	return server, client
}

// socketPath returns a short path: that of a socket may have about a hundred bytes.
func socketPath(tb testing.TB) string {
	dir, err := os.MkdirTemp("", "dg") //nolint:usetesting // TempDir has the name of the test in it
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "hub.sock")
}

func TestASocketIsOnlyForOurUserAndRemovedAtClose(t *testing.T) {
	path := socketPath(t)
	l, err := stdio.Listen(path, stdio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v %v, want 0600", info.Mode(), err)
	}
	if _, err := stdio.Listen(path, stdio.Options{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("Listen on a socket in use: got %v, want another process reported", err)
	}
	_, _ = l.Accept() // the probe of the second Listen
	_ = l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: got %v, want net.ErrClosed", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket after Close: got %v, want it gone", err)
	}
}

func TestOnlyAStaleSocketIsReplaced(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	l, err := stdio.Listen(path, stdio.Options{})
	if err != nil {
		t.Fatalf("Listen over a stale socket: got %v, want nil", err)
	}
	_ = l.Close()

	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stdio.Listen(path, stdio.Options{}); err == nil {
		t.Error("Listen over a file: got nil, want an error")
	}
	if got, _ := os.ReadFile(path); string(got) != "content" {
		t.Errorf("the file: got %q, want it untouched", got)
	}
}

func TestTheLastMessageOfALinkReachesThePeerOverASocket(t *testing.T) {
	server, client := sockets(t)
	l := link.New(server, link.Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		l.Run(context.Background(), func(ctx context.Context, m []byte) error {
			_ = l.Send(ctx, []byte("not like that"), 13)
			return link.Because(link.Protocol, "bad line")
		}, nil)
	})
	// More than the link reads before it closes.
	_ = client.SendBatch(t.Context(), [][]byte{[]byte("bad"), []byte("unread"), []byte("unread")})
	if got, err := receive(client); got != "not like that" {
		t.Errorf("received: got %q %v, want the last message", got, err)
	}
	wg.Wait()
}
