package bus

import (
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// Node is the end of a hub: it has the connections of one of its lives. It is safe for concurrent
// use.
type Node struct {
	bus  cluster.Bus
	self Life
	stop func()

	mu    sync.Mutex
	conns map[Life]*Conn
	last  uint64 // the number of the last connection
}

// Listen subscribes to what other hubs send to the life. The caller closes the Node.
func Listen(b cluster.Bus, self Life) (*Node, error) {
	n := &Node{bus: b, self: self, conns: map[Life]*Conn{}}
	stop, err := b.Subscribe(subject(self), func(data []byte, _ func([]byte)) { n.arrived(data) })
	if err != nil {
		return nil, err
	}
	n.stop = stop
	return n, nil
}

// subject is where a life gets its packets.
func subject(l Life) string { return "link." + token(l.Hub) + "." + strconv.FormatUint(l.Epoch, 10) }

// notInToken replaces what a token of a subject cannot have.
var notInToken = strings.NewReplacer(".", "_", " ", "_", "*", "_", ">", "_")

// token writes a name as a token of a subject.
func token(name string) string { return notInToken.Replace(name) }

// Connect returns the connection to a life of another hub. Both ends call it, in any order: what
// one sends before the other does is sent again. It belongs to the caller, who closes it. If one end
// calls it again, the connection of the other end has ended, and that end has to call it again too.
func (n *Node) Connect(peer Life) *Conn {
	c := newConn(n, peer)
	n.mu.Lock()
	n.last++
	c.number = n.last
	n.conns[peer] = c
	n.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publish(packet{flags: flagAgain}) // the other end may have sent something already
	return c
}

// arrived hands a packet to its connection. It drops one of a life that this hub does not know yet.
func (n *Node) arrived(data []byte) {
	p, err := parse(data)
	if err != nil {
		return
	}
	n.mu.Lock()
	c := n.conns[p.from]
	n.mu.Unlock()
	if c != nil {
		c.arrived(p)
	}
}

// forget removes a connection that has ended. It is called with the lock of the connection held.
func (n *Node) forget(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns[c.peer] == c {
		delete(n.conns, c.peer)
	}
}

// Close ends the subscription. Its connections are closed by their owners.
func (n *Node) Close() { n.stop() }
