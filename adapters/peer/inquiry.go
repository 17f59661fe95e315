package peer

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// Bounds of what hubs ask each other.
const (
	inquirers     = 4   // how many inquiries of a hub are answered at once
	mostInquiries = 256 // how many wait for that

	// answerTime is how long answering one may take, where who asks does not say how long it waits.
	answerTime = 10 * time.Second
)

// inquiries are those that wait for the other hub. Peer.mu guards them.
type inquiries struct {
	last    uint64
	waiting map[uint64]chan answered
}

// answered is what became of an inquiry.
type answered struct {
	Value json.RawMessage `json:"value,omitempty"`
	Fault *core.Fault     `json:"fault,omitempty"`
}

func (i *inquiries) add() (number uint64, done chan answered) {
	if i.waiting == nil {
		i.waiting = map[uint64]chan answered{}
	}
	i.last++
	done = make(chan answered, 1)
	i.waiting[i.last] = done
	return i.last, done
}

func (i *inquiries) settle(number uint64, a answered) {
	if done := i.waiting[number]; done != nil {
		delete(i.waiting, number)
		done <- a
	}
}

// fail ends all of them.
func (i *inquiries) fail(why *core.Fault) {
	for number := range i.waiting {
		i.settle(number, answered{Fault: why})
	}
}

// ask asks the other hub, and waits for what it says. While there is no connection it waits for the
// next one; an inquiry whose connection ends is not repeated, for it may have been answered.
func (o *Peer) ask(ctx context.Context, q rpc.Request) (json.RawMessage, error) {
	form := inquiry{By: hub.CallerOf(q.By), Request: q}
	if until, ok := ctx.Deadline(); ok {
		form.Within = time.Until(until)
	}
	body, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	conn, err := o.connected(ctx)
	if err != nil {
		return nil, err
	}
	number, done := o.inquiries.add()
	o.write(conn, append(binary.AppendUvarint([]byte{frameInquiry}, number), body...))
	o.mu.Unlock()
	select {
	case a := <-done:
		if a.Fault != nil {
			return nil, a.Fault
		}
		return a.Value, nil
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.inquiries.waiting, number)
		return nil, context.Cause(ctx)
	}
}

// asked is an inquiry of the other hub.
type asked struct {
	number uint64
	until  time.Time // then nobody waits for the answer any more
	rpc.Request
}

var errNumber = errors.New("an inquiry or an answer without a number")

// inquired hands an inquiry to who answers it.
func (c *connection) inquired(body []byte) error {
	number, size := binary.Uvarint(body)
	if size <= 0 {
		return errNumber
	}
	var q inquiry
	if err := json.Unmarshal(body[size:], &q); err != nil {
		return err
	}
	q.Request.By = q.By.Known()
	select {
	case c.inquiries <- asked{number, time.Now().Add(min(cmp.Or(q.Within, answerTime), answerTime)), q.Request}:
		return nil
	default:
		busy := core.NewFault(core.CodeOverloaded, "more than %d inquiries wait: ask again in a moment", mostInquiries)
		frame, err := encodeAnswer(number, answered{Fault: busy})
		if err == nil {
			err = c.link.Send(now, frame, len(frame))
		}
		return err
	}
}

// answer answers what the other hub asks, one after the other.
func (c *connection) answer(ctx context.Context) {
	for {
		select {
		case q := <-c.inquiries:
			frame, err := encodeAnswer(q.number, c.answerTo(ctx, q))
			if err != nil {
				frame, _ = encodeAnswer(q.number, answered{Fault: core.NewFault(core.CodeInternal, "the answer cannot be sent: %s", err)}) // this one can
			}
			if c.events.send(ctx, c.link, frame) != nil {
				return
			}
			c.link.Flush()
		case <-ctx.Done():
			return
		}
	}
}

// answerTo answers an inquiry for as long as somebody waits for that.
func (c *connection) answerTo(ctx context.Context, q asked) answered {
	ctx, cancel := context.WithDeadline(ctx, q.until)
	defer cancel()
	value, err := c.hub.RPC().Answer(ctx, q.Request)
	if err != nil {
		return answered{Fault: core.AsFault(err)}
	}
	return answered{Value: value}
}

// settled takes an answer of the other hub.
func (o *Peer) settled(body []byte) error {
	number, size := binary.Uvarint(body)
	if size <= 0 {
		return errNumber
	}
	var a answered
	if err := json.Unmarshal(body[size:], &a); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inquiries.settle(number, a)
	return nil
}

// inquiry is the form of one in a frame.
type inquiry struct {
	By hub.Caller `json:"by"`
	// Within is how long who asks waits; zero if that has no limit.
	Within time.Duration `json:"within,omitzero"`
	rpc.Request
}

func encodeAnswer(number uint64, a answered) ([]byte, error) {
	body, err := json.Marshal(a)
	return append(binary.AppendUvarint([]byte{frameAnswer}, number), body...), err
}
