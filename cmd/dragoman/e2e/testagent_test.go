package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// instruction is the first line of a request to a test agent: what to do, the key of the request,
// and an argument.
//
//	say KEY          answers with a short text in several chunks
//	burst KEY        answers with burstChunks chunks as fast as it can
//	data KEY         answers with structured data that repeats the request
//	big KEY          answers with bigText in one chunk
//	echo KEY\nTEXT   answers with the text
//	fail KEY CODE    fails with the code
//	hang KEY         sends half of the answer and waits for the signal "KEY released"
//	tool KEY         uses a tool and reports every step
//	leave KEY        requests an approval for a tool and obeys the decision
//	listen KEY       sends half of the answer and waits until "say KEY" was injected
//	usage KEY        reports usage twice
//	file KEY         sends a file
type instruction struct{ verb, key, arg, rest string }

func parseInstruction(content string) instruction {
	line, rest, _ := strings.Cut(content, "\n")
	words := append(strings.Fields(line), "", "", "")
	return instruction{words[0], words[1], words[2], rest}
}

// handle is the core.Handler of every test agent.
func (h *testHub) handle(ctx context.Context, r core.Request, say func(core.Body) error) (err error) {
	in := parseInstruction(r.Content)
	h.signal(in.key+" begun", r)
	defer func() { h.signal(in.key+" returned", err) }()
	switch in.verb {
	case "say":
		for _, label := range strings.SplitAfter(shortAnswer(in.key), " ") {
			if err := say(core.Text{Text: label}); err != nil {
				return err
			}
		}
		return nil
	case "burst":
		for i := range burstChunks {
			if err := say(core.Text{Text: chunk(i)}); err != nil {
				return err
			}
		}
		return nil
	case "data":
		if err := say(core.Text{Text: dataText}); err != nil {
			return err
		}
		return say(core.Done{Data: plainJSON(dataAnswer{r.Content, r.Data})})
	case "big":
		return say(core.Text{Text: bigText})
	case "echo":
		return say(core.Text{Text: in.rest})
	case "fail":
		return testFault(core.Code(in.arg))
	case "hang":
		if err := say(core.Text{Text: firstHalf}); err != nil {
			return err
		}
		if _, err := h.wait(ctx, in.key+" released"); err != nil {
			return context.Cause(ctx)
		}
		return say(core.Text{Text: secondHalf})
	}
	return h.handleEvents(ctx, in, say)
}

func shortAnswer(key string) string { return "good day, " + key + ": how do you do?" }

const (
	dataText   = "see the data"
	firstHalf  = "the first half "
	secondHalf = "and the second"
)

func chunk(i int) string { return fmt.Sprintf("%04d %s\n", i, strings.Repeat("~", 58)) }

var wholeBurst = func() string {
	var b strings.Builder
	for i := range burstChunks {
		b.WriteString(chunk(i))
	}
	return b.String()
}()

// bigText is lines with quotes, brackets and two-byte letters. Written as JSON without needless
// escapes it is shorter than 1 MB.
var bigText = func() string {
	var b strings.Builder
	for i := 0; b.Len() < longTextBytes; i++ {
		fmt.Fprintf(&b, "%06d \"The quick <brown> fox\" jumps & runs über den faulen Hund\n", i)
	}
	return strings.ToValidUTF8(b.String()[:longTextBytes], "")
}()

// testFault is how a test agent fails.
func testFault(code core.Code) *core.Fault {
	return core.NewFault(code, "the gauge reads 7%%: <low> & \"dürftig\"")
}

// dataAnswer is the structured answer of a test agent.
type dataAnswer struct {
	Content string          `json:"content"`
	Data    json.RawMessage `json:"given"`
}

// testData is structured data that is easily damaged: a number that no float holds, null, nesting,
// non-ASCII letters.
const testData = `{"big":9007199254740993,"list":[1,"two",{"three":3.5}],"none":null,"ü <&>":"\"é\""}`

// plainJSON encodes v without the escapes that only browsers need. v always has a JSON form.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// sameJSON reports whether two texts are the same value, with every digit.
func sameJSON(a, b []byte) bool {
	read := func(raw []byte) (v any, err error) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		err = d.Decode(&v)
		return v, err
	}
	x, err1 := read(a)
	y, err2 := read(b)
	return err1 == nil && err2 == nil && reflect.DeepEqual(x, y)
}
