package pirpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// kid is a process of pi that the test plays. It answers get_state itself.
type kid struct {
	*testing.T
	env      []string
	args     []string
	conn     *coretest.End[[]byte, []byte]
	commands chan command

	out    sync.Mutex // held while lines are sent
	state  string     // the data of get_state
	states int        // how often it was asked for
	mute   bool
}

// command is what the hub sends to a process.
type command struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Images  []struct {
		Data     string `json:"data"`
		MimeType string `json:"mimeType"`
	} `json:"images"`
	Path      string  `json:"sessionPath"`
	Value     *string `json:"value"`
	Confirmed *bool   `json:"confirmed"`
	Cancelled bool    `json:"cancelled"`
}

const idle = `{"isStreaming":false,"isCompacting":false,"pendingMessageCount":0,"sessionId":"s","messageCount":0,"model":{"id":"m1","provider":"stub"}}`

// serve answers get_state, and passes on everything else.
func (k *kid) serve() {
	for {
		line, err := k.conn.Receive(context.Background())
		if err != nil {
			close(k.commands)
			return
		}
		var c command
		if err := json.Unmarshal(line, &c); err != nil {
			k.Errorf("the hub sent %s: %v", line, err)
		}
		if c.Type != "get_state" {
			k.commands <- c
			continue
		}
		k.out.Lock()
		k.states++
		if !k.mute {
			k.send(fmt.Sprintf(`{"id":%q,"type":"response","command":"get_state","success":true,"data":%s}`, c.ID, k.state))
		}
		k.out.Unlock()
	}
}

// is sets the state.
func (k *kid) is(state string) {
	k.out.Lock()
	defer k.out.Unlock()
	k.state = state
}

// say sends lines of the process, which may stand on several lines of the test. Nothing comes
// between the lines of one call: pi sends them in one step.
func (k *kid) say(lines ...string) {
	k.out.Lock()
	defer k.out.Unlock()
	for _, block := range lines {
		for line := range strings.Lines(block) {
			k.send(strings.TrimSpace(line))
		}
	}
}

// send sends a line. Callers hold out.
func (k *kid) send(line string) {
	if line != "" {
		_ = k.conn.Send(context.Background(), []byte(line)) // the hub may have gone
	}
}

// next returns the next command, which must be of a type.
func (k *kid) next(kind string) command {
	k.Helper()
	c, open := <-k.commands
	if !open || c.Type != kind {
		k.Fatalf("the hub sent %+v (open: %v), want %s", c, open, kind)
	}
	return c
}

// accept answers a command.
func (k *kid) accept(c command) {
	k.say(fmt.Sprintf(`{"id":%q,"type":"response","command":%q,"success":true}`, c.ID, c.Type))
}

// prompted takes a prompt and begins its run.
func (k *kid) prompted() command {
	k.Helper()
	c := k.next("prompt")
	k.is(strings.Replace(idle, `"isStreaming":false`, `"isStreaming":true`, 1))
	k.accept(c)
	k.say(`{"type":"agent_start"}`, `{"type":"turn_start"}`, `{"type":"message_start","message":{"role":"user","content":[]}}`, `{"type":"message_end","message":{"role":"user","content":[]}}`)
	return c
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// begins, delta and ends are a message of the assistant, as new versions send it.
func (k *kid) begins() { k.say(`{"type":"message_start","message":{"role":"assistant","content":[]}}`) }

func (k *kid) delta(text string) {
	k.say(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":` + quoted(text) + `}}`)
}

func (k *kid) ends(text, stop, more string) {
	k.say(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":` + quoted(text) + `}],"stopReason":"` + stop + `"` + more + `}}`)
}

// answers says a message of one piece.
func (k *kid) answers(text string) {
	k.begins()
	k.delta(text)
	k.ends(text, "stop", "")
}

// settles ends a run as old versions do.
func (k *kid) settles() {
	k.is(idle)
	k.say(`{"type":"agent_end","messages":[]}`)
}

// dies ends the process, whose output has been read.
func (k *kid) dies(why string) {
	synctest.Wait()
	_ = k.conn.Close(link.Reason{Cause: link.Protocol, Text: why})
}
