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

// descriptors keeps connections from using up the file descriptors of the process. A
// system call gives the lowest number that is free, so the number of a new connection
// tells how many are in use, whatever for: nothing has to be counted.
type descriptors struct {
	limit   int // of the process
	reserve int // for the journal, other files, health and refusals
	refused func(why string, remote net.Addr)
}

// newDescriptors reads the limit of the process. Go has raised the soft limit to the hard
// one before main.
func newDescriptors(refused func(why string, remote net.Addr)) (*descriptors, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("reading how many files may be open: %w", err)
	}
	d := &descriptors{limit: int(min(limit.Cur, 1<<30)), refused: refused}
	d.reserve = 32 + d.limit/16
	const least = 64
	if d.limit < least {
		return nil, fmt.Errorf("the process may open %d files, a hub needs %d: raise the limit (ulimit -n, LimitNOFILE in systemd)", d.limit, least)
	}
	return d, nil
}

// admit reports whether a connection leaves the reserve untouched, and whether there is
// room to tell it that it does not.
func (d *descriptors) admit(conn net.Conn) (in, told bool) {
	number := -1
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { number = int(fd) }) // it may have been closed
		}
	}
	in = number < d.limit-d.reserve
	if !in {
		d.refused(fmt.Sprintf("the process has nearly all of its %d files open: a connection was refused; raise the limit (ulimit -n, LimitNOFILE in systemd)", d.limit), conn.RemoteAddr())
	}
	return in, number < d.limit-d.reserve/2
}

// admitted is admit for connections that are told nothing.
func (d *descriptors) admitted(conn net.Conn) bool {
	in, _ := d.admit(conn)
	return in
}

// refusalPeriod is how often the log is told at most of connections that are refused for
// the same reason.
const refusalPeriod = 10 * time.Second

// refusalLog logs connections that are refused: the first, and then once a period how
// many there were.
type refusalLog struct {
	log *slog.Logger

	mu  sync.Mutex
	why map[string]*refusalCount
}

type refusalCount struct {
	told time.Time
	more int // since then
}

func newRefusalLog(log *slog.Logger) *refusalLog {
	return &refusalLog{log: log, why: map[string]*refusalCount{}}
}

// refused notes that a connection was refused.
func (r *refusalLog) refused(why string, remote net.Addr) {
	r.mu.Lock()
	c := r.why[why]
	if c == nil {
		c = &refusalCount{}
		r.why[why] = c
	}
	now, more := time.Now(), c.more
	if now.Sub(c.told) < refusalPeriod {
		c.more++
		r.mu.Unlock()
		return
	}
	c.told, c.more = now, 0
	r.mu.Unlock()
	r.log.Warn(why, "remote", remote.String(), "others_refused", more)
}

// loudListener logs why no connection can be accepted. Servers try again and are silent.
type loudListener struct {
	net.Listener
	refusals *refusalLog
}

// Accept implements net.Listener.
func (l loudListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		l.refusals.refused("a connection could not be accepted: "+client.Reason(err), l.Addr())
	}
	return conn, err
}
