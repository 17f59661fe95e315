package hub

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Inquiry is what one hub asks another, in its stable JSON form.
type Inquiry struct {
	// What says which of the inquiries it is.
	What string `json:"what"`
	// By is who asks at the other hub, with the rights that the credential gives.
	By core.Principal `json:"-"`
	// In is what belongs to it.
	In json.RawMessage `json:"in,omitempty"`
}

// News is what a hub tells others, in its stable JSON form.
type News struct {
	// What says which of the news it is.
	What string `json:"what"`
	// Value is what belongs to it.
	Value json.RawMessage `json:"value"`
}

// inquiry is a kind of inquiry: its name, and how a hub answers it for a principal. The hub where
// the principal is has passed the door.
type inquiry[In, Out any] struct {
	what   string
	answer func(ctx context.Context, h *Hub, by core.Principal, in In) (Out, error)
}

// answerer is an inquiry of any types.
type answerer interface {
	name() string
	run(ctx context.Context, h *Hub, q Inquiry) (json.RawMessage, error)
}

func (q inquiry[In, Out]) name() string { return q.what }

func (q inquiry[In, Out]) run(ctx context.Context, h *Hub, asked Inquiry) (json.RawMessage, error) {
	var in In
	if err := json.Unmarshal(asked.In, &in); err != nil {
		return nil, core.NewFault(core.CodeInvalid, "the inquiry %s: %s", q.what, err)
	}
	out, err := q.answer(ctx, h, asked.By, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// ask asks one hub.
func (q inquiry[In, Out]) ask(ctx context.Context, h *Hub, hub string, by core.Principal, in In) (out Out, err error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	answer, err := h.others.peers.Ask(ctx, hub, Inquiry{What: q.what, By: by, In: raw})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer, &out)
}

// inquiryTime is how long a hub may take to answer what all are asked.
const inquiryTime = 2 * time.Second

// answerOf is what a hub has answered, or why it has not.
type answerOf[Out any] struct {
	hub string
	out Out
	err error
}

// askAll asks all other hubs at once. It returns what those say that answer in time, by name, and
// the names of those that are missing: what is made of the answers says so.
func (q inquiry[In, Out]) askAll(ctx context.Context, h *Hub, by core.Principal, in In) (all []answerOf[Out], missing []string) {
	all, missing = q.askEach(ctx, h, by, in)
	all = slices.DeleteFunc(all, func(a answerOf[Out]) bool {
		if a.err != nil {
			missing = append(missing, a.hub)
			h.log.Info("a hub has not answered", "hub", a.hub, "inquiry", q.what, "error", a.err)
		}
		return a.err != nil
	})
	slices.Sort(missing)
	return all, slices.Compact(missing)
}

// askEach is askAll with an answer or an error of each hub that is connected. Missing are those that
// are not.
func (q inquiry[In, Out]) askEach(ctx context.Context, h *Hub, by core.Principal, in In) (all []answerOf[Out], missing []string) {
	if h.others.peers == nil {
		return nil, nil
	}
	up, missing := h.otherNames()
	ctx, cancel := context.WithTimeout(ctx, inquiryTime)
	defer cancel()
	all = make([]answerOf[Out], len(up))
	var asking sync.WaitGroup
	for i, name := range up {
		asking.Go(func() {
			all[i].hub = name
			all[i].out, all[i].err = q.ask(ctx, h, name, by, in)
		})
	}
	asking.Wait()
	return all, missing
}

// otherNames returns the names of the other hubs that are connected, and of those that are not, or are
// silent.
func (h *Hub) otherNames() (up, missing []string) {
	if h.cluster != nil {
		missing = h.cluster.Missing()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	missing = slices.DeleteFunc(missing, func(name string) bool { return h.others.up[name] })
	for name := range h.others.up {
		if h.isSilent(name) {
			missing = append(missing, name)
		} else {
			up = append(up, name)
		}
	}
	slices.Sort(up)
	return up, missing
}

// Answer answers an inquiry of another hub. It may wait, until ctx ends. It returns an unsupported
// Fault for one that this version does not know.
func (h *Hub) Answer(ctx context.Context, _ string, q Inquiry) (json.RawMessage, error) {
	for _, known := range inquiries() {
		if known.name() == q.What {
			return known.run(ctx, h, q)
		}
	}
	if answer, ok, err := h.matter(ctx, q); ok {
		return answer, err
	}
	return nil, core.NewFault(core.CodeUnsupported, "this hub does not know the inquiry %q: it is of another version", q.What)
}

// inquiries returns every inquiry.
func inquiries() []answerer {
	return []answerer{
		answersToQuestions,
		threadInquiry(), turnsInquiry(), betweenInquiry(), unreadInquiry(), runningInquiry(),
		approvalsInquiry, auditInquiry, configureInquiry, framesInquiry, restartInquiry, tasksInquiry, usageInquiry,
		commandInquiry(), recordedInquiry, adoptedInquiry, openedInquiry(),
	}
}

// news is a kind of news: its name, and what a hub does, without waiting, that is told it, and one that
// has missed some of it. The latter is called with mu held, and is nil where there is nothing to do.
type news[T any] struct {
	what   string
	told   func(h *Hub, from string, value T)
	missed func(h *Hub, from string)
}

// listener is news of any type.
type listener interface {
	name() string
	hear(h *Hub, from string, value json.RawMessage) error
	miss(h *Hub, from string)
}

func (n news[T]) name() string { return n.what }

func (n news[T]) hear(h *Hub, from string, raw json.RawMessage) error {
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	n.told(h, from, value)
	return nil
}

func (n news[T]) miss(h *Hub, from string) {
	if n.missed != nil {
		n.missed(h, from)
	}
}

// tell tells one hub, which hears it once and in the order in which it was told, or is reported as
// gone. It does not wait. After an error the hub does not hear it; who cannot say something shorter
// uses [news.tellThese].
func (n news[T]) tell(h *Hub, hub string, value T) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return h.others.peers.Tell(hub, News{What: n.what, Value: raw})
}

// tellAll tells all other hubs that are up. Callers hold mu: so a hub that comes later gets what it
// needs from [Hub.HubUp], and nobody twice. It returns those that were told.
func (n news[T]) tellAll(h *Hub, value T) (told []string) {
	if len(h.others.up) == 0 {
		return nil
	}
	return n.tellThese(h, slices.Sorted(maps.Keys(h.others.up)), value)
}

// tellThese tells hubs by name. One that cannot be told learns that it has missed something. It returns
// the others.
func (n news[T]) tellThese(h *Hub, names []string, value T) (told []string) {
	raw, err := json.Marshal(value)
	for _, name := range names {
		if err == nil {
			err = h.others.untold.before(name, n.what)
		}
		if err == nil {
			err = h.others.peers.Tell(name, News{What: n.what, Value: raw})
		}
		if err != nil {
			h.untold(name, n.what, err)
			err = nil
			continue
		}
		told = append(told, name)
	}
	return told
}

// Told hears news of another hub. It returns an error for news that cannot be read, and ignores
// those that this version does not know.
func (h *Hub) Told(hub string, n News) error {
	for _, known := range allNews() {
		if known.name() == n.What {
			return known.hear(h, hub, n.Value)
		}
	}
	h.Count("peer.unknown")
	return nil
}

// allNews returns every kind of news.
func allNews() []listener {
	return []listener{
		newsOfQuestions,
		newsOfPacks, newsOfCalls(),
		newsOfTopics, newsOfNotices, newsOfSubscribers(),
		tasksOpened(), tasksNewest(),
		spentNews, newsOfMissed(), settingsNews(), settingsWanted(),
	}
}
