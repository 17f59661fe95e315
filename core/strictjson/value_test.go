package strictjson_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func parse(t testing.TB, text string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAValueHasTheKindAndTextOfItsPosition(t *testing.T) {
	v := parse(t, ` {"type":"task", "\u0070ayload":{"input":{"content":"caf\u00e9 \ud83d\ude00"}, "n":[1,2.0,1e3,null,true]}, "no":null } `)
	for _, c := range []struct {
		at   strictjson.Value
		kind strictjson.Kind
		raw  string
	}{
		{v.Get("type"), strictjson.String, `"task"`},
		{v.Get("payload", "input"), strictjson.Object, `{"content":"caf\u00e9 \ud83d\ude00"}`},
		{v.Get("payload", "n"), strictjson.Array, `[1,2.0,1e3,null,true]`},
		{v.Get("no"), strictjson.Null, `null`},
		{v.Get("Type"), 0, ``},
		{v.Get("no", "deeper"), 0, ``},
		{v.Get("payload", "n", "0"), 0, ``},
		{v.Get("nowhere"), 0, ``},
		{strictjson.Value{}, 0, ``},
	} {
		if got := string(c.at.Raw()); got != c.raw || c.at.Kind() != c.kind || c.at.Exists() != (c.kind != 0) || c.at.Absent() != (c.kind <= strictjson.Null) {
			t.Errorf("got %s (%v, exists %v), want %s (%v)", got, c.at.Kind(), c.at.Exists(), c.raw, c.kind)
		}
	}
	if got, ok := v.Get("payload", "input", "content").Text(); got != "café 😀" || !ok {
		t.Errorf("got %q, %v, want the text unescaped", got, ok)
	}
	if got, ok := v.Get("no").Text(); got != "" || ok {
		t.Errorf("got %q, %v, want no text of null", got, ok)
	}
	var keys, items []string
	for key := range v.Members() {
		keys = append(keys, string(key))
	}
	whole := 0
	for item := range v.Get("payload", "n").Items() {
		items = append(items, string(item.Raw()))
		if item.IsIntegerLiteral() {
			whole++
		}
	}
	if !slices.Equal(keys, []string{"type", "payload", "no"}) || v.Len() != 3 {
		t.Errorf("got the keys %q, %d of them", keys, v.Len())
	}
	if !slices.Equal(items, []string{"1", "2.0", "1e3", "null", "true"}) || v.Get("payload", "n").Len() != 5 || whole != 1 {
		t.Errorf("got the items %q, %d of them written whole", items, whole)
	}
}

func TestAMemberMayBeKeptAsAValueAndDecodedLater(t *testing.T) {
	var envelope struct {
		ID      string           `json:"id"`
		Payload strictjson.Value `json:"payload"`
		Missing strictjson.Value `json:"missing"`
	}
	if err := strictjson.Decode([]byte(`{"id":"a","payload":{"n":5.0,"N":1}}`), strictjson.Limits{}, &envelope); err != nil {
		t.Fatal(err)
	}
	for range 50 { // the index of the text is not given to another
		_ = strictjson.Check([]byte(strings.Repeat("[", 20)+strings.Repeat("]", 20)), strictjson.Limits{})
	}
	if got := string(envelope.Payload.Raw()); got != `{"n":5.0,"N":1}` || envelope.Missing.Exists() {
		t.Errorf("got %s and %s, want the payload as it came and nothing", got, envelope.Missing.Raw())
	}
	var payload struct {
		N int `json:"n"`
	}
	if err := envelope.Payload.Decode(&payload); err == nil || err.Error() != `unknown key "N": did you mean "n"?` || payload.N != 0 {
		t.Errorf("got %v and %+v, want the key in another case refused and nothing decoded", err, payload)
	}
	payload.N = 7
	if err := envelope.Missing.Decode(&payload); err != nil || payload.N != 7 {
		t.Errorf("got %v and %+v, want no value to change nothing", err, payload)
	}
}

// What is decoded over something that is there already is merged with it, or not at all.
func TestARefusedValueLeavesWhatWasThere(t *testing.T) {
	type settings struct {
		Limit int               `json:"limit"`
		Names []string          `json:"names"`
		More  map[string]string `json:"more"`
	}
	was := settings{Limit: 100, Names: []string{"a"}, More: map[string]string{"x": "1"}}
	got := was
	if err := parse(t, `{"limit":5,"names":["b",7]}`).Decode(&got); err == nil || got.Limit != 100 || got.Names[0] != "a" {
		t.Errorf("got %v and %+v, want it as it was", err, got)
	}
	if err := parse(t, `{"names":["b","c"]}`).Decode(&got); err != nil || got.Limit != 100 || len(got.Names) != 2 {
		t.Errorf("got %v and %+v, want the limit kept and the names replaced", err, got)
	}
}

// A string of a list that repeats is the same string, and no other.
func TestRepeatedStringsOfAListStayWhatTheyAre(t *testing.T) {
	var text strings.Builder
	text.WriteString("[")
	for i := range 500 {
		if i > 0 {
			text.WriteString(",")
		}
		quoted, _ := json.Marshal(strings.Repeat(string(rune('a'+i%7)), i%41))
		text.WriteString(`{"role":` + string(quoted) + `}`)
	}
	text.WriteString("]")
	var want, got []struct {
		Role string `json:"role"`
	}
	if err := json.Unmarshal([]byte(text.String()), &want); err != nil {
		t.Fatal(err)
	}
	if err := parse(t, text.String()).Decode(&got); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v and another list", err)
	}
}
