package a2a_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// serveGRPC serves the gRPC binding of a fixture.
func (f *fixture) serveGRPC() (addr string) {
	f.t.Helper()
	l, err := new(net.ListenConfig).Listen(f.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	srv := grpc.NewServer()
	f.server.Register(srv)
	over := make(chan error, 1)
	go func() { over <- srv.Serve(l) }()
	f.t.Cleanup(func() {
		srv.Stop()
		if err := <-over; err != nil {
			f.t.Error(err)
		}
	})
	return l.Addr().String()
}

// update makes a test write the definition of the service instead of comparing it.
var update = flag.Bool("update", false, "write adapters/a2a/a2av1.binpb from that of the SDK")

// plain returns the definition of the service in the SDK without options, which are for other tools.
func plain() *descriptorpb.FileDescriptorProto {
	of := protodesc.ToFileDescriptorProto(a2apb.File_a2av1_proto)
	of.Options = nil
	of.Dependency = slices.DeleteFunc(of.Dependency, func(name string) bool { return strings.HasPrefix(name, "google/api/") })
	for _, s := range of.Service {
		for _, m := range s.Method {
			m.Options = nil
		}
	}
	var strip func([]*descriptorpb.DescriptorProto)
	strip = func(all []*descriptorpb.DescriptorProto) {
		for _, m := range all {
			for _, field := range m.Field {
				field.Options = nil
			}
			strip(m.NestedType)
		}
	}
	strip(of.MessageType)
	return of
}

func TestTheDefinitionOfTheServiceIsThatOfTheSDK(t *testing.T) {
	const path = "a2av1.binpb"
	want := plain()
	if *update {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(text, &got); err != nil || !proto.Equal(&got, want) {
		t.Errorf("got another definition than that of the SDK, and %v: run go test ./adapters/a2a -run Definition -update", err)
	}
	if _, err := protodesc.NewFile(&got, protoregistry.GlobalFiles); err != nil {
		t.Errorf("got %v, want a definition without what is not in the program", err)
	}
}

// TestTheSDKAsksOverGRPC has the client of the protocol's own SDK ask an agent of the hub.
func TestTheSDKAsksOverGRPC(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	c, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{
		{URL: f.serveGRPC(), ProtocolBinding: sdk.TransportProtocolGRPC, ProtocolVersion: "1.0", Tenant: "shout"},
	}, a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Destroy() }()
	ask := func(text string) *sdk.SendMessageRequest {
		return &sdk.SendMessageRequest{Tenant: "shout", Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text), sdk.NewDataPart(map[string]any{"n": 1.0}))}
	}
	sent, err := c.SendMessage(t.Context(), ask("hello"))
	task, ok := sent.(*sdk.Task)
	if err != nil || !ok || task.Status.State != sdk.TaskStateCompleted || task.Artifacts[0].Parts[0].Text() != "HELLO" {
		t.Fatalf("got %+v and %v, want a completed task with HELLO", sent, err)
	}
	said, state := "", sdk.TaskState("")
	for e, err := range c.SendStreamingMessage(t.Context(), ask("hello you")) {
		switch e := e.(type) {
		case *sdk.TaskArtifactUpdateEvent:
			said += e.Artifact.Parts[0].Text()
		case *sdk.TaskStatusUpdateEvent:
			state = e.Status.State
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if said != "HELLO YOU" || state != sdk.TaskStateCompleted {
		t.Errorf("got %q and %s, want HELLO YOU, completed", said, state)
	}
	if all, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{Tenant: "shout"}); err != nil || all.TotalSize != 2 {
		t.Errorf("got %+v and %v, want both tasks", all, err)
	}
	if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
		t.Errorf("got %v, want a task that has ended not cancelled", err)
	}
	if _, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: "nothing"}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("got %v, want the task not found", err)
	}
}

func TestARefusalOverGRPCHasItsStatusAndItsDetails(t *testing.T) {
	f := start(t, a2a.Options{MaxBodyBytes: 1024})
	f.agent("shout").shouts()
	conn, err := grpc.NewClient(f.serveGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := a2apb.NewA2AServiceClient(conn)
	message := func(text string) *a2apb.SendMessageRequest {
		return &a2apb.SendMessageRequest{Tenant: "shout", Message: &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}}}}
	}
	for name, tt := range map[string]struct {
		header []string
		call   func(context.Context) error
		code   codes.Code
		reason string
	}{
		"no version": {nil, func(ctx context.Context) error { _, err := c.SendMessage(ctx, message("hi")); return err }, codes.FailedPrecondition, "VERSION_NOT_SUPPORTED"},
		"nobody": {[]string{"a2a-version", "1.0", "x-user", "nobody"}, func(ctx context.Context) error {
			_, err := c.ListTasks(ctx, &a2apb.ListTasksRequest{})
			return err
		}, codes.Unauthenticated, "UNAUTHENTICATED"},
		"no id": {[]string{"a2a-version", "1.0"}, func(ctx context.Context) error { _, err := c.GetTask(ctx, &a2apb.GetTaskRequest{}); return err }, codes.InvalidArgument, "INVALID_PARAMS"},
		"too large": {[]string{"a2a-version", "1.0"}, func(ctx context.Context) error {
			_, err := c.SendMessage(ctx, message(string(make([]byte, 2048))))
			return err
		}, codes.InvalidArgument, "TOO_LARGE"},
		"an unknown agent": {[]string{"a2a-version", "1.0"}, func(ctx context.Context) error {
			in := message("hi")
			in.Tenant = "shuot"
			s, err := c.SendStreamingMessage(ctx, in)
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}, codes.NotFound, "UNKNOWN_AGENT"},
	} {
		t.Run(name, func(t *testing.T) {
			st := status.Convert(tt.call(metadata.AppendToOutgoingContext(t.Context(), tt.header...)))
			reason := ""
			for _, d := range st.Details() {
				if info, ok := d.(*errdetails.ErrorInfo); ok {
					reason = info.Reason
				}
			}
			if st.Code() != tt.code || reason != tt.reason {
				t.Errorf("got %s %s (%s), want %s %s", st.Code(), reason, st.Message(), tt.code, tt.reason)
			}
		})
	}
}

func TestAStreamOverGRPCContinuesAfterACursor(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	conn, err := grpc.NewClient(f.serveGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := a2apb.NewA2AServiceClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0", "a2a-extensions", "urn:dragoman:a2a:cursor:1")
	s := f.stream(rpc, "shout", "SendStreamingMessage", message("m1", "go", ""))
	first, _ := s.next()
	task, _ := a.next(core.KindAssigned)
	a.say(task, core.Text{Text: "A"})
	sub, err := c.SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Id: first.Task.ID})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := sub.Recv()
	if err != nil {
		t.Fatal(err)
	}
	cursor := whole.GetTask().GetMetadata().GetFields()["urn:dragoman:a2a:cursor:1"].GetStringValue()
	a.say(task, core.Text{Text: "B"}, core.Done{})
	back, err := c.SubscribeToTask(metadata.AppendToOutgoingContext(ctx, "last-event-id", cursor), &a2apb.SubscribeToTaskRequest{Id: first.Task.ID})
	if err != nil {
		t.Fatal(err)
	}
	if item, err := back.Recv(); err != nil || item.GetArtifactUpdate().GetArtifact().GetParts()[0].GetText() != "B" {
		t.Errorf("got %v and %v after the cursor %s, want B", item, err, cursor)
	}
	if item, err := back.Recv(); err != nil || item.GetStatusUpdate().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("got %v and %v, want the end", item, err)
	}
}

// logged has the lines of a log.
type logged chan string

func (l logged) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestAReaderOverGRPCThatReadsNothingIsCutOff(t *testing.T) {
	tier.Full(t, "it waits until a client has read nothing for 30 s")
	cut := make(logged, 8)
	f := start(t, a2a.Options{Log: slog.New(slog.NewTextHandler(cut, nil))})
	a := f.agent("shout")
	conn, err := grpc.NewClient(f.serveGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0")
	parts := []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "go"}}}
	slow, err := a2apb.NewA2AServiceClient(conn).SendStreamingMessage(ctx, &a2apb.SendMessageRequest{Tenant: "shout", Message: &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: parts}})
	if err != nil {
		t.Fatal(err)
	}
	task, _ := a.next(core.KindAssigned)
	for range 40 {
		a.say(task, core.Text{Text: strings.Repeat("x", 64<<10)})
	}
	a.say(task, core.Done{})
	select {
	case line := <-cut:
		if !strings.Contains(line, "a stream was cut off") {
			t.Errorf("got %s logged, want that the stream was cut off", line)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("got a stream that nobody reads kept, want it cut off")
	}
	var last *a2apb.StreamResponse
	for err == nil {
		var item *a2apb.StreamResponse
		if item, err = slow.Recv(); err == nil {
			last = item
		}
	}
	if got := last.GetStatusUpdate().GetStatus().GetState(); got == a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("got the end at a reader that read nothing, want the stream cut")
	}
}
