package strictjson_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// written has a member of each kind that a Writer writes.
type written struct {
	ID    string          `json:"id"`
	Note  string          `json:"note,omitempty"`
	N     int64           `json:"n"`
	Count uint64          `json:"count"`
	On    bool            `json:"on"`
	Flag  bool            `json:"flag,omitempty"`
	At    time.Time       `json:"at"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Inner struct {
		Tags []string `json:"tags"`
	} `json:"inner"`
}

func (v written) by(w strictjson.Writer) ([]byte, error) {
	w.B = append(w.B, '{')
	w.Text("id", v.ID)
	w.Some("note", v.Note)
	w.Number("n", v.N)
	w.Count("count", v.Count)
	w.Bool("on", v.On)
	w.Flag("flag", v.Flag)
	w.Time("at", v.At)
	w.Raw("raw", v.Raw)
	w.Begin("inner")
	w.Value("tags", v.Inner.Tags)
	w.End()
	w.End()
	return w.B, w.Err
}

func TestAWriterWritesWhatEncodingJSONReads(t *testing.T) {
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain", "<a href=\"x\">&amp;", "\b\f\n\u2028\x7f", "half \xff", "é😀"}))
	rapid.Check(t, func(t *rapid.T) {
		v := written{
			ID: texts.Draw(t, "id"), Note: texts.Draw(t, "note"), N: rapid.Int64().Draw(t, "n"), Count: rapid.Uint64().Draw(t, "count"),
			On: rapid.Bool().Draw(t, "on"), Flag: rapid.Bool().Draw(t, "flag"), At: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 5).UTC(),
			Raw: json.RawMessage(rapid.SampledFrom([]string{"", `{ "a" : "<" }`, "null", "1e3"}).Draw(t, "raw")),
		}
		v.Inner.Tags = rapid.SliceOf(texts).Draw(t, "tags")
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.by(strictjson.Writer{Standard: true}); err != nil || string(got) != string(want) {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
		got, err := v.by(strictjson.Writer{})
		if err == nil {
			err = strictjson.Check(got, strictjson.Limits{})
		}
		if err != nil {
			t.Fatalf("got %s, %v, want strict JSON", got, err)
		}
		var read, wanted written
		if err := errors.Join(json.Unmarshal(got, &read), json.Unmarshal(want, &wanted)); err != nil {
			t.Fatal(err)
		}
		mustEqualJSON(t, read, wanted)
	})
}

func TestAWriterKeepsItsFirstError(t *testing.T) {
	for _, standard := range []bool{false, true} {
		w := strictjson.Writer{B: []byte("{"), Standard: standard}
		w.Value("a", make(chan int))
		w.Time("at", time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))
		if want := "json: unsupported type: chan int"; message(w.Err) != want {
			t.Errorf("got %v, want %s", w.Err, want)
		}
	}
}
