package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// partsOf returns the text, data and files of a result.
func partsOf(r wire.TaskResult) core.Answer {
	a := core.Fold(eventsOf(r.Bodies(false, false)))
	return core.Answer{Text: a.Text, Data: a.Data, Files: a.Files}
}

func TestAResultIsReadAsTextDataAndFiles(t *testing.T) {
	photo := []core.File{{Name: "a.png", MediaType: "image/png", Data: []byte("hi")}}
	for name, c := range map[string]struct {
		result string
		want   core.Answer
	}{
		"nothing":                          {``, core.Answer{}},
		"null":                             {`null`, core.Answer{}},
		"a string is the text":             {`"hello"`, core.Answer{Text: "hello"}},
		"a number is data":                 {`7`, core.Answer{Data: []byte(`7`)}},
		"an array is data":                 {`[1,"x"]`, core.Answer{Data: []byte(`[1,"x"]`)}},
		"an object is data":                {`{"category":"technology"}`, core.Answer{Data: []byte(`{"category":"technology"}`)}},
		"with its text":                    {`{"summary":"s","text":"t"}`, core.Answer{Text: "t", Data: []byte(`{"summary":"s","text":"t"}`)}},
		"whose content is no string":       {`{"content":[1],"answer":"a"}`, core.Answer{Text: "a", Data: []byte(`{"content":[1],"answer":"a"}`)}},
		"with files":                       {`{"n":1,"files":[{"name":"a.png","mediaType":"image/png","data":"aGk="}]}`, core.Answer{Data: []byte(`{"n":1}`), Files: photo}},
		"with files of another form":       {`{"files":["a.png"]}`, core.Answer{Data: []byte(`{"files":["a.png"]}`)}},
		"with files with unknown members":  {`{"files":[{"name":"a","data":"","size":2}]}`, core.Answer{Data: []byte(`{"files":[{"name":"a","data":"","size":2}]}`)}},
		"exactly content and data":         {`{"content":"c","data":{"n":1}}`, core.Answer{Text: "c", Data: []byte(`{"n":1}`)}},
		"exactly content and files":        {`{"content":"c","files":[{"name":"a.png","mediaType":"image/png","data":"aGk="}]}`, core.Answer{Text: "c", Files: photo}},
		"content alone is text and data":   {`{"content":"c"}`, core.Answer{Text: "c", Data: []byte(`{"content":"c"}`)}},
		"content, data and another member": {`{"content":"c","data":1,"x":2}`, core.Answer{Text: "c", Data: []byte(`{"content":"c","data":1,"x":2}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := partsOf(wire.TaskResult{Result: []byte(c.result)})
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the answer differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersAreSentInTheSimplestForm(t *testing.T) {
	file := []core.File{{Name: "a", Data: []byte("hi")}}
	for want, a := range map[string]core.Answer{
		`null`:                                   {},
		`"hello"`:                                {Text: "hello"},
		`{"n":1}`:                                {Data: []byte(`{"n":1}`)},
		`{"content":"c","n":1}`:                  {Text: "c", Data: []byte(`{"content":"c","n":1}`)},
		`{"content":"c","data":{"n":1}}`:         {Text: "c", Data: []byte(`{"n":1}`)},
		`{"data":"a string"}`:                    {Data: []byte(`"a string"`)},
		`{"data":null}`:                          {Data: []byte(`null`)},
		`{"files":[{"name":"a","data":"aGk="}]}`: {Files: file},
		`{"files":[{"name":"a","data":"aGk="}],"n":1}`:                  {Data: []byte(`{"n":1}`), Files: file},
		`{"data":{"content":"c"},"files":[{"name":"a","data":"aGk="}]}`: {Data: []byte(`{"content":"c"}`), Files: file},
		`{"data":[1],"files":[{"name":"a","data":"aGk="}]}`:             {Data: []byte(`[1]`), Files: file},
		`{"content":"c","data":1,"files":[{"name":"a","data":"aGk="}]}`: {Text: "c", Data: []byte(`1`), Files: file},
		`{"data":{"files":["x"]},"files":[{"name":"a","data":"aGk="}]}`: {Data: []byte(`{"files":["x"]}`), Files: file},
		`{"data":{"content":"c","data":1}}`:                             {Data: []byte(`{"content":"c","data":1}`)},
		`{"data":{},"files":[{"name":"a","data":"aGk="}]}`:              {Data: []byte(`{}`), Files: file},
		`{"content":"other","data":{"content":"c","n":1}}`:              {Text: "other", Data: []byte(`{"content":"c","n":1}`)},
		`{"data":{"files":[{"name":"a","data":"aGk="}],"n":1}}`:         {Data: []byte(`{"files":[{"name":"a","data":"aGk="}],"n":1}`)},
	} {
		got, err := wire.EncodeResult(a)
		if err != nil || string(got) != want {
			t.Errorf("got %s and %v\nwant %s", got, err, want)
		}
	}
}

func TestTokensUsedCountAsOutputWithoutUsage(t *testing.T) {
	r := wire.TaskResult{Result: []byte(`"x"`), Metadata: wire.ResultMetadata{TokensUsed: 150}}
	if got := core.Fold(eventsOf(r.Bodies(false, false))); got.Usage != (core.Usage{Output: 150}) || got.TokensUsed != 150 {
		t.Errorf("alone: got %+v and %d, want 150 of output", got.Usage, got.TokensUsed)
	}
	if got := core.Fold(eventsOf(r.Bodies(false, true))); got.Usage != (core.Usage{}) || got.TokensUsed != 150 {
		t.Errorf("after usage: got %+v and %d, want no usage and the sum", got.Usage, got.TokensUsed)
	}
}

func eventsOf(bodies []core.Body) []core.Event {
	events := make([]core.Event, len(bodies))
	for i, b := range bodies {
		events[i] = core.Event{Seq: uint64(i + 1), Body: b}
	}
	return events
}
