package pi

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core/link"
)

// refusing is how long somebody who may not connect is told so.
const refusing = 10 * time.Second

// Refuse answers every line of somebody who may not connect with an error and the reason, as
// pi-server does on stdin (pi-server-wire-facts, "Auth"), for at most 10 s. No event is sent and
// nothing else comes of the lines. It closes the connection.
func Refuse(ctx context.Context, conn link.Conn[[]byte, []byte], why string) {
	ctx, cancel := context.WithTimeout(ctx, refusing)
	defer cancel()
	defer conn.Close(link.Reason{Cause: link.Unauthorized, Text: why})
	for {
		line, err := conn.Receive(ctx)
		var unread *link.Reject
		if err != nil && !errors.As(err, &unread) {
			return
		}
		cmd, _ := command.Decode(line, maxRefused) // of what is no command neither id nor type is known
		if conn.Send(ctx, cmd.Refused(why)) != nil {
			return
		}
	}
}

// maxRefused bounds a line whose id and type are echoed in the refusal.
const maxRefused = 64 << 10
