package bridge

import (
	"bytes"
	"sync"

	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
)

// held are the tasks of a process, as its frames and those of the hub tell. They let the agent leave
// once the last one has ended. A held without a leave reads no frames.
type held struct {
	leave *coreagent.Leave

	mu    sync.Mutex
	begun map[core.TaskID]bool // false while a task is told and not assigned
}

// fromHub notes what a frame of the hub says of a task. It returns why the agent refuses the task that
// the frame assigns, if it does.
func (h *held) fromHub(frame []byte) (id core.TaskID, refused *core.Fault) {
	if h.leave == nil || !bytes.Contains(frame, []byte(`"role":"agent"`)) {
		return "", nil
	}
	kind, v, err := nativewire.DecodeHub(frame)
	role, _ := v.Get("role").Text()
	if err != nil || kind != "event" || role != "agent" {
		return "", nil
	}
	text, _ := v.Get("task").Text()
	id = core.TaskID(text)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch event, _ := v.Get("kind").Text(); event {
	case core.KindOpened.String():
		if intent, _ := v.Get("body").Get("request").Get("intent").Text(); intent != core.IntentNotify.String() {
			h.begun[id] = false // a notice has no end
		}
	case core.KindAssigned.String():
		if begun, told := h.begun[id]; !told || begun {
			break
		}
		if refused = h.leave.Begin(); refused != nil {
			delete(h.begun, id)
			return id, refused
		}
		h.begun[id] = true
	case core.KindDone.String(), core.KindFailed.String(), core.KindCancelled.String():
		h.end(id)
	}
	return "", nil
}

// ends are what a line of a process contains that ends a task.
var ends = [][]byte{[]byte(`"done"`), []byte(`"failed"`), []byte(`"cancelled"`)}

// fromProcess notes the task that a line of the process has ended, after it was passed on.
func (h *held) fromProcess(line []byte) {
	if h.leave == nil || !bytes.Contains(line, []byte(`"event"`)) {
		return
	}
	for _, end := range ends {
		if !bytes.Contains(line, end) {
			continue
		}
		f, err := nativewire.Decode(line, MaxLine)
		if e, ok := f.(nativewire.Event); err == nil && ok && e.Body.Kind().Ends() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.end(e.Task)
		}
		return
	}
}

// end ends a task. Callers hold mu.
func (h *held) end(id core.TaskID) {
	if h.begun[id] {
		h.leave.End()
	}
	delete(h.begun, id)
}

// drop ends all tasks: the connection is lost.
func (h *held) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.begun {
		h.end(id)
	}
}
