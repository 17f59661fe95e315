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

// What the agents of a stage are asked begins with a line that says what to do,
// under which key, and with what:
//
//	say KEY          answers in a few words, one after the other
//	burst KEY        answers in 5,000 chunks, as fast as it can
//	data KEY         answers with a structure that repeats what it was asked
//	big KEY          answers with 900 KB of text in one piece
//	echo KEY\nTEXT   answers with the text
//	fail KEY CODE    fails with the code
//	hang KEY         says half of it and waits until the test posts "KEY released"
//	tool KEY         uses a tool, and says every step of it
//	leave KEY        asks leave to use a tool and does as it is told
//	listen KEY       says half of it and waits until it was told "say KEY"
//	usage KEY        tells twice what it used
//	file KEY         sends a file
type scene struct{ act, key, with, rest string }

func readScene(content string) scene {
	line, rest, _ := strings.Cut(content, "\n")
	words := append(strings.Fields(line), "", "", "")
	return scene{words[0], words[1], words[2], rest}
}

// play is the core.Handler of every agent of the stage.
func (s *stage) play(ctx context.Context, r core.Request, say func(core.Body) error) (err error) {
	what := readScene(r.Content)
	s.post(what.key+" begun", r)
	defer func() { s.post(what.key+" returned", err) }()
	switch what.act {
	case "say":
		for _, word := range strings.SplitAfter(fewWords(what.key), " ") {
			if err := say(core.Text{Text: word}); err != nil {
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
		if err := say(core.Text{Text: seeData}); err != nil {
			return err
		}
		return say(core.Done{Data: plainJSON(dataAnswer{r.Content, r.Data})})
	case "big":
		return say(core.Text{Text: bigText})
	case "echo":
		return say(core.Text{Text: what.rest})
	case "fail":
		return scriptedFault(core.Code(what.with))
	case "hang":
		if err := say(core.Text{Text: firstHalf}); err != nil {
			return err
		}
		if _, err := s.wait(ctx, what.key+" released"); err != nil {
			return context.Cause(ctx)
		}
		return say(core.Text{Text: secondHalf})
	}
	return s.playFold(ctx, what, say)
}

func fewWords(key string) string { return "good day, " + key + ": how do you do?" }

const (
	seeData    = "see the data"
	firstHalf  = "the first half "
	secondHalf = "and the second"
)

// burstChunks and chunk are a burst: no two chunks are alike.
const burstChunks = 5000

func chunk(i int) string { return fmt.Sprintf("%04d %s\n", i, strings.Repeat("~", 58)) }

var wholeBurst = func() string {
	var b strings.Builder
	for i := range burstChunks {
		b.WriteString(chunk(i))
	}
	return b.String()
}()

// bigText is 900 KB of what text is made of: lines, quotes, brackets, and letters
// of two bytes. Written as JSON without needless escapes it stays below 1 MB.
var bigText = func() string {
	const size = 900_000
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%06d \"The quick <brown> fox\" jumps & runs über den faulen Hund\n", i)
	}
	return strings.ToValidUTF8(b.String()[:size], "")
}()

// scriptedFault is how an agent of the stage fails.
func scriptedFault(code core.Code) *core.Fault {
	return core.NewFault(code, "the gauge reads 7%%: <low> & \"dürftig\"")
}

// dataAnswer is what an agent answers that was asked for data.
type dataAnswer struct {
	Heard string          `json:"heard"`
	Given json.RawMessage `json:"given"`
}

// dataAsked is a structure with what is easily broken in one: a number that no
// float holds, null, nesting, letters.
const dataAsked = `{"big":9007199254740993,"list":[1,"two",{"three":3.5}],"none":null,"ü <&>":"\"é\""}`

// plainJSON writes v without the escapes that only browsers need. v always has a
// JSON form.
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
