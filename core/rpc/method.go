package rpc

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Method is the name of what engines ask each other, with the types of the question and of the answer in their
// stable JSON form.
type Method[In, Out any] string

// Answered is what one engine has answered.
type Answered[Out any] struct {
	Hub string
	Out Out
}

// AnswerTime is how long an engine may take to answer what all are asked.
const AnswerTime = 2 * time.Second

// Answer answers the method at an engine: with what that one has, without asking others. It may wait until ctx ends.
func (m Method[In, Out]) Answer(at Host, answer func(ctx context.Context, by core.Principal, in In) (Out, error)) {
	n := at.RPC()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.methods[string(m)] = func(ctx context.Context, by core.Principal, raw json.RawMessage) (json.RawMessage, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the inquiry %s: %s", m, err)
		}
		out, err := answer(ctx, by, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// Ask asks another engine for a principal, which passed the door of this one. It waits until ctx ends.
func (m Method[In, Out]) Ask(ctx context.Context, from Host, to string, by core.Principal, in In) (out Out, err error) {
	n := from.RPC()
	if n.peers == nil {
		return out, errAlone(to)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	answer, err := n.peers.Ask(ctx, to, Request{What: string(m), By: by, In: raw})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer, &out)
}

// AskAll asks all other engines at once, and waits for [AnswerTime]. It returns what those say that answer in time,
// by name, and the names of those that are missing, in order. One that is alone asks nobody.
func (m Method[In, Out]) AskAll(ctx context.Context, from Host, by core.Principal, in In) (all []Answered[Out], missing []string) {
	up, missing, _ := from.RPC().Names()
	all, late := m.AskThese(ctx, from, up, by, in)
	missing = append(missing, late...)
	slices.Sort(missing)
	return all, slices.Compact(missing)
}

// AskThese is AskAll for some, by name. Missing are those of them that have not answered.
func (m Method[In, Out]) AskThese(ctx context.Context, from Host, names []string, by core.Principal, in In) (all []Answered[Out], missing []string) {
	if len(names) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	answers, failed := make([]Answered[Out], len(names)), make([]error, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() {
			answers[i].Hub = name
			answers[i].Out, failed[i] = m.Ask(ctx, from, name, by, in)
		})
	}
	asking.Wait()
	for i, a := range answers {
		if failed[i] == nil {
			all = append(all, a)
			continue
		}
		missing = append(missing, a.Hub)
		from.RPC().log.Info("a hub has not answered", "hub", a.Hub, "inquiry", string(m), "error", failed[i])
	}
	return all, missing
}
