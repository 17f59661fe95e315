package nats

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// ElectWithout has the embedded servers elect other leaders for what the server of a hub leads, which
// a majority of the hubs does not hear. By themselves they wait for it for 4 to 9 seconds, in which
// the hubs whose streams it leads store nothing. A server that is heard again follows the new leaders.
// ElectWithout does nothing for an external server.
func (j *Journal) ElectWithout(ctx context.Context, hub string) error {
	if j.server == nil || !j.clustered {
		return nil
	}
	j.unheard.note(hub)
	defer j.leaderTerm.end() // what was sent to the former leader may be lost
	ctx, cancel := context.WithTimeout(ctx, electTime)
	defer cancel()
	tick := time.NewTicker(electTick)
	defer tick.Stop()
	for next := (time.Time{}); ; {
		// A server that has just given its lead to that one waits for it as well, and leads nothing.
		asks := append(j.voteRequests(peerID(hub)), j.voteRequests("")...)
		if len(asks) == 0 {
			return nil
		}
		if now := time.Now(); now.After(next) {
			if err := j.ask(ctx, asks); err != nil {
				return err
			}
			next = now.Add(electAgain)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask publishes requests for votes.
func (j *Journal) ask(ctx context.Context, all []*nats.Msg) error {
	conn, err := j.dial(ctx, "", nats.UserInfo(systemUser, j.password))
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, m := range all {
		m.Reply = conn.NewInbox() // nobody reads the answers
		if err := conn.PublishMsg(m); err != nil {
			return err
		}
	}
	return conn.FlushWithContext(ctx)
}

// electTime bounds an election, electTick is the time between two looks at it, and electAgain that between
// two requests: by then an election has begun and ended, unless it had no winner.
const electTime, electTick, electAgain = 5 * time.Second, 20 * time.Millisecond, 700 * time.Millisecond

// unheard are servers for which others were elected, and when.
type unheard struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// unheardTime is how long such a server is not given anything to lead: the servers themselves may need
// that long to notice that they do not hear it.
const unheardTime = 10 * time.Second

func (u *unheard) note(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil {
		u.since = map[string]time.Time{}
	}
	u.since[server] = time.Now()
}

func (u *unheard) has(server string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.since[server]) < unheardTime
}

// any reports whether there is one. The others may send it what is for a leader until they notice, and
// nobody says that it is lost.
func (u *unheard) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, since := range u.since {
		if time.Since(since) < unheardTime {
			return true
		}
	}
	return false
}

// errNewLeader ends the wait for what a leader did not acknowledge that another one has followed.
var errNewLeader = errors.New("another server leads the stream now")

// leaderTerm is the time in which the leaders of streams stay the same, as far as this server has made them
// change. The zero leaderTerm has begun.
type leaderTerm struct {
	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // it ends with the term
	cancel context.CancelFunc
}

// current returns a context that ends with the present term.
func (t *leaderTerm) current() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil {
		t.ctx, t.cancel = context.WithCancel(context.Background())
	}
	return t.ctx
}

// end ends the present term, and begins the next one.
func (t *leaderTerm) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx != nil {
		t.cancel()
	}
	t.ctx = nil
}

// voteRequests returns a request for votes for each group of servers that a server leads, or nobody if it
// is "": of this server, in the next term, with an empty log. Nobody votes for that, but all who have more
// begin an election of their own within 0.8 seconds: it is what the servers do when one of them has lost
// its log, so it is as safe. The server has no other way to begin one, and its times are fixed.
func (j *Journal) voteRequests(leader string) (all []*nats.Msg) {
	for _, account := range []string{server.DEFAULT_GLOBAL_ACCOUNT, server.DEFAULT_SYSTEM_ACCOUNT} { // the streams, and the servers themselves
		status := j.server.Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			continue
		}
		for name, g := range (*status)[account] {
			if g.Leader != leader || !g.SystemAcc || g.PIndex == 0 { // servers with an empty log would vote
				continue
			}
			ask := binary.LittleEndian.AppendUint64(nil, g.Term+1)
			ask = append(ask, make([]byte, 2*8)...) // the term and the number of the last entry of the log
			ask = append(ask, peerID(j.server.Name())...)
			all = append(all, &nats.Msg{Subject: "$NRG.V." + name, Data: ask})
		}
	}
	return all
}
