package trace

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// Sampler decides which tasks are traced, and gives them their ids. A task below another, or
// below a span of its caller, is sampled as that is; of the others a share is. It allocates only
// for what is sampled. It is safe for concurrent use.
type Sampler struct{ limit uint64 }

// NewSampler returns a Sampler for the ratio of traces, from 0 to 1, that are sampled.
func NewSampler(ratio float64) Sampler {
	return Sampler{uint64(math.Min(1, math.Max(0, ratio)) * (1 << 63))}
}

// Open implements part of [policy.Tracer]. The span of a task is below that which the call
// carried, else below its cause, else in a new trace. Nobody waits for a notice: it is in a trace
// of its own that is linked to them.
func (s Sampler) Open(o policy.Opening) core.Trace {
	above := o.Given
	caused := above.Parent == "" && o.IsCaused
	if caused {
		above = o.Cause
	}
	parent, is := above.Span()
	switch {
	case is && !parent.Sampled:
		return core.Trace{Parent: above.Parent, State: above.State}
	case !is && (caused || !s.samples()):
		return core.Trace{}
	}
	own := core.Span{Trace: parent.Trace, ID: newID(), Sampled: true}
	if !is || o.IsNotice {
		own.Trace = newTraceID()
	}
	t := core.Trace{Parent: own.String(), State: above.State, Above: above.Parent}
	switch {
	case o.Tool == "":
	case caused && o.Call != "":
		t.Above = core.Span{Trace: parent.Trace, ID: toolID(parent.ID, o.Call, 0), Sampled: true}.String()
	default:
		t.Tool = o.Tool
	}
	return t
}

// Tool implements part of [policy.Tracer].
func (Sampler) Tool(task core.Trace, call string) core.Trace {
	s, ok := task.Span()
	if !ok || !s.Sampled {
		return task
	}
	s.ID = toolID(s.ID, call, 0)
	return core.Trace{Parent: s.String(), State: task.State}
}

// samples decides on a new trace.
func (s Sampler) samples() bool { return s.limit > 0 && rand.Uint64()>>1 < s.limit } //nolint:gosec // not a secret

func newTraceID() (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()) //nolint:gosec // not a secret
	one := newID()
	copy(id[8:], one[:])
	return id
}

func newID() (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], max(1, rand.Uint64())) //nolint:gosec // not a secret
	return id
}

// toolID derives the id of the span of a tool call from the span of its task and the id of the
// call. Models may use an id again: nth counts from 0.
func toolID(task [8]byte, call string, nth int) (id [8]byte) {
	h := fnv.New64a()
	h.Write(task[:])
	h.Write([]byte(call))
	if nth > 0 {
		h.Write(binary.BigEndian.AppendUint32([]byte{0}, uint32(nth))) //nolint:gosec // bounded by maxSpans
	}
	binary.BigEndian.PutUint64(id[:], max(1, h.Sum64()))
	return id
}
