package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/proto/coven"
)

func main() {
	address := flag.String("hub", "127.0.0.1:50051", "gRPC `address` of the hub")
	id := flag.String("id", "shouter", "`id` of the agent")
	pause := flag.Duration("pause", 200*time.Millisecond, "`time` between two words")
	ca := flag.String("ca", "", "PEM `file` with the authority of the hub's certificate; without it there is no TLS")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	if token := os.Getenv("DRAGOMAN_TOKEN"); token != "" { // for a hub where everybody has to authenticate
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	err := run(ctx, *address, *ca, *id, *pause)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "covenagent:", err)
		os.Exit(1)
	}
}

// agent is one connection. A gRPC stream allows one Send at a time, hence the lock.
type agent struct {
	stream  grpc.BidiStreamingClient[coven.AgentMessage, coven.ServerMessage]
	pause   time.Duration
	sending sync.Mutex

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // by request id
}

// run joins the hub and answers until the hub shuts down or ctx ends.
func run(ctx context.Context, address, ca, id string, pause time.Duration) error {
	conn, err := dial(address, ca)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := coven.NewCovenControlClient(conn).AgentStream(ctx)
	if err != nil {
		return err
	}
	a := &agent{stream: stream, pause: pause, running: map[string]context.CancelCauseFunc{}}

	// 1. The first message registers. The hub sends only what the agent has declared.
	err = a.send(&coven.AgentMessage{Payload: &coven.AgentMessage_Register{Register: &coven.RegisterAgent{
		AgentId: id, Name: "Shouter", Capabilities: []string{"chat"},
		Metadata:         &coven.AgentMetadata{Backend: "direct"},
		ProtocolFeatures: []string{"cancellation", "registration_error"},
	}}})
	if err != nil {
		return err
	}
	var answers sync.WaitGroup
	defer answers.Wait() // they end with ctx at the latest
	defer cancel()
	for leaving := false; ; {
		m, err := stream.Recv()
		if leaving && err != nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch p := m.GetPayload().(type) {
		// 2. The first answer is Welcome, or the reason for a refusal.
		case *coven.ServerMessage_Welcome:
			fmt.Fprintf(os.Stderr, "joined %s as %s\n", p.Welcome.GetServerId(), p.Welcome.GetAgentId())
		case *coven.ServerMessage_RegistrationError:
			return fmt.Errorf("%s; try -id %s", p.RegistrationError.GetReason(), p.RegistrationError.GetSuggestedId())
		// 3. A request is answered in a goroutine, so that the loop can continue to read.
		case *coven.ServerMessage_SendMessage:
			ctx := a.begin(ctx, p.SendMessage.GetRequestId())
			answers.Go(func() { a.answer(ctx, p.SendMessage) })
		// 4. The requester cancelled.
		case *coven.ServerMessage_CancelRequest:
			a.end(p.CancelRequest.GetRequestId(), errors.New(p.CancelRequest.GetReason()))
		// 5. The hub stops: finish and leave.
		case *coven.ServerMessage_Shutdown:
			leaving = true
			answers.Wait()
			if err := stream.CloseSend(); err != nil {
				return err
			}
		}
	}
}

// dial connects to the hub, with TLS if there is a file with its authority.
func dial(address, ca string) (*grpc.ClientConn, error) {
	secured := insecure.NewCredentials()
	if ca != "" {
		var err error
		if secured, err = credentials.NewClientTLSFromFile(ca, ""); err != nil {
			return nil, err
		}
	}
	return grpc.NewClient(address, grpc.WithTransportCredentials(secured))
}

// answer sends the words of a request in capitals, one after the other. Every request ends
// with exactly one of done, error and cancelled.
func (a *agent) answer(ctx context.Context, m *coven.SendMessage) {
	id := m.GetRequestId()
	defer a.end(id, nil)
	end := &coven.MessageResponse{RequestId: id, Event: &coven.MessageResponse_Done{Done: &coven.Done{}}}
	for _, word := range strings.SplitAfter(strings.ToUpper(m.GetContent()), " ") {
		// An error ends the stream; the reading loop gets the reason.
		_ = a.respond(&coven.MessageResponse{RequestId: id, Event: &coven.MessageResponse_Text{Text: word}})
		select {
		case <-time.After(a.pause):
			continue
		case <-ctx.Done():
			end.Event = &coven.MessageResponse_Cancelled{Cancelled: &coven.Cancelled{Reason: context.Cause(ctx).Error()}}
		}
		break
	}
	_ = a.respond(end)
}

func (a *agent) respond(m *coven.MessageResponse) error {
	return a.send(&coven.AgentMessage{Payload: &coven.AgentMessage_Response{Response: m}})
}

func (a *agent) send(m *coven.AgentMessage) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return a.stream.Send(m)
}

func (a *agent) begin(ctx context.Context, id string) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[id] = cancel
	return ctx
}

// end ends the context of a request, once.
func (a *agent) end(id string, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.running[id]; cancel != nil {
		cancel(why)
		delete(a.running, id)
	}
}
