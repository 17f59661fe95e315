package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// peerEnd is a peer's end of a connection in memory.
type peerEnd interface {
	// send sends one frame, and sendRaw the bytes as they are.
	send(ctx context.Context, frame *jsonValue) error
	sendRaw(ctx context.Context, frame []byte) error
	receive(ctx context.Context) (*jsonValue, error)
	close(link.Reason)
}

// jsonEnd is an end of a dialect with JSON frames.
type jsonEnd struct {
	*coretest.End[[]byte, []byte]
}

func (e jsonEnd) send(ctx context.Context, v *jsonValue) error {
	return e.sendRaw(ctx, []byte(v.line()))
}

func (e jsonEnd) sendRaw(ctx context.Context, frame []byte) error { return e.Send(ctx, frame) }

func (e jsonEnd) receive(ctx context.Context) (*jsonValue, error) {
	b, err := e.Receive(ctx)
	if err != nil {
		return nil, err
	}
	v, err := parseJSON(b)
	if err != nil {
		return textValue("not JSON: " + string(b)), nil
	}
	return v, nil
}

func (e jsonEnd) close(r link.Reason) { e.Close(r) }

// protoEnd is an end of Coven. Its frames are shown as the JSON of protobuf, with the field names
// of the specification.
type protoEnd[In, Out proto.Message] struct {
	*coretest.End[In, Out]
	empty func() Out
}

func (e protoEnd[In, Out]) send(ctx context.Context, v *jsonValue) error {
	m := e.empty()
	if err := jsonToProto(v, m); err != nil {
		return err
	}
	return e.Send(ctx, m)
}

func (e protoEnd[In, Out]) sendRaw(context.Context, []byte) error {
	return fmt.Errorf("a protobuf message cannot be sent verbatim")
}

func (e protoEnd[In, Out]) receive(ctx context.Context) (*jsonValue, error) {
	m, err := e.Receive(ctx)
	if err != nil {
		return nil, err
	}
	return protoToJSON(m)
}

func (e protoEnd[In, Out]) close(r link.Reason) { e.Close(r) }

// protoToJSON returns a message as a conversation has it.
func protoToJSON(m proto.Message) (*jsonValue, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	v, err := parseJSON(b)
	if err != nil {
		return nil, err
	}
	return unpack(v), nil
}

// newerFields is a member with fields that today's hub does not know: their numbers, each with a
// text.
const newerFields = "$newer"

// jsonToProto fills a message from a conversation.
func jsonToProto(v *jsonValue, m proto.Message) error {
	v = pack(v)
	newer := map[string]*jsonValue{} // by the name of the message that has them
	for i, key := range v.keys {
		if n := v.items[i].remove(newerFields); n != nil {
			newer[key] = n
		}
	}
	own := v.remove(newerFields)
	if err := protojson.Unmarshal([]byte(v.line()), m); err != nil {
		return err
	}
	if own != nil {
		if err := addNewer(m.ProtoReflect(), own); err != nil {
			return err
		}
	}
	for name, fields := range newer {
		field := m.ProtoReflect().Descriptor().Fields().ByTextName(name)
		if field == nil || field.Message() == nil {
			return fmt.Errorf("%s is no message", name)
		}
		if err := addNewer(m.ProtoReflect().Mutable(field).Message(), fields); err != nil {
			return err
		}
	}
	return nil
}

func addNewer(m protoreflect.Message, fields *jsonValue) error {
	for i, key := range fields.keys {
		number, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("%s wants the numbers of fields, not %q", newerFields, key)
		}
		b := protowire.AppendTag(m.GetUnknown(), protowire.Number(number), protowire.BytesType)
		m.SetUnknown(protowire.AppendString(b, fields.items[i].text))
	}
	return nil
}

// peer is a participant of a conversation: what it received and no step has checked, and how its
// connection ended.
type peer struct {
	end  peerEnd
	stop context.CancelFunc // of his reading
	read chan struct{}      // closed once he reads no more

	mu     sync.Mutex
	inbox  []*jsonValue
	ended  *jsonValue
	closed chan struct{} // closed with ended
}

func newPeer(end peerEnd) *peer {
	ctx, stop := context.WithCancel(context.Background())
	p := &peer{end: end, stop: stop, read: make(chan struct{}), closed: make(chan struct{})}
	go func() {
		defer close(p.read)
		for {
			v, err := end.receive(ctx)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.inbox = append(p.inbox, v)
			p.mu.Unlock()
		}
	}()
	return p
}

// take returns what has been received since the last call.
func (p *peer) take() []*jsonValue {
	p.mu.Lock()
	defer p.mu.Unlock()
	received := p.inbox
	p.inbox = nil
	return received
}

// setEnd records how the other end ended.
func (p *peer) setEnd(how *jsonValue) {
	p.mu.Lock()
	p.ended = how
	p.mu.Unlock()
	close(p.closed)
}

func (p *peer) getEnd() *jsonValue {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// leave closes the connection and waits until it has ended.
func (p *peer) leave(r link.Reason) {
	p.end.close(r)
	p.stop()
	<-p.read
	<-p.closed
}

// closeReason returns how the hub closed a connection, as JSON.
func closeReason(dialect string, r link.Reason) *jsonValue {
	out := &jsonValue{open: '{'}
	if slices.Contains([]string{"coven", "client", "pack", "gateway"}, dialect) {
		st := status.Convert(grpcserver.Status(r))
		out.set("status", textValue(grpcCodeName(st.Code().String())))
		out.set("message", textValue(st.Message()))
		return out
	}
	out.set("because", textValue(r.Cause.String()))
	if r.Code != 0 {
		out.set("code", &jsonValue{text: strconv.Itoa(r.Code)})
	}
	out.set("text", textValue(r.Text))
	return out
}

// grpcCodeName returns the name of a gRPC code as specifications write it: INVALID_ARGUMENT for
// InvalidArgument.
func grpcCodeName(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' && name != "OK" {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// covenPipe is a connection of a Coven agent: the gateway's end, then the agent's.
func covenPipe() (*coretest.End[*wire.AgentMessage, *wire.ServerMessage], *coretest.End[*wire.ServerMessage, *wire.AgentMessage]) {
	return coretest.Pipe[*wire.AgentMessage, *wire.ServerMessage](0)
}

// settings reads the lines of a step, each a name and a value, as headers are written.
func settings(body string) (map[string]string, error) {
	all := map[string]string{}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("want a name, a colon and a value, got %q", line)
		}
		all[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return all, nil
}

// errorValue returns an error as JSON; null if there is none.
func errorValue(err error) *jsonValue {
	if err == nil {
		return &jsonValue{text: "null"}
	}
	return textValue(err.Error())
}
