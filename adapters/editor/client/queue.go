package client

import (
	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
)

// item is one thing that happens in a turn, in the order of the connection: an update if no other
// member is set.
type item struct {
	update wire.Update
	// message is a request of the agent, a permission or an elicitation, or the answer to the
	// prompt.
	message   *jsonrpc.Message
	withdrawn string       // the id of such a request
	told      core.Body    // what the hub tells the agent
	steered   *steered     // what the agent answers to context
	lost      error        // the connection has ended
	skipped   *link.Reject // a line over the limit
	// frame is the message of the agent that it is.
	frame frame.Incoming

	size int // bytes of its line
}

// maxQueued bounds what waits in the queue of a turn, in bytes. A single item may be larger.
const maxQueued = 1 << 20

// itemBytes is about the memory of an item beside its line.
const itemBytes = 512

// newQueue returns the queue of what waits for the goroutine of a turn.
func newQueue() *fifo.Mailbox[item] {
	return fifo.NewMailbox(maxQueued, func(it item) int { return it.size + itemBytes })
}
