package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/topic"
)

// A notice is published at the hub that owns its task, and at all others. Its publisher learns that
// nobody subscribes once all have said so.

const (
	// newsOfTopics is what the books of topics tell each other.
	newsOfTopics rpc.News[topicWord] = "topics"
	// newsOfNotices is a notice that is published, from the hub that owns it.
	newsOfNotices rpc.News[noticed] = "notices"
	// newsOfSubscribers says whether a hub has subscribers for a notice, to the hub that asked.
	newsOfSubscribers rpc.News[wanted] = "notices.wanted"
)

func (h *Hub) hearTopics() {
	newsOfTopics.Hear(h, h.hearTopic, func(from string) { h.topics.HubUp(from) })
	newsOfNotices.Hear(h, h.hearNotice, func(string) { h.topics.Missed() })
	newsOfSubscribers.Hear(h, h.hearWanted, nil)
}

// topicWord is a [topic.Word] in its stable JSON form.
type topicWord struct {
	Subscribed *topic.Subscribed `json:"subscribed,omitempty"`
	Resumed    *topic.Identity   `json:"resumed,omitempty"`
	Kept       *keptNotices      `json:"kept,omitempty"`
	All        bool              `json:"all,omitempty"`
}

type keptNotices struct {
	Who      topic.Identity `json:"who"`
	Patterns []string       `json:"patterns,omitempty"`
	Notices  []noticed      `json:"notices,omitempty"`
	Gap      bool           `json:"gap,omitempty"`
}

// noticed is a notice: the first event of its task, and who published it.
type noticed struct {
	Opened core.Event `json:"opened"`
	From   Caller     `json:"from"`
	// Asks wants to know whether the hub has subscribers.
	Asks bool `json:"asks,omitempty"`
	// To says that it was addressed to the subscriber.
	To bool `json:"to,omitempty"`
}

type wanted struct {
	Task   core.TaskID `json:"task"`
	Wanted bool        `json:"wanted,omitempty"`
}

func (h *Hub) tellTopic(hub string, w topic.Word) {
	out := topicWord{Subscribed: w.Subscribed, Resumed: w.Resumed, All: w.All}
	if k := w.Kept; k != nil {
		out.Kept = &keptNotices{Who: k.Who, Patterns: k.Patterns, Gap: k.Gap}
		for _, n := range k.Notices {
			t := n.Task.(*task.Task)
			out.Kept.Notices = append(out.Kept.Notices, noticed{Opened: t.Events()[0], From: CallerOf(n.From), To: n.To})
		}
	}
	if out.Kept != nil {
		if newsOfTopics.Tell(h, hub, out) == nil {
			return
		}
		out.Kept.Notices, out.Kept.Gap = nil, true
	}
	newsOfTopics.TellEach(h, []string{hub}, out)
}

func (h *Hub) hearTopic(from string, w topicWord) {
	in := topic.Word{Subscribed: w.Subscribed, Resumed: w.Resumed, All: w.All}
	if k := w.Kept; k != nil {
		in.Kept = &topic.Kept{Who: k.Who, Patterns: k.Patterns, Gap: k.Gap}
		for _, n := range k.Notices {
			if one, ok := h.noticeOf(n); ok {
				in.Kept.Notices = append(in.Kept.Notices, topic.KeptNotice{Notice: one, To: n.To})
			}
		}
	}
	h.topics.Hear(from, in)
}

// noticeOf returns a notice of another hub.
func (h *Hub) noticeOf(n noticed) (one topic.Notice, ok bool) {
	b, ok := n.Opened.Body.(core.Opened)
	if !ok || b.Request.Notice == nil {
		h.Count("peer.invalid")
		return one, false
	}
	from := n.From.Known()
	one = topic.Notice{ID: b.Task, Topic: b.Request.Notice.Topic, From: from, Size: task.OverheadBytes + n.Opened.Size(), Task: h.tasks.Copy(from, n.Opened)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if opener := h.asked[b.Task]; opener != nil { // who does not get it
		one.By = opener.root().peer()
	}
	return one, true
}

// hearNotice publishes a notice of another hub here.
func (h *Hub) hearNotice(from string, n noticed) {
	one, ok := h.noticeOf(n)
	has := ok && h.topics.Publish(one)
	if n.Asks && ok {
		newsOfSubscribers.TellEach(h, []string{from}, wanted{one.ID, has})
	}
}

// publishElsewhere publishes a notice at all other hubs. If it asks, the notice ends with what they
// say; it reports whether any was told.
func (h *Hub) publishElsewhere(j *job, asks bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := newsOfNotices.TellAll(h, noticed{Opened: j.Events()[0], From: CallerOf(j.From()), Asks: asks})
	if asks && len(told) > 0 {
		waits := map[string]bool{}
		for _, name := range told {
			waits[name] = true
		}
		h.noticed[j.ID()] = waits
	}
	return len(told) > 0
}

// hearWanted ends a notice once it is known whether there are subscribers.
func (h *Hub) hearWanted(from string, w wanted) {
	h.mu.Lock()
	j, wanted, done := h.settleNotice(w.Task, from, w.Wanted)
	h.mu.Unlock()
	if done {
		h.endNotice(j, wanted)
	}
}

// settleNotice notes what a hub says of a notice. It reports whether the notice is to end, and as what.
// Callers hold mu.
func (h *Hub) settleNotice(id core.TaskID, from string, has bool) (j *job, wanted, done bool) {
	asked := h.noticed[id]
	if asked == nil || !asked[from] {
		return nil, false, false
	}
	delete(asked, from)
	if !has && len(asked) > 0 {
		return nil, false, false
	}
	delete(h.noticed, id)
	j = h.jobs[id]
	return j, has, j != nil
}

// endNotice ends a notice to subscribers.
func (h *Hub) endNotice(j *job, wanted bool) {
	if wanted {
		j.End(core.Done{})
		h.record(j)
		return
	}
	h.reject(j, unsubscribed(j.Topic()))
}

func unsubscribed(topic string) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "nobody subscribes to %q: address an agent, or try again later", topic)
}

// noticesGone returns the notices that a hub which is gone was asked about, and which end now. Callers
// hold mu.
func (h *Hub) noticesGone(hub string) (over []*job) {
	for id := range h.noticed {
		if j, _, done := h.settleNotice(id, hub, false); done {
			over = append(over, j)
		}
	}
	return over
}
