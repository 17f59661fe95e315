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
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Pi counts responses: every line has one, but one that cannot be read has it
// without its id.
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

// ACP counts answers by the ids of what they answer.
func ACP() Bridge {
	a := &acpAccount{seen: lru.New(lru.Options[string, uint64]{Count: seenMost})}
	return Bridge{
		Path: "/ws/acp", asks: a.asks, answers: a.answers, void: a.void,
		refuse: func(why *link.Reject) []byte {
			told := acpwire.Error{Code: acpwire.CodeInvalidEnvelope, Message: why.Text}
			if why.Cause == link.TooLarge {
				told.Code = acpwire.CodeTooLarge
			}
			return acpwire.Envelope{ID: core.NewID(), From: "hub", TS: time.Now().UnixMilli(), Kind: acpwire.KindError, Payload: asJSONLine(told)}.Encode()
		},
		last: func() (line []byte, answer string) {
			id := core.NewID()
			return asJSONLine(map[string]any{"v": acpwire.Version, "id": id, "to": "hub", "kind": acpwire.KindPing}), replyTo + id
		},
	}
}

// The answers of ACP by what they are to, with the id of the envelope behind it.
const (
	replyTo  = "reply to "
	reportOn = "report on "
)

// The bounds of what an acpAccount remembers.
const (
	seenMost = 4096
	longMost = 256
)

// acpAccount is what a peer of ACP has asked over a bridge.
type acpAccount struct {
	mu sync.Mutex
	// seen are the envelopes that were sent, as hashes by their ids: the hub passes over
	// one that comes again.
	seen *lru.Cache[string, uint64]
	// long are the longest lines that were sent, the longest first, and cut how many the
	// hub refused for their size: with an error that names no id, so that the others tell.
	long []longLine
	cut  int
}

// longLine is how long a line was, and which answer it waits for.
type longLine struct {
	bytes int
	asks  string
}

// asks says which answer an envelope of ours wants. What the hub refuses at once wants
// none: that is told before the answer to the last envelope, with an id or without.
func (a *acpAccount) asks(line []byte) (wanted string) {
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
	_ = json.Unmarshal(e.Payload, &delegate) // what it is otherwise is refused
	if e.Kind == acpwire.KindDelegate && (delegate.ReportBack == nil || *delegate.ReportBack) {
		return reportOn + e.ID // not only its ack
	}
	return replyTo + e.ID
}

// note keeps a line among the longest. a.mu is held.
func (a *acpAccount) note(l longLine) {
	at, _ := slices.BinarySearchFunc(a.long, l, func(x, y longLine) int { return cmp.Compare(y.bytes, x.bytes) })
	a.long = slices.Insert(a.long, at, l)
	a.long = a.long[:min(len(a.long), longMost)]
}

// answers says which answers an envelope of the hub is.
func (a *acpAccount) answers(frame []byte) []string {
	e, err := acpwire.Decode(frame, MaxLine)
	switch {
	case err != nil || e.Kind == acpwire.KindProgress:
		return nil
	case e.Ref == "" && e.Kind == acpwire.KindError:
		var told acpwire.Error
		if json.Unmarshal(e.Payload, &told) == nil && told.Code == acpwire.CodeTooLarge {
			a.mu.Lock()
			a.cut++
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

// void are the answers that will not come: as many lines as were refused for their
// size are the longest ones.
func (a *acpAccount) void() (gone []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.long[:min(a.cut, len(a.long))] {
		gone = append(gone, l.asks)
	}
	return gone
}

// asJSONLine is a value that always has a JSON form, as JSON.
func asJSONLine(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// hashSeed makes hashes of frames comparable.
var hashSeed = maphash.MakeSeed()
