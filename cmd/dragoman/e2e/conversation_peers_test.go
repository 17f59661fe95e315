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

// storyEnd is the story's end of a connection in memory.
type storyEnd interface {
	// send sends one frame as the story has it, and sendRaw the bytes as they are.
	send(ctx context.Context, frame *jsonValue) error
	sendRaw(ctx context.Context, frame []byte) error
	receive(ctx context.Context) (*jsonValue, error)
	close(link.Reason)
}

// jsonEnd speaks one of the dialects whose frames are JSON.
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
		return textValue("no JSON: " + string(b)), nil
	}
	return v, nil
}

func (e jsonEnd) close(r link.Reason) { e.Close(r) }

// protoEnd speaks Coven. Its frames are shown as the JSON of protobuf, with the
// names that the specification gives the fields.
type protoEnd[In, Out proto.Message] struct {
	*coretest.End[In, Out]
	empty func() Out
}

func (e protoEnd[In, Out]) send(ctx context.Context, v *jsonValue) error {
	m := e.empty()
	if err := fromStory(v, m); err != nil {
		return err
	}
	return e.Send(ctx, m)
}

func (e protoEnd[In, Out]) sendRaw(context.Context, []byte) error {
	return fmt.Errorf("a message of protobuf is not written as text: leave out verbatim")
}

func (e protoEnd[In, Out]) receive(ctx context.Context) (*jsonValue, error) {
	m, err := e.Receive(ctx)
	if err != nil {
		return nil, err
	}
	return toStory(m)
}

func (e protoEnd[In, Out]) close(r link.Reason) { e.Close(r) }

// toStory shows a message as a story has it.
func toStory(m proto.Message) (*jsonValue, error) {
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

// newerFields is a member that says which fields of a message a hub of today does
// not know: their numbers, each with a text.
const newerFields = "$newer"

// fromStory reads a message from what a story says.
func fromStory(v *jsonValue, m proto.Message) error {
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

// storyPeer is somebody in a story: what came for him and not been told yet, and how
// his connection ended.
type storyPeer struct {
	end  storyEnd
	stop context.CancelFunc // of his reading
	read chan struct{}      // closed once he reads no more

	mu    sync.Mutex
	inbox []*jsonValue
	ended *jsonValue
	over  chan struct{} // closed with ended
}

func newPeer(end storyEnd) *storyPeer {
	ctx, stop := context.WithCancel(context.Background())
	p := &storyPeer{end: end, stop: stop, read: make(chan struct{}), over: make(chan struct{})}
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

// take returns what came since it was last called.
func (p *storyPeer) take() []*jsonValue {
	p.mu.Lock()
	defer p.mu.Unlock()
	came := p.inbox
	p.inbox = nil
	return came
}

// concluded notes how the other end ended.
func (p *storyPeer) concluded(how *jsonValue) {
	p.mu.Lock()
	p.ended = how
	p.mu.Unlock()
	close(p.over)
}

func (p *storyPeer) conclusion() *jsonValue {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// leave takes the connection down and waits until nobody holds it any more.
func (p *storyPeer) leave(r link.Reason) {
	p.end.close(r)
	p.stop()
	<-p.read
	<-p.over
}

// closing says in JSON how a hub closed a connection.
func closing(dialect string, r link.Reason) *jsonValue {
	out := &jsonValue{open: '{'}
	if slices.Contains([]string{"coven", "client", "pack", "gateway"}, dialect) {
		st := status.Convert(grpcserver.Status(r))
		out.set("status", textValue(shouted(st.Code().String())))
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

// shouted is the name of a gRPC code as specifications write it: INVALID_ARGUMENT
// for InvalidArgument.
func shouted(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' && name != "OK" {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// covenPipe is a connection of a Coven agent: the end of the gateway, then that of
// the agent.
func covenPipe() (*coretest.End[*wire.AgentMessage, *wire.ServerMessage], *coretest.End[*wire.ServerMessage, *wire.AgentMessage]) {
	return coretest.Pipe[*wire.AgentMessage, *wire.ServerMessage](0)
}

// settings reads what a step says of a connection or of the hub: a line each, a name
// and a value, as headers are written.
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

// errorValue says an error in JSON; null when there is none.
func errorValue(err error) *jsonValue {
	if err == nil {
		return &jsonValue{text: "null"}
	}
	return textValue(err.Error())
}
