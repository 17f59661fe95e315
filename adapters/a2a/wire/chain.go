package wire

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// ChainExtension is the URI of our extension that ends loops of hubs which ask each other. The
// metadata of SendMessage and SendStreamingMessage has a [Chain] under this key. In a card its
// params are an object whose member hub is the id of the hub, so that a hub recognises itself.
// It needs no activation.
const ChainExtension = "urn:dragoman:a2a:chain:1"

// Chain is what stands above a message in its chain of causes: tasks of the hubs that it came
// through.
type Chain struct {
	// Hops is how many tasks there are.
	Hops int `json:"hops"`
	// Tasks are the ids of those that the hubs know, the nearest last. A hub to which the
	// message comes back finds its own among them.
	Tasks []string `json:"tasks,omitempty"`
}

// maxChainTasks is how many ids a chain has: more than the hops that a hub allows.
const maxChainTasks = 64

// Below returns the chain above what a hub sends for a task, above which it knows of some hops.
func (c Chain) Below(task string, hops int) Chain {
	c.Hops = max(c.Hops, hops) + 1
	c.Tasks = append(slices.Clip(c.Tasks), task)
	c.Tasks = c.Tasks[max(0, len(c.Tasks)-maxChainTasks):]
	return c
}

// Chain returns what stands above the message, by [ChainExtension]; the zero Chain for nothing.
func (r SendRequest) Chain() (c Chain, err error) {
	if len(r.Metadata) == 0 {
		return c, nil
	}
	v, err := Parse(r.Metadata)
	if err != nil {
		return c, under("metadata", err)
	}
	if v = v.Get(ChainExtension); v.Absent() {
		return c, nil
	}
	switch err = v.Decode(&c); {
	case err != nil:
	case c.Hops < 0:
		err = under("hops", wrong("want 0 or more, got %d", c.Hops))
	case len(c.Tasks) > maxChainTasks:
		err = under("tasks", wrong("want at most %d, got %d", maxChainTasks, len(c.Tasks)))
	}
	return c, under("metadata", under("["+ChainExtension+"]", err))
}

// SetChain sets what stands above the message, and keeps the other metadata.
func (r *SendRequest) SetChain(c Chain) error {
	raw, err := strictjson.Marshal(c)
	if err != nil {
		return err
	}
	metadata := r.Metadata
	if len(metadata) == 0 {
		metadata = json.RawMessage("{}")
	}
	r.Metadata = strictjson.ParseValid(metadata).Set(strictjson.Field{Key: ChainExtension, Value: raw})
	return nil
}

// Hub returns the id of the hub that a card is of, by [ChainExtension]; "" for none.
func (c Capabilities) Hub() string {
	for _, e := range c.Extensions {
		if e.URI == ChainExtension && len(e.Params) > 0 {
			id, _ := strictjson.ParseValid(e.Params).Get("hub").Text()
			return id
		}
	}
	return ""
}
