package strictjson_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// level is a number that is written as a word.
type level uint8

func (l *level) UnmarshalText(text []byte) error {
	for i, word := range []string{"low", "high"} {
		if word == string(text) {
			*l = level(i + 1)
			return nil
		}
	}
	return errors.New(`want "low" or "high", got ` + strconv.Quote(string(text)))
}

// pair decodes itself, strictly.
type pair struct{ Left, Right int }

func (p *pair) UnmarshalJSON(data []byte) error {
	var in struct {
		Left  int `json:"left"`
		Right int `json:"right"`
	}
	if err := strictjson.Decode(data, strictjson.Limits{}, &in); err != nil {
		return err
	}
	*p = pair(in)
	return nil
}

type base struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

type note struct {
	base
	Kind     string            `json:"kind"`
	Text     string            `json:"text,omitempty"`
	Tags     []string          `json:"tags"`
	Counts   map[string]int8   `json:"counts"`
	Ratio    float32           `json:"ratio"`
	Open     *bool             `json:"open"`
	At       time.Time         `json:"at"`
	Bytes    []byte            `json:"bytes"`
	Levels   []level           `json:"levels"`
	Pair     *pair             `json:"pair"`
	Raw      json.RawMessage   `json:"raw"`
	Any      any               `json:"any"`
	Number   json.Number       `json:"number"`
	Children []*note           `json:"children"`
	Named    map[string]note   `json:"named"`
	Grid     [2]int            `json:"grid"`
	Small    uint8             `json:"small"`
	Text2    string            `json:"max_tokens"`
	Hidden   string            `json:"-"`
	Words    map[string]string `json:"words"`
}

func TestDecodeReadsEveryKindOfField(t *testing.T) {
	var got note
	err := strictjson.Decode([]byte(`{"id":"n1","kind":"k","text":"hé","tags":["a","b"],"counts":{"x":-128},"ratio":0.5,"open":true,
		"at":"2026-01-02T03:04:05Z","bytes":"aGk=","levels":["low","high"],"pair":{"left":1,"right":2},"raw":{"ID":1,"id":[2]},
		"any":{"Text":[1,"2",null]},"number":12345678901234567890,"children":[{"id":"c"},null],"named":{"Kind":{"kind":"z"}},"grid":[3,4],
		"small":255,"something else":{"TEXT":1},"words":null}`), strictjson.Limits{}, &got)
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	open := true
	want := note{
		base: base{ID: "n1"}, Kind: "k", Text: "hé", Tags: []string{"a", "b"}, Counts: map[string]int8{"x": -128}, Ratio: 0.5, Open: &open,
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Bytes: []byte("hi"), Levels: []level{1, 2}, Pair: &pair{1, 2},
		Raw: json.RawMessage(`{"ID":1,"id":[2]}`), Any: map[string]any{"Text": []any{1.0, "2", nil}}, Number: "12345678901234567890",
		Children: []*note{{base: base{ID: "c"}}, nil}, Named: map[string]note{"Kind": {Kind: "z"}}, Grid: [2]int{3, 4}, Small: 255,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(note{})); diff != "" {
		t.Errorf("decoded otherwise (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a key in another case":                                    {`{"ID":"n1"}`, `unknown key "ID": did you mean "id"?`},
		"a key in another case beside its own":                     {`{"id":"n1","Id":"n2"}`, `unknown key "Id": did you mean "id"?`},
		"a key in another case further in":                         {`{"children":[{},{"Text":"x"}]}`, `children[1]: unknown key "Text": did you mean "text"?`},
		"a key in another case under a map":                        {`{"named":{"a":{"tagS":[]}}}`, `named.a: unknown key "tagS": did you mean "tags"?`},
		"a key that folds to one beyond ASCII":                     {`{"ki` + "\u017f" + `":1,"tag` + "\u017f" + `":[]}`, "unknown key \"tag\u017f\": did you mean \"tags\"?"},
		"a key in another case by an escape":                       {`{"\u0049d":"x"}`, `unknown key "Id": did you mean "id"?`},
		"a key in another case, within a type that decodes itself": {`{"pair":{"Left":1}}`, `pair: unknown key "Left": did you mean "left"?`},
		"a number for an array of strings":                         {`{"tags":1}`, `tags: want an array of strings, got a number`},
		"a string for an array of objects":                         {`{"children":"x"}`, `children: want an array of objects, got a string`},
		"a number among strings":                                   {`{"tags":["a",2]}`, `tags[1]: want a string, got a number`},
		"an object for a string":                                   {`{"children":[{"text":{}}]}`, `children[0].text: want a string, got an object`},
		"an array for the whole":                                   {`[]`, `want an object, got an array`},
		"a string for a boolean":                                   {`{"open":"yes"}`, `open: want true or false, got a string`},
		"a boolean for a number":                                   {`{"ratio":true}`, `ratio: want a number, got a boolean`},
		"a fraction for a whole number":                            {`{"small":1.5}`, `small: want a whole number, got 1.5`},
		"an exponent that leaves a fraction for a whole number":    {`{"small":1e-2}`, `small: want a whole number, got 1e-2`},
		"an exponent beyond what is exact for a whole number":      {`{"small":1e16}`, `small: want a whole number, got 1e16`},
		"an exponent out of range":                                 {`{"small":1e3}`, `small: want a whole number from 0 to 255, got 1000`},
		"a whole number out of range":                              {`{"small":256}`, `small: want a whole number from 0 to 255, got 256`},
		"a negative number for a count":                            {`{"grid":[0],"small":-1}`, `small: want a whole number from 0 to 255, got -1`},
		"a whole number out of range in a map":                     {`{"counts":{"ok":1,"far":-129}}`, `counts.far: want a whole number from -128 to 127, got -129`},
		"a number out of a float's range":                          {`{"ratio":1e39}`, `ratio: number 1e39 is out of range`},
		"a number out of range in free form":                       {`{"any":{"a":[1e999]}}`, `any.a[0]: number 1e999 is out of range`},
		"a string for a json.Number":                               {`{"number":"1"}`, `number: want a number, got a string`},
		"a number for a time":                                      {`{"at":1700000000}`, `at: want a time such as 2006-01-02T15:04:05Z, got a number`},
		"a time in another form":                                   {`{"at":"yesterday"}`, `at: want a time such as 2006-01-02T15:04:05Z, got "yesterday"`},
		"bytes that are not base64":                                {`{"bytes":"?"}`, `bytes: want base64 text, got "?"`},
		"bytes as an array":                                        {`{"bytes":[1]}`, `bytes: want base64 text, got an array`},
		"a word that is none of the enumeration":                   {`{"levels":["low","mid"]}`, `levels[1]: want "low" or "high", got "mid"`},
		"a wrong value within a type that decodes itself":          {`{"pair":{"left":"x"}}`, `pair.left: want a whole number, got a string`},
		"a word":                                  {`trust`, `not JSON: unexpected 's' in true at byte 3: write true, or put text in double quotes`},
		"two words, of which the first is JSON":   {`true false`, `not JSON: unexpected 'f' after the end of the value at byte 5: send one JSON value at a time`},
		"a wrong type before the text breaks off": {`{"tags":1,"id":`, `not JSON: the text ends too early at byte 15 (in id): send the whole value`},
		"a wrong type before a duplicate key":     {`{"tags":1,"tags":2}`, `duplicate key "tags" at byte 10: send each key once`},
		"a duplicate key anyway":                  {`{"id":"a","id":"b"}`, `duplicate key "id" at byte 10: send each key once`},
		"a duplicate key in what is not decoded":  {`{"raw":{"a":1,"a":2}}`, `duplicate key "a" at byte 14 (in raw): send each key once`},
	} {
		t.Run(name, func(t *testing.T) {
			var v note
			err := strictjson.Decode([]byte(c.text), strictjson.Limits{}, &v)
			var form *strictjson.Error
			if !errors.As(err, &form) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestDecodeLeavesUnknownKeysAloneAndStrictNamesTheNearest(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a slip of one letter":           {`{"texd":"x"}`, `unknown key "texd": did you mean "text"?`},
		"two letters swapped":            {`{"chidlren":[]}`, `unknown key "chidlren": did you mean "children"?`},
		"another style of name":          {`{"maxTokens":1}`, `unknown key "maxTokens": did you mean "max_tokens"?`},
		"a missing letter further in":    {`{"children":[{"rati":1}]}`, `children[0]: unknown key "rati": did you mean "ratio"?`},
		"something else altogether":      {`{"zzzzzz":1}`, `unknown key "zzzzzz": the keys here are kind, text, tags, counts, ratio, open, at, bytes, levels, pair, raw, any, ...`},
		"a key that JSON must not reach": {`{"Hidden":1}`, `unknown key "Hidden": the keys here are kind, text, tags, counts, ratio, open, at, bytes, levels, pair, raw, any, ...`},
	} {
		t.Run(name, func(t *testing.T) {
			var v note
			if err := strictjson.Decode([]byte(c.text), strictjson.Limits{}, &v); err != nil {
				t.Errorf("lenient: got %v, want no error", err)
			}
			if got := message(strictjson.DecodeKnown([]byte(c.text), strictjson.Limits{}, &v)); got != c.want {
				t.Errorf("strict:\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDecodeFollowsTheRulesForEmbeddedFields(t *testing.T) {
	type Deep struct {
		A string `json:"a"`
		C string `json:"c"`
	}
	type Left struct {
		Deep
		Twice string
		B     string `json:"b"`
	}
	type Right struct {
		*Deep
		Twice string
		B     string
	}
	type outer struct {
		Left
		*Right
		C     int `json:"c"`
		Plain string
		Named Deep `json:"named"`
		Deep  `json:"deep"`
	}
	texts := []string{
		`{"a":"1"}`, `{"A":"1"}`, `{"c":1}`, `{"C":1}`, `{"c":"x"}`, `{"b":"1"}`, `{"B":"1"}`, `{"Twice":"1"}`, `{"twice":"1"}`,
		`{"Plain":"1"}`, `{"plain":"1"}`, `{"deep":{"a":"1"}}`, `{"deep":{"A":"1"}}`, `{"named":{"c":"1"}}`, `{"Left":{}}`,
	}
	// What encoding/json reads from a key, Decode must read as well or call
	// a matter of case; what encoding/json ignores, Decode must ignore.
	for _, text := range texts {
		var want, got outer
		wantErr := json.Unmarshal([]byte(text), &want)
		gotErr := strictjson.Decode([]byte(text), strictjson.Limits{}, &got)
		wantJSON, _ := json.Marshal(want)
		empty, _ := json.Marshal(outer{})
		switch {
		case gotErr == nil:
			if wantErr != nil {
				t.Errorf("%s: got no error, want %v", text, wantErr)
			}
			mustEqualJSON(t, got, want)
		case strings.Contains(gotErr.Error(), "did you mean"):
			if wantErr == nil && string(wantJSON) == string(empty) {
				t.Errorf("%s: got %v, want it ignored as encoding/json does", text, gotErr)
			}
		case wantErr == nil:
			t.Errorf("%s: got %v, want no error", text, gotErr)
		}
	}
}

func TestDecodeExplainsWhatOnlyTheDecoderKnows(t *testing.T) {
	t.Run("a key that is no number", func(t *testing.T) {
		var v struct {
			M map[int]string `json:"m"`
		}
		err := strictjson.Decode([]byte(`{"m":{"x":"y"}}`), strictjson.Limits{}, &v)
		if got, want := message(err), "m: want a whole number, got number x"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("a type that JSON cannot fill", func(t *testing.T) {
		var v struct {
			C chan int `json:"c"`
		}
		err := strictjson.Decode([]byte(`{"c":1}`), strictjson.Limits{}, &v)
		if got, want := message(err), "c: want a value of another kind, got number"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestDecodeWantsAPointer(t *testing.T) {
	for _, v := range []any{nil, note{}, (*note)(nil)} {
		var invalid *json.InvalidUnmarshalError
		if err := strictjson.Decode([]byte(`{}`), strictjson.Limits{}, v); !errors.As(err, &invalid) {
			t.Errorf("%T: got %v, want encoding/json's complaint", v, err)
		}
	}
}

func TestDecodeLeavesTheTargetAloneWhenTheTextIsRefused(t *testing.T) {
	got := note{Text: "before"}
	if err := strictjson.Decode([]byte(`{"text":"after","tags":1}`), strictjson.Limits{}, &got); err == nil || got.Text != "before" {
		t.Errorf("got %q, %v, want the text untouched and an error", got.Text, err)
	}
}

func TestDecodeMayRunFromManyGoroutines(t *testing.T) {
	type fresh struct {
		Note note     `json:"note"`
		Next []*fresh `json:"next"`
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var v fresh
			if err := strictjson.Decode([]byte(`{"note":{"id":"x"},"next":[{"next":[{}]}]}`), strictjson.Limits{}, &v); err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if err := strictjson.Decode([]byte(`{"next":[{"Note":{}}]}`), strictjson.Limits{}, &v); err == nil {
				t.Error("got no error for a key in another case")
			}
		})
	}
	all.Wait()
}

// The failure seen in the field: a gateway and the program behind it read the
// same text differently, and what one had checked the other did not do.
func TestTwoReadersCannotDisagreeOnOneJSONText(t *testing.T) {
	type routed struct {
		To      string `json:"to"`
		Payload any    `json:"payload"`
	}
	for name, text := range map[string]string{
		"the last key wins, or the first":           `{"to":"a","to":"b"}`,
		"the last key wins, behind an escape":       `{"to":"a","\u0074o":"b"}`,
		"case matters, or does not":                 `{"to":"a","To":"b"}`,
		"case matters, and the key stands alone":    `{"TO":"b"}`,
		"a NUL ends a key, or does not":             `{"to":"a","to\u0000x":"b"}`,
		"a half character is replaced, or kept":     `{"payload":{"\ud800":1,"\udbff":2}}`,
		"text behind the value counts, or does not": `{"to":"a"}{"to":"b"}`,
		"bad UTF-8 is replaced, or kept":            "{\"payload\":{\"\xff\":1}}",
		"a mark is skipped, or is not":              "\ufeff" + `{"to":"a"}`,
		"a deep value is cut, or is not":            `{"payload":` + nested(64) + `}`,
		"a twin hides where nobody decodes":         `{"payload":[{"x":{"to":"a","to":"b"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var v routed
			if err := strictjson.Decode([]byte(text), strictjson.Limits{}, &v); err == nil {
				t.Errorf("got %+v, want the text refused", v)
			}
		})
	}
}
