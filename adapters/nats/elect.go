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

// ElectWithout has the embedded servers elect other leaders for what the server of a hub leads, which this hub does not
// hear. By themselves they wait for it for 4 to 9 seconds, in which the hubs whose streams it leads store nothing. A
// server that is heard again follows the new leaders; then ctx is to end. ElectWithout does nothing for an
// external server, and while another call for the hub is under way.
func (j *Journal) ElectWithout(ctx context.Context, hub string) error {
	if j.server == nil || !j.clustered {
		return nil
	}
	if !j.unheard.begin(hub) {
		return nil
	}
	defer j.unheard.end(hub)
	defer j.leaderTerm.end() // what was sent to the former leader may be lost
	ctx, cancel := context.WithTimeout(ctx, electTime)
	defer cancel()
	tick := time.NewTicker(electTick)
	defer tick.Stop()
	for asked := (ballots{}); ; {
		// A server that has just given its lead to that one waits for it as well, and leads nothing.
		groups := append(j.ledBy(peerID(hub)), j.ledBy("")...)
		if len(groups) == 0 {
			return nil
		}
		if err := j.askForVotes(ctx, asked.due(groups, time.Now())); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// electTime bounds an election, and electTick is the time between two looks at it. A group is asked again when its
// term has been the same for electAgain: then nobody has begun an election, which takes at most 0.8 s, or it had no winner.
const electTime, electTick, electAgain = 5 * time.Second, 20 * time.Millisecond, 850 * time.Millisecond

// raftGroup is a group of servers that elects its leader, in a term.
type raftGroup struct {
	name string
	term uint64
}

// ballots are the terms of groups that were asked for votes, and since when they are seen, by the names of the groups.
type ballots map[string]ballot

type ballot struct {
	term  uint64
	since time.Time
}

// due returns which of the groups to ask now. A request ends an election that is under way, so none is made while the
// term changes: others may have asked, and on a busy machine an election takes long.
func (b ballots) due(groups []raftGroup, now time.Time) (due []raftGroup) {
	for _, g := range groups {
		last, asked := b[g.name]
		again := asked && g.term == last.term
		if again && now.Sub(last.since) < electAgain {
			continue
		}
		if b[g.name] = (ballot{g.term, now}); again || !asked {
			due = append(due, g)
		}
	}
	return due
}

// unheard are servers for which others were elected, and when.
type unheard struct {
	mu       sync.Mutex
	since    map[string]time.Time
	electing map[string]bool // they are elected now
}

// unheardTime is how long such a server is not given anything to lead: the servers themselves may need
// that long to notice that they do not hear it.
const unheardTime = 10 * time.Second

// begin notes that others are elected for a server. It reports false if that has begun before.
func (u *unheard) begin(server string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil {
		u.since, u.electing = map[string]time.Time{}, map[string]bool{}
	}
	u.since[server] = time.Now()
	before := u.electing[server]
	u.electing[server] = true
	return !before
}

func (u *unheard) end(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.electing, server)
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

// ledBy returns the groups of servers that a server leads, or nobody if it is "".
func (j *Journal) ledBy(leader string) (all []raftGroup) {
	for _, account := range []string{server.DEFAULT_GLOBAL_ACCOUNT, server.DEFAULT_SYSTEM_ACCOUNT} { // the streams, and the servers themselves
		status := j.server.Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			continue
		}
		for name, g := range (*status)[account] {
			if g.Leader == leader && g.SystemAcc && g.PIndex > 0 { // servers with an empty log would vote
				all = append(all, raftGroup{name, g.Term})
			}
		}
	}
	return all
}

// askForVotes asks groups of servers for their votes: for this server, in the next term, with an empty log. Nobody votes
// for that, but all who have more begin an election of their own within 0.8 seconds: it is what the servers do when one
// of them has lost its log, so it is as safe. The server has no other way to begin one, and its times are fixed.
func (j *Journal) askForVotes(ctx context.Context, groups []raftGroup) error {
	if len(groups) == 0 {
		return nil
	}
	conn, err := j.dial(ctx, "", nats.UserInfo(systemUser, j.password))
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, g := range groups {
		ask := binary.LittleEndian.AppendUint64(nil, g.term+1)
		ask = append(ask, make([]byte, 2*8)...) // the term and the number of the last entry of the log
		ask = append(ask, peerID(j.server.Name())...)
		if err := conn.PublishRequest("$NRG.V."+g.name, conn.NewInbox(), ask); err != nil { // nobody reads the answers
			return err
		}
	}
	return conn.FlushWithContext(ctx)
}
