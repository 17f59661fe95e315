// Package wire is the codec of the Coven agent protocol: its messages, and what they
// mean as requests, events and cards of the hub. It has no state.
//
// [EventOf] turns a MessageResponse into an event and [ResponseOf] turns it back;
// [PromptOf] and [RequestOf] do so for a SendMessage, [CardOf] and [RegisterOf] for a
// RegisterAgent, [InjectOf], [AckOf], [ApprovalOf] and their inverses for the messages
// about a running request. What Coven has no field for is folded into text; fields that
// this hub does not know are kept byte for byte.
package wire

import "time"

// Name is the name of the dialect: on cards, in counters, in [core.Foreign].
const Name = "coven"

const (
	// DefaultMaxMessageBytes is what every gRPC library accepts by default. A larger
	// message ends the stream of its receiver.
	DefaultMaxMessageBytes = 4 << 20
	// DefaultDeadline is how long the answer to an agent or a client may take.
	DefaultDeadline = 600 * time.Second
	// ApprovalTimeout is how long an agent waits for a decision on a tool call.
	ApprovalTimeout = 300 * time.Second
)
