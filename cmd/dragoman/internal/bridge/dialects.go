package bridge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Pi carries pi-server. It counts responses and not their ids: a line that cannot be parsed
// gets one without its id.
func Pi() Bridge {
	const response = "response"
	return Bridge{
		Path: "/ws/pi",
		asks: func([]byte) string { return response },
		answers: func(frame []byte) []string {
			var f struct {
				Type string `json:"type"`
			}
			if json.Unmarshal(frame, &f) != nil || f.Type != response {
				return nil
			}
			return []string{response}
		},
		refuse: func(why *link.Reject) []byte {
			text := "Invalid JSON: " + why.Text
			if why.Cause == link.TooLarge {
				text = fmt.Sprintf("Message size %d exceeds limit %d", why.Size, why.Limit)
			}
			return asJSONLine(struct {
				Type    string `json:"type"`
				Command string `json:"command"`
				Success bool   `json:"success"`
				Error   string `json:"error"`
			}{response, "unknown", false, text})
		},
	}
}

// ACP carries ACP. It counts answers by the id of the envelope that they answer.
func ACP() Bridge {
	a := &acpTracker{seen: lru.New(lru.Options[string, uint64]{Count: maxSeen})}
	return Bridge{
		Path: "/ws/acp", asks: a.asks, answers: a.answers, lost: a.lost,
		refuse: func(why *link.Reject) []byte {
			payload := acpwire.Error{Code: acpwire.CodeInvalidEnvelope, Message: why.Text}
			if why.Cause == link.TooLarge {
				payload.Code = acpwire.CodeTooLarge
			}
			return acpwire.Envelope{ID: core.NewID(), From: "hub", TS: time.Now().UnixMilli(), Kind: acpwire.KindError, Payload: asJSONLine(payload)}.Encode()
		},
		last: func() (line []byte, answer string) {
			id := core.NewID()
			return asJSONLine(map[string]any{"v": acpwire.Version, "id": id, "to": "hub", "kind": acpwire.KindPing}), replyTo + id
		},
	}
}

// The kinds of answers of ACP, each followed by the id of the envelope that it answers.
const (
	replyTo  = "reply to "
	reportOn = "report on "
)

// The bounds of the memory of an acpTracker.
const (
	maxSeen = 4096
	maxLong = 256
)

// acpTracker tracks which answers an ACP peer expects.
type acpTracker struct {
	mu sync.Mutex
	// seen has a hash of each envelope that was sent, by its id: the hub ignores a
	// repeated one.
	seen *lru.Cache[string, uint64]
	// long has the longest lines that were sent, the longest first. tooLarge counts the
	// lines that the hub refused for their size, with an error without an id.
	long     []longLine
	tooLarge int
}

// longLine is the length of a line and the answer that it expects.
type longLine struct {
	bytes int
	asks  string
}

// asks returns the answer that an envelope expects. An envelope that the hub refuses at once
// expects none: the refusal comes before the answer to the last envelope.
func (a *acpTracker) asks(line []byte) (wanted string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.note(longLine{len(line), wanted}) }()
	e, err := acpwire.Decode(line, MaxLine)
	if err != nil || !e.Kind.Asks() {
		return ""
	}
	var h maphash.Hash
	h.SetSeed(hashSeed)
	fmt.Fprintln(&h, e.From, e.To, e.Kind, e.Ref)
	_, _ = h.Write(e.Payload) // it never fails
	same := h.Sum64()
	if before, _ := a.seen.Get(e.ID); before == same {
		return ""
	}
	a.seen.Put(e.ID, same)
	var delegate struct {
		ReportBack *bool `json:"report_back"`
	}
	_ = json.Unmarshal(e.Payload, &delegate) // the hub refuses anything else
	if e.Kind == acpwire.KindDelegate && (delegate.ReportBack == nil || *delegate.ReportBack) {
		return reportOn + e.ID // its ack is not the end
	}
	return replyTo + e.ID
}

// note keeps a line if it is among the longest. The caller holds a.mu.
func (a *acpTracker) note(l longLine) {
	at, _ := slices.BinarySearchFunc(a.long, l, func(x, y longLine) int { return cmp.Compare(y.bytes, x.bytes) })
	a.long = slices.Insert(a.long, at, l)
	a.long = a.long[:min(len(a.long), maxLong)]
}

// answers returns the expected answers that an envelope from the hub is.
func (a *acpTracker) answers(frame []byte) []string {
	e, err := acpwire.Decode(frame, MaxLine)
	switch {
	case err != nil || e.Kind == acpwire.KindProgress:
		return nil
	case e.Ref == "" && e.Kind == acpwire.KindError:
		var refusal acpwire.Error
		if json.Unmarshal(e.Payload, &refusal) == nil && refusal.Code == acpwire.CodeTooLarge {
			a.mu.Lock()
			a.tooLarge++
			a.mu.Unlock()
		}
		return nil
	case e.Ref == "":
		return nil
	case e.Kind == acpwire.KindResult:
		return []string{reportOn + e.Ref}
	case e.Kind == acpwire.KindError:
		return []string{replyTo + e.Ref, reportOn + e.Ref}
	}
	return []string{replyTo + e.Ref}
}

// lost returns the answers that will never come: those to the longest lines, as many as the
// hub refused for their size.
func (a *acpTracker) lost() (gone []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.long[:min(a.tooLarge, len(a.long))] {
		gone = append(gone, l.asks)
	}
	return gone
}

// Native carries the native dialect. It counts the answers of calls by their ids, and for a task
// that was opened its end.
func Native() Bridge {
	return Bridge{
		Path:    NativePath,
		asks:    nativeAsks,
		answers: nativeAnswers,
		refuse: func(why *link.Reject) []byte {
			f := core.NewFault(core.CodeInvalid, "%s", why.Text)
			if why.Cause == link.TooLarge {
				f.Code = core.CodeTooLarge
			}
			return asJSONLine(map[string]any{"error": nativewire.Refusal{Fault: f}})
		},
	}
}

// endOfTask begins the answer that the end of a task is, before the id of the call that opened it.
const endOfTask = "end of "

// nativeAsks returns the answer that a line expects.
func nativeAsks(line []byte) string {
	f, err := nativewire.Decode(line, MaxLine)
	if err != nil {
		return "" // it is refused, perhaps without its id
	}
	switch f := f.(type) {
	case nativewire.Call:
		if o, ok := f.Command.(*core.Open); ok && !o.Unwatched {
			return endOfTask + f.ID
		}
		return f.ID
	case nativewire.Event:
		return f.ID
	case nativewire.Load:
		return f.ID
	case nativewire.Vitals:
		return f.ID
	case nativewire.Tools:
		return f.ID
	}
	return ""
}

// nativeAnswers returns the expected answers that a frame of the hub is.
func nativeAnswers(frame []byte) []string {
	kind, v, err := nativewire.DecodeHub(frame)
	if err != nil {
		return nil
	}
	id, _ := v.Get("id").Text()
	switch kind {
	case "result":
		return []string{id}
	case "error":
		return []string{id, endOfTask + id}
	case "event":
		name, _ := v.Get("kind").Text()
		call, _ := v.Get("call").Text()
		if k, ok := core.ParseKind(name); ok && k.Ends() && call != "" {
			return []string{endOfTask + call}
		}
	}
	return nil
}

// asJSONLine encodes a value whose encoding cannot fail.
func asJSONLine(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// hashSeed makes hashes of frames comparable.
var hashSeed = maphash.MakeSeed()
