package peer_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// visit visits a service, and closes the connection when the test ends.
func visit(t *testing.T, at *node, there, service string, by core.Principal) rpc.Conn {
	t.Helper()
	var conn rpc.Conn
	var err error
	for range 1000 { // the hubs may not have greeted yet
		if conn, err = at.RPC().Dial(there, service, by); err == nil {
			t.Cleanup(func() { _ = conn.Close(link.Reason{}) })
			return conn
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal(err)
	return nil
}

// echo sends back what comes.
func echo(ctx context.Context, _ core.Principal, conn rpc.Conn) {
	for {
		m, err := conn.Receive(ctx)
		if err != nil || conn.Send(ctx, m) != nil {
			return
		}
	}
}

func send(t *testing.T, c rpc.Conn, m []byte) {
	t.Helper()
	if err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c rpc.Conn) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := c.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestATunnelCarriesMessagesOfEverySizeInOrder(t *testing.T) {
	all := connected(t, "a", "b")
	all["b"].RPC().Serve("echo", echo)
	conn := visit(t, all["a"], "b", "echo", core.Principal{ID: "ann"})
	sizes := []int{0, 1, 100, 32 << 10, 32<<10 + 1, 3 << 20, 7}
	go func() {
		for i, n := range sizes {
			_ = conn.Send(t.Context(), bytes.Repeat([]byte{byte(i)}, n)) // what comes back tells
		}
	}()
	for i, n := range sizes {
		if got := receive(t, conn); !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Errorf("message %d: got %d bytes, want the %d that were sent", i, len(got), n)
		}
	}
}

func TestATunnelTellsWhoVisitsWithItsRights(t *testing.T) {
	all := connected(t, "a", "b")
	ann := core.Principal{
		ID: "ann", Dialect: "test", Authenticated: true, Operator: true, Proof: "ssh:1", Until: time.Now().Add(time.Hour).Round(0),
		Credential: &core.Credential{Kind: core.KindPerson, Roles: []string{"dev"}, Agents: []string{"x-*"}},
	}
	got := make(chan core.Principal, 1)
	all["b"].RPC().Serve("who", func(_ context.Context, by core.Principal, _ rpc.Conn) { got <- by })
	visit(t, all["a"], "b", "who", ann)
	by := <-got
	if by.Rights() != ann.Rights() || by.ID != "ann" || !by.Authenticated || by.Proof != ann.Proof || !by.Until.Equal(ann.Until) || by.Component {
		t.Errorf("got %+v with %+v, want %+v", by, by.Credential, ann)
	}
}

func TestATunnelWhoseEndReadsNothingDelaysNobodyElse(t *testing.T) {
	all := connected(t, "a", "b")
	all["b"].RPC().Serve("deaf", func(ctx context.Context, _ core.Principal, _ rpc.Conn) { <-ctx.Done() })
	all["b"].RPC().Serve("echo", echo)
	var flooding sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	full := make(chan struct{})
	for range 20 {
		conn := visit(t, all["a"], "b", "deaf", core.Principal{ID: "eve"})
		flooding.Go(func() {
			for i := 0; conn.Send(ctx, make([]byte, 32<<10)) == nil; i++ {
				if i == 6 {
					full <- struct{}{}
				}
			}
		})
	}
	for range 20 {
		<-full
	}
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	conn := visit(t, all["a"], "b", "echo", core.Principal{ID: "ann"})
	send(t, conn, []byte("hello"))
	if got := receive(t, conn); string(got) != "hello" {
		t.Errorf("got %q, want hello", got)
	}
	ann := all["a"].person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	if err := bob.Report(assigned(t, bob).ID(), core.Done{Text: "because"}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, ann, asked.ID(), core.KindDone)
	cancel()
	flooding.Wait()
}

func TestATunnelEndsForTheReasonThatEitherEndGives(t *testing.T) {
	all := connected(t, "a", "b")
	heard := make(chan error, 1)
	all["b"].RPC().Serve("listens", func(ctx context.Context, _ core.Principal, conn rpc.Conn) {
		_, err := conn.Receive(ctx)
		heard <- err
	})
	conn := visit(t, all["a"], "b", "listens", core.Principal{ID: "ann"})
	_ = conn.Close(*link.Because(link.Slow, "it does not read"))
	var why *link.Reason
	if err := <-heard; !errors.As(err, &why) || why.Cause != link.Slow || why.Text != "it does not read" {
		t.Errorf("the hub that is visited: got %v, want slow", err)
	}

	all["b"].RPC().Serve("refuses", func(ctx context.Context, _ core.Principal, conn rpc.Conn) {
		_ = conn.Send(ctx, []byte("no"))
		_ = conn.Close(link.Reason{Cause: link.Overloaded, Text: "full", Code: 1013})
	})
	conn = visit(t, all["a"], "b", "refuses", core.Principal{ID: "ann"})
	if got := receive(t, conn); string(got) != "no" {
		t.Errorf("before the end: got %q, want what was sent", got)
	}
	if _, err := conn.Receive(t.Context()); !errors.As(err, &why) || why.Cause != link.Overloaded || why.Text != "full" || why.Code != 1013 {
		t.Errorf("the visitor: got %v, want overloaded, full, 1013", err)
	}

	all["b"].RPC().Serve("leaves", func(context.Context, core.Principal, rpc.Conn) {})
	conn = visit(t, all["a"], "b", "leaves", core.Principal{ID: "ann"})
	if _, err := conn.Receive(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the service returned: got %v, want EOF", err)
	}
	conn = visit(t, all["a"], "b", "nothing", core.Principal{ID: "ann"})
	if _, err := conn.Receive(t.Context()); !errors.As(err, &why) || why.Cause != link.Protocol {
		t.Errorf("an unknown service: got %v, want that it is of another version", err)
	}
}

func TestATunnelEndsWithTheConnectionBetweenItsHubs(t *testing.T) {
	all, cut := connectedUntil(t, "a", "b")
	served := make(chan struct{})
	all["b"].RPC().Serve("waits", func(ctx context.Context, _ core.Principal, conn rpc.Conn) {
		defer close(served)
		echo(ctx, core.Principal{}, conn)
	})
	conn := visit(t, all["a"], "b", "waits", core.Principal{ID: "ann"})
	send(t, conn, []byte("hello"))
	receive(t, conn)
	cut()
	var why *link.Reason
	if _, err := conn.Receive(t.Context()); !errors.As(err, &why) || why.Cause != link.ShuttingDown {
		t.Errorf("got %v, want that the connection has ended", err)
	}
	<-served
	if err := conn.Send(t.Context(), []byte("x")); err == nil {
		t.Error("sending over it: got no error")
	}
	if _, err := all["a"].RPC().Dial("b", "waits", core.Principal{ID: "ann"}); core.AsFault(err).Code != core.CodeUnreachable {
		t.Errorf("another visit: got %v, want unreachable", err)
	}
}

func TestDialectsAskEachOtherAtAllHubs(t *testing.T) {
	all := connected(t, "a", "b", "c")
	has := rpc.Method[string, bool]("test.has")
	for name, n := range all {
		has.Answer(n.Hub, func(_ context.Context, by core.Principal, what string) (bool, error) {
			if what == "nothing" {
				return false, core.NewFault(core.CodeInvalid, "%s asks for nothing", by.ID)
			}
			return what == name, nil
		})
	}
	visit(t, all["a"], "b", "greeted", core.Principal{})
	visit(t, all["a"], "c", "greeted", core.Principal{})
	said, missing := has.AskAll(t.Context(), all["a"].Hub, core.Principal{ID: "ann"}, "c")
	if len(said) != 2 || len(missing) != 0 || said[0].Out || !said[1].Out || said[1].Hub != "c" {
		t.Errorf("got %+v, missing %v, want that c alone has it", said, missing)
	}
	if yes, err := has.Ask(t.Context(), all["a"].Hub, "b", core.Principal{ID: "ann"}, "b"); err != nil || !yes {
		t.Errorf("b alone: got %v, %v, want that it has it", yes, err)
	}
	if _, err := has.Ask(t.Context(), all["a"].Hub, "b", core.Principal{ID: "ann"}, "nothing"); core.AsFault(err).Message != "ann asks for nothing" {
		t.Errorf("got %v, want the fault of the other hub", err)
	}
}

func TestAHomeIsTheSameAtAllHubsAndMovesWithItsHubAlone(t *testing.T) {
	all := connected(t, "a", "b", "c")
	others := []string{"a", "b", "c"}
	home := func(at, key string) string {
		if name := all[at].HomeOf(key, others); name != "" {
			return name
		}
		return at
	}
	of := map[string]int{}
	before := map[string]string{}
	for i := range 300 {
		key := string(rune('A' + i))
		before[key] = home("a", key)
		of[before[key]]++
		if b, c := home("b", key), home("c", key); b != before[key] || c != before[key] {
			t.Fatalf("%s: got %s, %s and %s, want one home", key, before[key], b, c)
		}
	}
	if len(of) != 3 || of["a"] < 50 || of["b"] < 50 || of["c"] < 50 {
		t.Errorf("got %v, want about a third at each", of)
	}
	others = []string{"a", "b"}
	for key, was := range before {
		if now := home("a", key); was != "c" && now != was {
			t.Errorf("%s: got %s, want it to stay at %s", key, now, was)
		}
	}
}

func TestAHubThatDrainsIsNoHome(t *testing.T) {
	all := connected(t, "a", "b", "c")
	all["a"].hubs.HubDraining("c")
	all["b"].hubs.HubDraining("c")
	if err := all["c"].Drain(core.Principal{Operator: true}); err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for i := range 100 {
		key := string(rune('A' + i))
		at := map[string]string{}
		for name, n := range all {
			at[name] = cmp.Or(n.HomeOf(key, []string{"a", "b", "c"}), name)
		}
		if of[at["a"]]++; at["b"] != at["a"] || at["c"] != at["a"] {
			t.Fatalf("%s: got the homes %v, want one", key, at)
		}
	}
	if of["c"] > 0 || of["a"] == 0 || of["b"] == 0 {
		t.Errorf("got %v, want those at a and b", of)
	}
	all["c"].hubs.HubDraining("a")
	all["c"].hubs.HubDraining("b")
	if home := all["c"].HomeOf("k", []string{"a", "b"}); home != "" {
		t.Errorf("where all drain: got %q, want the hub itself", home)
	}
}
