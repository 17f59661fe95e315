package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// read adds the frames to the transcript and returns their size.
func read(t interface{ Fatalf(string, ...any) }, tr *pitest.Transcript, frames [][]byte) (bytes int) {
	for _, raw := range frames {
		var f pitest.Frame
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatalf("frame %.200s: %v", raw, err)
		}
		tr.Add(f)
		bytes += len(raw)
	}
	return bytes
}

// renderRun renders an answer of these chunks, taking frames after each chunk for which batch
// is true. It returns the size of all frames of the run, including the user's message.
func renderRun(t interface{ Fatalf(string, ...any) }, how render.Snapshots, chunks []string, batch func(i int) bool) (*pitest.Transcript, int) {
	v := newView(how)
	record := newRecord()
	var tr pitest.Transcript
	prompt := conversation.UserMessage("hello", nil, atNoon.UnixMilli())
	envelope := testTask().Envelope
	bytes := read(t, &tr, envelope.Opening([]conversation.Message{prompt}, true))
	deliver := func(b core.Body) {
		for _, v := range []*view{v, record} {
			_ = core.Event{At: atNoon, Body: b}.Deliver(v)
		}
	}
	for i, c := range chunks {
		deliver(core.Text{Text: c})
		if batch(i) {
			bytes += read(t, &tr, v.take())
		}
	}
	deliver(core.Done{})
	bytes += read(t, &tr, v.take())
	bytes += len(envelope.AgentEnd(append([]conversation.Message{prompt}, record.TakeMessages()...)))
	return &tr, bytes
}

func chunked(n, size int) []string {
	chunks := make([]string, n)
	for i := range chunks {
		chunks[i] = strings.Repeat(string(rune('a'+i%26)), size)
	}
	return chunks
}

// The bound of budget.go: a multiple of the text plus a constant.
const (
	boundTimes = 8
	boundSpare = 40_000
	// boundFrom is the size of text from which the bound has no constant.
	boundFrom = 64_000
)

func withinBound(text, bytes int) bool {
	return bytes <= boundTimes*text+boundSpare && (text < boundFrom || bytes <= boundTimes*text)
}

func TestAnAnswerCostsAtMostEightTimesItsTextAndAConstant(t *testing.T) {
	tier.Full(t, "it renders megabytes of answers")
	every := func(int) bool { return true }
	for _, tt := range []struct {
		name    string
		n, size int
		batch   func(int) bool
	}{
		{"2.5 KB", 40, 64, every},
		{"5 KB", 80, 64, every},
		{"20 KB", 320, 64, every},
		{"64 KB", 1000, 64, every},
		{"320 KB", 5000, 64, every},
		{"320 KB in batches of 256", 5000, 64, func(i int) bool { return i%256 == 255 }},
		{"64 KB in tokens", 16_000, 4, every},
		{"2 MB", 32_768, 64, every},
	} {
		chunks := chunked(tt.n, tt.size)
		text := strings.Join(chunks, "")
		tr, bytes := renderRun(t, render.SnapshotsAll, chunks, tt.batch)
		t.Logf("%s: %d bytes of text cost %d on the wire, %.2f times", tt.name, len(text), bytes, float64(bytes)/float64(len(text)))
		if !withinBound(len(text), bytes) {
			t.Errorf("%s: got %d bytes for %d of text, want at most %d times that, plus below %d bytes another %d",
				tt.name, bytes, len(text), boundTimes, boundFrom, boundSpare)
		}
		if tr.Deltas.String() != text || tr.Snapshots != text {
			t.Errorf("%s: got %d bytes by deltas and %d by snapshots, want %d", tt.name, tr.Deltas.Len(), len(tr.Snapshots), len(text))
		}
	}
}

func TestTheBoundHoldsHoweverAnAnswerIsChunked(t *testing.T) {
	piece := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 300), rapid.IntRange(1, 3000))
	rapid.Check(t, func(t *rapid.T) {
		// Each piece is repeated a few times.
		var chunks []string
		for _, n := range rapid.SliceOfN(piece, 1, 10).Draw(t, "pieces") {
			for range rapid.IntRange(1, 20).Draw(t, "times") {
				chunks = append(chunks, strings.Repeat("\n", n))
			}
		}
		_, bytes := renderRun(t, render.SnapshotsAll, chunks, func(int) bool { return true })
		text := len(strictjson.AppendText(nil, strings.Join(chunks, "")))
		if !withinBound(text, bytes) {
			t.Fatalf("got %d bytes for %d of text in JSON, %d more than %d times", bytes, text, bytes-boundTimes*text, boundTimes)
		}
	})
}

func TestTheFirstDeltasAreSentImmediately(t *testing.T) {
	for size := 1; size <= 500; size++ {
		v := newView(render.SnapshotsAll)
		text := 0
		for i := range 8 {
			_ = core.Event{At: atNoon, Body: core.Text{Text: strings.Repeat("x", size)}}.Deliver(v)
			text += size
			if got := len(v.take()); got == 0 && text <= 512 {
				t.Errorf("chunk %d of %d bytes: got no frame, want its delta", i+1, size)
			}
		}
	}
}

func TestAShortAnswerIsStreamedInSmallSteps(t *testing.T) {
	for _, size := range []int{1, 4, 10, 64, 200} {
		v := newView(render.SnapshotsAll)
		sent := 0
		for text := size; text <= 6<<10; text += size {
			_ = core.Event{At: atNoon, Body: core.Text{Text: strings.Repeat("x", size)}}.Deliver(v)
			if len(v.take()) > 0 {
				sent = text
			}
			// A third of the last update, in whole chunks.
			if most := min(max(64, sent/3), 1500) + size; sent < 4<<10 && text-sent > most {
				t.Errorf("chunks of %d bytes: at %d bytes the client has %d, want at most %d missing", size, text, sent, most)
				break
			}
		}
	}
}

func TestDeltasAndSnapshotsGiveTheSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := rapid.SampledFrom([]render.Snapshots{render.SnapshotsAll, render.SnapshotsNone}).Draw(t, "how")
		chunks := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.Map(rapid.IntRange(0, 1000), func(n int) string { return strings.Repeat("<é\n", n) })), 1, 20).Draw(t, "chunks")
		batch := rapid.IntRange(1, 10).Draw(t, "batch")
		want := strings.ToValidUTF8(strings.Join(chunks, ""), "\ufffd")
		tr, _ := renderRun(t, how, chunks, func(i int) bool { return i%batch == 0 })
		if got := tr.Deltas.String(); got != want {
			t.Fatalf("deltas: got %d bytes, want %d", len(got), len(want))
		}
		if got := tr.Snapshots; got != want {
			t.Fatalf("snapshots: got %d bytes, want %d", len(got), len(want))
		}
	})
}

// Every reader ends with the same messages, whatever its batches are.
func TestMessagesDoNotDependOnTheReader(t *testing.T) {
	bodies := rapid.SliceOfN(rapid.OneOf(
		rapid.Map(rapid.StringN(1, 400, 4000), func(s string) core.Body { return core.Text{Text: s} }),
		rapid.Map(rapid.StringN(1, 400, 4000), func(s string) core.Body { return core.Thinking{Text: s} }),
		rapid.Map(rapid.SampledFrom([]string{"1", "2", "3"}), func(s string) core.Body { return core.ToolCall{ID: s, Name: "t", Input: "{}"} }),
		rapid.Map(rapid.SampledFrom([]string{"1", "2", "3"}), func(s string) core.Body { return core.ToolState{ID: s, State: core.ToolRunning} }),
		rapid.Map(rapid.SampledFrom([]string{"1", "2", "3"}), func(s string) core.Body { return core.ToolResult{ID: s, Output: "o"} }),
		rapid.Just[core.Body](core.Usage{Input: 1}),
		rapid.Just[core.Body](core.File{Name: "f", MediaType: "text/plain", Data: []byte("x")}),
		rapid.Just[core.Body](core.File{Name: "g", MediaType: "image/png", Data: []byte("x")}),
		rapid.Just[core.Body](core.Injected{ID: "i", Content: "c"}),
		rapid.Just[core.Body](core.InjectionAnswered{ID: "i", Accepted: true}),
	), 0, 80)
	rapid.Check(t, func(t *rapid.T) {
		events := append(bodies.Draw(t, "bodies"), rapid.SampledFrom([]core.Body{
			core.Done{}, core.Done{Text: "x"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "x")}, core.Cancelled{},
		}).Draw(t, "end"))
		views := []*view{newRecord(), newView(render.SnapshotsAll), newView(render.SnapshotsNone)}
		batch := rapid.IntRange(1, 9).Draw(t, "batch")
		var frames [3][][]byte
		for i, e := range numbered(events...) {
			for j, v := range views {
				if err := e.Deliver(v); err != nil {
					t.Fatal(err)
				}
				if j > 0 && i%(batch*j) == 0 {
					frames[j] = append(frames[j], v.take()...)
				}
			}
		}
		want := ""
		for j, v := range views {
			got := string(conversation.AppendMessages(nil, v.TakeMessages()))
			if j == 0 {
				want = got
			}
			if got != want {
				t.Fatalf("view %d: messages differ:\n got %s\nwant %s", j, got, want)
			}
			if !v.Ended() {
				t.Fatalf("view %d did not end", j)
			}
			if j > 0 {
				checkOrder(t, append(frames[j], v.take()...))
			}
		}
	})
}

// checkOrder checks the order of the events of a turn (facts, section 5).
func checkOrder(t interface{ Fatalf(string, ...any) }, frames [][]byte) {
	var tr pitest.Transcript
	read(t, &tr, frames)
	turn, message := true, false
	for i, k := range tr.Kinds {
		ok := true
		switch {
		case k == "turn_start":
			ok, turn = !turn && !message, true
		case k == "turn_end":
			ok, turn = turn && !message, false
		case k == "message_start":
			ok, message = turn && !message, true
		case k == "message_end":
			ok, message = message, false
		case strings.HasPrefix(k, "message_update/"):
			ok = message
		case strings.HasPrefix(k, "tool_execution_"):
			ok = true
		}
		if !ok {
			t.Fatalf("event %d, %s, is out of order: %v", i, k, tr.Kinds)
		}
	}
	if turn || message {
		t.Fatalf("got a turn without an end: %v", tr.Kinds)
	}
}

func TestParseSnapshots(t *testing.T) {
	for text, want := range map[string]render.Snapshots{"": render.SnapshotsAll, "all": render.SnapshotsAll, "none": render.SnapshotsNone} {
		if got, err := render.ParseSnapshots(text); got != want || err != nil {
			t.Errorf("ParseSnapshots(%q): got %v and %v, want %v", text, got, err, want)
		}
	}
	if _, err := render.ParseSnapshots("some"); core.AsFault(err).Code != core.CodeInvalid {
		t.Errorf("ParseSnapshots(some): got %v, want an invalid Fault", err)
	}
}
