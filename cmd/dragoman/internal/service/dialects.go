package service

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// Dialect is one row of the table in which transports and dialects meet. What a row leaves
// nil there is nothing to do for.
type Dialect struct {
	Name string
	// Translation is what becomes of every kind of event, and what gives each command.
	Translation core.Translation

	// Open makes what the connections of a hub share, before the first one comes.
	Open func(*Service, context.Context) error
	// Mount binds the dialect to the listeners that there are.
	Mount func(*Service, *listeners)
	// Drain ends what goes on, until the context ends. The hub has ended the sessions.
	Drain func(*Service, context.Context)
	// Close frees what the connections shared, once the last of them has gone.
	Close func(*Service)

	// Join joins a hub as an agent.
	Join client.JoinFunc

	// LargeMessages are the gRPC methods that have messages of more than the usual size,
	// each with how many bytes.
	LargeMessages map[string]int
}

// Dialects are all that a hub speaks, in the order of the documentation; the last two are
// interfaces of its own.
func Dialects() []Dialect {
	return []Dialect{
		{
			Name: coven.Name, Translation: coven.Translation, Mount: (*Service).mountCoven, Join: client.JoinCoven,
			LargeMessages: map[string]int{wire.PackService_ToolResult_FullMethodName: coven.MaxResultBytes},
		},
		{Name: parallax.Dialect, Translation: parallax.Translation, Mount: (*Service).mountParallax, Drain: (*Service).drainParallax, Join: client.JoinParallax},
		{Name: pi.Name, Translation: pi.Translation, Open: (*Service).openPi, Mount: (*Service).mountPi, Drain: (*Service).drainPi, Close: (*Service).closePi},
		{Name: acp.Dialect, Translation: acp.Translation, Open: (*Service).openACP, Mount: (*Service).mountACP, Drain: (*Service).drainACP, Join: client.JoinACP},
		{Name: rest.Translation.Dialect, Translation: rest.Translation, Mount: (*Service).mountREST},
		{Name: mcp.Name, Translation: mcp.Translation, Open: (*Service).openMCP, Mount: (*Service).mountMCP, Drain: (*Service).drainMCP},
	}
}

// Joins are the dialects in which the program can join a hub as an agent.
func Joins() map[string]client.JoinFunc {
	joins := map[string]client.JoinFunc{}
	for _, d := range Dialects() {
		if d.Join != nil {
			joins[d.Name] = d.Join
		}
	}
	return joins
}

// agentDialects are those that agents speak.
func agentDialects() (names []string) {
	for _, d := range Dialects() {
		if d.Translation.FromAgent != nil {
			names = append(names, d.Name)
		}
	}
	return names
}
