package coretest

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core/link"
)

// message is *T, if that is a protobuf message.
type message[T any] interface {
	*T
	proto.Message
}

// ProtoPipe is a [Pipe] of protobuf messages that are encoded and decoded on the way, as on
// the wire. The first end receives A and sends B.
func ProtoPipe[A, B any, PA message[A], PB message[B]](messages int) (link.Conn[PA, PB], link.Conn[PB, PA]) {
	a, b := Pipe[[]byte, []byte](messages)
	return protoEnd[A, PA, PB]{a}, protoEnd[B, PB, PA]{b}
}

// protoEnd is one end of a ProtoPipe.
type protoEnd[T any, In message[T], Out proto.Message] struct {
	bytes link.Conn[[]byte, []byte]
}

func (e protoEnd[T, In, Out]) Receive(ctx context.Context) (In, error) {
	m := In(new(T))
	b, err := e.bytes.Receive(ctx)
	if err == nil {
		err = proto.Unmarshal(b, m)
	}
	return m, err
}

func (e protoEnd[T, In, Out]) Send(ctx context.Context, m Out) error {
	b, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return e.bytes.Send(ctx, b)
}

func (e protoEnd[T, In, Out]) Close(r link.Reason) error { return e.bytes.Close(r) }
