package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// soakAgent is an agent that reconnects whenever its connection has ended and behaves as its name
// says.
type soakAgent struct {
	id       string
	features []string
	// answer answers a request. It runs concurrently with the reader, and ends with ctx. If
	// it returns false the agent disconnects.
	answer func(ctx context.Context, say func(*wire.MessageResponse) error) (stays bool)
}

// soakTime is how long a request of the soak may take, soakGrace what an agent has
// to end it behind that.
const (
	soakTime  = 200 * time.Millisecond
	soakGrace = 50 * time.Millisecond
)

func soakText(answer string) *wire.MessageResponse {
	return &wire.MessageResponse{Event: &wire.MessageResponse_Text{Text: answer}}
}

func soakDone() *wire.MessageResponse {
	return &wire.MessageResponse{Event: &wire.MessageResponse_Done{Done: &wire.Done{}}}
}

func soakFailure(answer string) *wire.MessageResponse {
	return &wire.MessageResponse{Event: &wire.MessageResponse_Error{Error: answer}}
}

func soakOrphaned() *wire.MessageResponse {
	return &wire.MessageResponse{Event: &wire.MessageResponse_SessionOrphaned{SessionOrphaned: &wire.SessionOrphaned{Reason: "Session expired"}}}
}

// soakAgents behave in every way that agents were seen to behave.
func soakAgents() []*soakAgent {
	type say = func(*wire.MessageResponse) error
	all := func(say say, messages ...*wire.MessageResponse) bool {
		for _, m := range messages {
			if say(m) != nil {
				return false
			}
		}
		return true
	}
	return []*soakAgent{
		{"good", []string{"max_concurrent=8"}, func(_ context.Context, say say) bool { return all(say, soakText("a "), soakText("b"), soakDone()) }},
		{"alone", nil, func(_ context.Context, say say) bool { return all(say, soakText("a"), soakDone()) }},
		{"noisy", []string{"max_concurrent=4"}, func(_ context.Context, say say) bool {
			for range 200 {
				if say(soakText("again and ")) != nil {
					return false
				}
			}
			return all(say, soakDone())
		}},
		{"vanishing", []string{"max_concurrent=4"}, func(_ context.Context, say say) bool {
			_ = say(soakText("I was about to")) // another request may have disconnected it
			return false
		}},
		{"twofold", []string{"max_concurrent=4"}, func(_ context.Context, say say) bool {
			return all(say, soakFailure("out of tokens"), soakDone(), soakText("by the way"), soakOrphaned())
		}},
		{"orphaned", []string{"max_concurrent=4"}, func(_ context.Context, say say) bool { return all(say, soakText("a"), soakOrphaned()) }},
		{"late", []string{"max_concurrent=4", "cancellation"}, func(ctx context.Context, say say) bool {
			select {
			case <-time.After(soakTime + 2*soakGrace):
			case <-ctx.Done():
			}
			return all(say, soakText("sorry"), soakDone())
		}},
		{"never", []string{"cancellation"}, func(_ context.Context, say say) bool { return all(say, soakText("let me think")) }},
		{"never at four", []string{"max_concurrent=4"}, func(context.Context, func(*wire.MessageResponse) error) bool { return true }},
	}
}

// run joins again and again until ctx ends. It returns once nothing of the agent is running.
func (a *soakAgent) run(ctx context.Context, client wire.CovenControlClient) {
	for ctx.Err() == nil {
		a.connection(ctx, client)
		select { // the id may still be taken, or the hub be gone
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// connection runs one connection.
func (a *soakAgent) connection(ctx context.Context, client wire.CovenControlClient) {
	ctx, leave := context.WithCancel(ctx)
	var answers sync.WaitGroup
	defer answers.Wait()
	defer leave()
	stream, err := client.AgentStream(ctx)
	if err != nil {
		return
	}
	say := serialSender(stream)
	register := &wire.RegisterAgent{AgentId: a.id, Capabilities: []string{"soaking"}, ProtocolFeatures: a.features}
	if say(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: register}}) != nil {
		return
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		request := m.GetSendMessage().GetRequestId()
		if request == "" {
			continue
		}
		answers.Go(func() {
			stays := a.answer(ctx, func(m *wire.MessageResponse) error {
				m.RequestId = request
				return say(&wire.AgentMessage{Payload: &wire.AgentMessage_Response{Response: m}})
			})
			if !stays {
				leave()
			}
		})
	}
}

// serialSender sends on a stream, one message at a time.
func serialSender(stream grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]) func(*wire.AgentMessage) error {
	var mu sync.Mutex
	return func(m *wire.AgentMessage) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(m)
	}
}

// soakAsker asks the agents in turn, atOnce requests at a time, and returns the number of calls by
// outcome: "" for an answer, else the code of the fault. Every call must have exactly one outcome.
func soakAsker(ctx context.Context, client wire.CovenControlClient, id string, agents []string, tasks, atOnce int) (received map[string]int, err error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	stream, err := client.AgentStream(ctx)
	if err != nil {
		return nil, err
	}
	say := serialSender(stream)
	if err := say(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: &wire.RegisterAgent{AgentId: id}}}); err != nil {
		return nil, err
	}
	if m, err := stream.Recv(); err != nil || m.GetWelcome() == nil {
		return nil, fmt.Errorf("%s was not welcome: %v, %w", id, m, err)
	}
	received = map[string]int{}
	open := map[string]bool{}
	for asked, over := 0, 0; over < tasks; {
		for ; asked < tasks && len(open) < atOnce; asked++ {
			call := fmt.Sprintf("%s-%d", id, asked)
			input := fmt.Sprintf(`{"to":%q,"content":"soak","timeout_seconds":%g}`, agents[asked%len(agents)], soakTime.Seconds())
			open[call] = true
			m := &wire.ExecutePackTool{RequestId: call, ToolName: "agent_ask", InputJson: input}
			if err := say(&wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: m}}); err != nil {
				return received, err
			}
		}
		m, err := stream.Recv()
		if err != nil {
			return received, fmt.Errorf("%s got %d results of its %d calls: %w", id, over, asked, err)
		}
		r := m.GetPackToolResult()
		if r == nil || !open[r.GetRequestId()] {
			return received, fmt.Errorf("%s got %v, want the result of a call that is open", id, m)
		}
		delete(open, r.GetRequestId())
		received[toolErrorCode(r.GetError())]++
		over++
	}
	return received, nil
}
