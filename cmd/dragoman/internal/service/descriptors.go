package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
)

// descriptors keeps connections from using up the file descriptors of the process. The
// kernel assigns the lowest free number, so the number of a new connection shows how many
// are in use; nothing has to be counted.
type descriptors struct {
	limit   int // of the process
	reserve int // for the journal, other files, health and refusals
	refused func(why string, remote net.Addr)
}

// newDescriptors reads the limit of the process.
func newDescriptors(refused func(why string, remote net.Addr)) (*descriptors, error) {
	limit, err := openFiles()
	if err != nil {
		return nil, fmt.Errorf("reading how many files may be open: %w", err)
	}
	d := &descriptors{limit: limit, refused: refused}
	d.reserve = 32 + d.limit/16
	const least = 64
	if d.limit < least {
		return nil, fmt.Errorf("the process may open %d files, a hub needs %d: raise the limit (ulimit -n, LimitNOFILE in systemd)", d.limit, least)
	}
	return d, nil
}

// admit reports whether a connection fits without touching the reserve, and if not, whether
// it can be answered with an error.
func (d *descriptors) admit(conn net.Conn) (in, answered bool) {
	number := -1
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { number = int(fd) }) // it may be closed
		}
	}
	in = number < d.limit-d.reserve
	if !in {
		d.refused(fmt.Sprintf("the process has nearly all of its %d files open: a connection was refused; raise the limit (ulimit -n, LimitNOFILE in systemd)", d.limit), conn.RemoteAddr())
	}
	return in, number < d.limit-d.reserve/2
}

// admitted is admit for connections that are closed without a message.
func (d *descriptors) admitted(conn net.Conn) bool {
	in, _ := d.admit(conn)
	return in
}

// refusalPeriod is the minimum time between two log lines about refused connections with
// the same reason.
const refusalPeriod = 10 * time.Second

// refusalLog logs refused connections: the first one, then how many there were, once per
// period.
type refusalLog struct {
	log *slog.Logger

	mu  sync.Mutex
	why map[string]*refusalCount
}

type refusalCount struct {
	last time.Time // of the log line
	more int       // since then
}

func newRefusalLog(log *slog.Logger) *refusalLog {
	return &refusalLog{log: log, why: map[string]*refusalCount{}}
}

// refused records a refused connection.
func (r *refusalLog) refused(why string, remote net.Addr) {
	r.mu.Lock()
	c := r.why[why]
	if c == nil {
		c = &refusalCount{}
		r.why[why] = c
	}
	now, more := time.Now(), c.more
	if now.Sub(c.last) < refusalPeriod {
		c.more++
		r.mu.Unlock()
		return
	}
	c.last, c.more = now, 0
	r.mu.Unlock()
	r.log.Warn(why, "remote", remote.String(), "others_refused", more)
}

// sendBuffer is how much of its output the kernel holds for a connection. By default that grows
// to megabytes, and a blocked write goes on only once a third of it is free again: for a reader
// of 10 KB/s later than a write may last.
const sendBuffer = 128 << 10

// acceptor logs errors of Accept, which servers retry silently, and bounds the send buffers of
// connections.
type acceptor struct {
	net.Listener
	refusals *refusalLog
}

// Accept implements net.Listener.
func (l acceptor) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		l.refusals.refused("a connection could not be accepted: "+client.Reason(err), l.Addr())
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // it works without
	}
	return conn, err
}
