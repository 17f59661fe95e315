package e2e

import "testing"

func jsonOf(t *testing.T, texts ...string) []*jsonValue {
	t.Helper()
	var vs []*jsonValue
	for _, text := range texts {
		v, err := parseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	return vs
}

func TestAConversationFailsOnWhatItDoesNotShow(t *testing.T) {
	for _, c := range []struct {
		name       string
		want, came []string
		ok         bool
	}{
		{"the same, members in another order", []string{`{"a":1,"b":[2,"x"]}`}, []string{`{"b":[2,"x"],"a":1.0}`}, true},
		{"another number", []string{`{"a":1}`}, []string{`{"a":2}`}, false},
		{"a number as a text", []string{`{"a":1}`}, []string{`{"a":"1"}`}, false},
		{"a member too many", []string{`{"a":1}`}, []string{`{"a":1,"b":2}`}, false},
		{"a member too few", []string{`{"a":1,"b":2}`}, []string{`{"a":1}`}, false},
		{"null where nothing should be", []string{`{}`}, []string{`{"a":null}`}, false},
		{"an item too many", []string{`[1]`}, []string{`[1,2]`}, false},
		{"members left open", []string{`{"a":1,"...":"..."}`}, []string{`{"a":1,"b":2}`}, true},
		{"members left open, and one that is missing", []string{`{"a":1,"...":"..."}`}, []string{`{"b":2}`}, false},
		{"a name is the same value everywhere", []string{`["$id","$id.1","$id"]`}, []string{`["x7","x7.1","x7"]`}, true},
		{"a name cannot be two values", []string{`["$id","$id"]`}, []string{`["x7","x8"]`}, false},
		{"a name across frames", []string{`{"id":"$id"}`, `{"ref":"$id"}`}, []string{`{"id":"1"}`, `{"ref":"2"}`}, false},
		{"anything", []string{`["$any","about $any now"]`}, []string{`[{"a":[]},"about it all now"]`}, true},
		{"anything is not nothing", []string{`{"a":"$any"}`}, []string{`{}`}, false},
		{"a time", []string{`["$time","$time","at $time"]`}, []string{`["2000-01-01T00:00:00.5Z",946684800000,"at 2000-01-01T00:00:00Z"]`}, true},
		{"no time", []string{`["$time"]`}, []string{`["soon"]`}, false},
		{"many letters", []string{`"$chars(3)y"`}, []string{`"xxxy"`}, true},
		{"a dollar", []string{`"$$5"`}, []string{`"$5"`}, true},
		{"a frame too many", []string{`1`}, []string{`1`, `2`}, false},
		{"a frame too few", []string{`1`, `2`}, []string{`1`}, false},
		{"frames in another order", []string{`1`, `2`}, []string{`2`, `1`}, false},
		{"frames left open", []string{`1`, `"..."`, `3`}, []string{`1`, `2`, `2`, `3`}, true},
		{"frames left open at the end", []string{`1`, `"..."`}, []string{`1`, `2`}, true},
		{"frames left open, and one that is missing", []string{`"..."`, `3`}, []string{`1`, `2`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := bindings{values: map[string]*jsonValue{}}
			if _, ok := n.compareAll(jsonOf(t, c.want...), jsonOf(t, c.came...)); ok != c.ok {
				t.Errorf("got %v, want %v comparing %v with %v", ok, c.ok, c.came, c.want)
			}
		})
	}
}

func TestAConversationInAnyOrderMissesNothing(t *testing.T) {
	n := bindings{values: map[string]*jsonValue{}}
	want, received := jsonOf(t, `{"a":"$id"}`, `{"b":1}`, `{"c":"$id"}`), jsonOf(t, `{"b":1}`, `{"c":"7"}`, `{"a":"7"}`)
	if _, ok := n.compareAll(n.reorder(want, received), received); !ok {
		t.Error("got a difference, want the same frames in another order taken")
	}
	if _, ok := n.compareAll(n.reorder(want, received[:2]), received[:2]); ok {
		t.Error("got no difference, want the frame missed that did not come")
	}
}

func TestPlaceholdersAreFilledInBeforeSending(t *testing.T) {
	n := bindings{values: map[string]*jsonValue{"$task": textValue("t7"), "$seq": {text: "3"}}}
	got, err := n.fill(jsonOf(t, `{"id":"$task","part":"$task.1","seq":"$seq","price":"$$5","many":"$chars(3)"}`)[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id": "t7", "part": "t7.1", "seq": 3, "price": "$5", "many": "xxx"}`; got.line() != want {
		t.Errorf("got %s, want %s", got.line(), want)
	}
	if _, err := n.fill(textValue("$unheard")); err == nil {
		t.Error("got no error for a name that nothing has, want one")
	}
}
