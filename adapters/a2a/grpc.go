package a2a

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/runtime/protoimpl"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// grpcBinding is the gRPC binding (section 10): the hub's own interface, at which the tenant names the
// agent. Its messages are the protobuf of the protocol, whose JSON is that of the other bindings,
// so a call of it is one of theirs. What protobuf does not have is lost in it: unknown members, and
// the digits of whole numbers above 2^53.
type grpcBinding struct{ server *Server }

// Register registers the gRPC binding of the server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	g, of := &grpcBinding{s}, definition()
	desc := &grpc.ServiceDesc{ServiceName: string(of.FullName()), HandlerType: (*any)(nil), Metadata: of.ParentFile().Path()}
	for i := range of.Methods().Len() {
		m := of.Methods().Get(i)
		run, err := methodNamed(string(m.Name()))
		switch {
		case err != nil:
		case m.IsStreamingServer():
			desc.Streams = append(desc.Streams, g.streaming(m, run))
		default:
			desc.Methods = append(desc.Methods, g.unary(m, run))
		}
	}
	r.RegisterService(desc, g)
}

// file is the definition of the service, without the options for other tools. With generated code
// the program would be 240 kB larger.
//
//go:embed a2av1.binpb
var file []byte

// definition returns the definition of the service, and registers it for reflection, once in a
// process, which may have several hubs.
var definition = sync.OnceValue(func() protoreflect.ServiceDescriptor {
	const name = "lf.a2a.v1.A2AService"
	if of, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil { // as in a test with the SDK
		return of.(protoreflect.ServiceDescriptor)
	}
	return protoimpl.DescBuilder{RawDescriptor: file}.Build().File.Services().Get(0)
})

func (g *grpcBinding) unary(m protoreflect.MethodDescriptor, run operation) grpc.MethodDesc {
	answer := func(ctx context.Context, in any) (any, error) { return g.answer(ctx, m, run, in.(proto.Message)) }
	info := &grpc.UnaryServerInfo{Server: g, FullMethod: fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())}
	return grpc.MethodDesc{MethodName: string(m.Name()), Handler: func(_ any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := dynamicpb.NewMessage(m.Input())
		if err := read(in); err != nil {
			return nil, err
		}
		if intercept == nil {
			return answer(ctx, in)
		}
		return intercept(ctx, in, info, answer)
	}}
}

func (g *grpcBinding) streaming(m protoreflect.MethodDescriptor, run operation) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: string(m.Name()), ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
		in := dynamicpb.NewMessage(m.Input())
		if err := stream.RecvMsg(in); err != nil {
			return err
		}
		c, params, err := g.call(stream.Context(), in)
		if err == nil {
			c.items = &messages{stream: stream, of: m.Output()}
			_, err = run(c, params)
		}
		return c.status(err)
	}}
}

// answer performs a method that has one answer.
func (g *grpcBinding) answer(ctx context.Context, m protoreflect.MethodDescriptor, run operation, in proto.Message) (proto.Message, error) {
	out := dynamicpb.NewMessage(m.Output())
	c, params, err := g.call(ctx, in)
	if err != nil {
		return nil, c.status(err)
	}
	result, err := run(c, params)
	if err == nil {
		err = decode(result, out)
	}
	return out, c.status(err)
}

// call returns the call of a method with the metadata of ctx for headers, and its params.
func (g *grpcBinding) call(ctx context.Context, in proto.Message) (*call, strictjson.Value, error) {
	header := http.Header{}
	sent, _ := metadata.FromIncomingContext(ctx)
	for key, values := range sent {
		header[http.CanonicalHeaderKey(key)] = values
	}
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: Path}, Header: header}
	c := &call{server: g.server, r: r.WithContext(ctx)}
	if err := g.server.admit(c); err != nil {
		return c, noParams, err
	}
	if err := c.checkVersion(); err != nil {
		return c, noParams, err
	}
	if size, most := proto.Size(in), g.server.opts.MaxBodyBytes; size > most {
		return c, noParams, tooLarge(most)
	}
	text, err := protojson.Marshal(in)
	if err != nil {
		return c, noParams, err
	}
	params, err := wire.Parse(text)
	if err == nil && string(params.Get("pageSize").Raw()) == "0" { // the SDK for Go writes 0 for none
		text, _ = params.Without("pageSize")
		params, err = wire.Parse(text)
	}
	return c, params, err
}

func decode(text []byte, into proto.Message) error {
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, into)
}

// status returns the status of an error with its details (section 10.6).
func (c *call) status(err error) error {
	if err == nil {
		return nil
	}
	e := c.note(err)
	var code codes.Code
	if code.UnmarshalJSON([]byte(strconv.Quote(e.GRPC))) != nil {
		code = codes.Internal
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: e.Reason, Domain: e.Domain, Metadata: e.Metadata}}
	if e.Violations != nil {
		bad := &errdetails.BadRequest{}
		for _, v := range e.Violations {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Description})
		}
		details = append(details, bad)
	}
	st, err := grpcstatus.New(code, e.Message).WithDetails(details...)
	if err != nil {
		return grpcstatus.Error(code, e.Message)
	}
	return st.Err()
}

// messages is an outlet of messages of gRPC, which says itself that a connection is alive.
type messages struct {
	stream grpc.ServerStream
	of     protoreflect.MessageDescriptor
	err    error
}

func (m *messages) begin(cursors bool) {
	if cursors {
		m.err = m.stream.SetHeader(metadata.Pairs(wire.ExtensionsHeader, wire.CursorExtension))
	}
}

func (m *messages) put(item *wire.StreamResponse) {
	out := dynamicpb.NewMessage(m.of)
	if m.err == nil {
		m.err = decode(item.AppendJSON(nil), out)
	}
	if m.err == nil {
		m.err = m.send(out)
	}
}

// sendTimeout is how long a client may read nothing, as over HTTP.
const sendTimeout = 30 * time.Second

// send sends a message. Where the client does not read it in time, it is left to the end of the
// call, which ends it.
func (m *messages) send(out proto.Message) error {
	sent := make(chan error, 1)
	go func() { sent <- m.stream.SendMsg(out) }()
	timer := time.NewTimer(sendTimeout)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return errUnread
	}
}

var errUnread = errors.New("the client reads nothing")

func (m *messages) alive() {}

func (m *messages) flush() error { return m.err }
