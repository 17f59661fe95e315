package service

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	a2awire "github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// Dialect is one row of the table in which transports and dialects meet. Fields may be nil
// except Name and Translation.
type Dialect struct {
	Name string
	// Translation declares how every kind of event and each command is translated.
	Translation core.Translation

	// Open creates the shared state before the first connection.
	Open func(*Service, context.Context) error
	// Mount binds the dialect to the listeners; nil if nobody connects to the hub with it.
	Mount func(*Service, *listeners)
	// Drain ends running work until the context ends. The hub has ended the sessions.
	Drain func(*Service, context.Context)
	// Close frees the shared state after the last connection.
	Close func(*Service)

	// Join joins a hub as an agent that a handler is, Serve as one that takes turns: both, or neither.
	Join  client.JoinFunc
	Serve client.ServeFunc

	// LargeMessages are the gRPC methods with larger messages than usual, and the size.
	LargeMessages map[string]int
}

// Dialects returns all rows, in the order of the documentation; the last two are interfaces of
// the hub itself.
func Dialects() []Dialect {
	return []Dialect{
		{
			Name: coven.Name, Translation: coven.Translation, Mount: (*Service).mountCoven, Join: client.JoinCoven, Serve: client.ServeCoven,
			LargeMessages: map[string]int{wire.PackService_ToolResult_FullMethodName: coven.MaxResultBytes},
		},
		{Name: parallax.Dialect, Translation: parallax.Translation, Mount: (*Service).mountParallax, Join: client.JoinParallax, Serve: client.ServeParallax},
		{Name: pi.Name, Translation: pi.Translation, Open: (*Service).openPi, Mount: (*Service).mountPi, Drain: (*Service).drainPi, Close: (*Service).closePi},
		{Name: acp.Dialect, Translation: acp.Translation, Open: (*Service).openACP, Mount: (*Service).mountACP, Drain: (*Service).drainACP, Join: client.JoinACP, Serve: client.ServeACP},
		{Name: native.Dialect, Translation: native.Translation, Mount: (*Service).mountNative, Join: client.JoinNative, Serve: client.ServeNative},
		{Name: pirpc.Name, Translation: pirpc.Translation},
		{Name: a2awire.Dialect, Translation: a2a.Translation, Open: (*Service).openA2A, Mount: (*Service).mountA2A, Drain: (*Service).drainA2A},
		{Name: editor.Dialect, Translation: editor.Translation, Mount: (*Service).mountEditor},
		{Name: rest.Translation.Dialect, Translation: rest.Translation, Mount: (*Service).mountREST},
		{Name: mcp.Name, Translation: mcp.Translation, Open: (*Service).openMCP, Mount: (*Service).mountMCP, Drain: (*Service).drainMCP},
	}
}

// Joins returns the dialects in which the program can join a hub as an agent.
func Joins() map[string]client.JoinFunc {
	return having(func(d Dialect) client.JoinFunc { return d.Join })
}

// Serves returns the same dialects for agents that take turns.
func Serves() map[string]client.ServeFunc {
	return having(func(d Dialect) client.ServeFunc { return d.Serve })
}

// having returns a function of the dialects that have it, by their names.
func having[F client.JoinFunc | client.ServeFunc](of func(Dialect) F) map[string]F {
	all := map[string]F{}
	for _, d := range Dialects() {
		if f := of(d); f != nil {
			all[d.Name] = f
		}
	}
	return all
}

// translations returns the declarations of all dialects.
func translations() core.Translations {
	all := core.Translations{}
	for _, d := range Dialects() {
		all[d.Name] = d.Translation
	}
	return all
}

// agentDialects returns the dialects of agents.
func agentDialects() (names []string) {
	for _, d := range Dialects() {
		if d.Translation.FromAgent != nil {
			names = append(names, d.Name)
		}
	}
	return names
}
