package command_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// anyJSON draws a JSON value.
func anyJSON(t *rapid.T, depth int) any {
	kinds := 5
	if depth == 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
	case 1:
		return rapid.Float64().Draw(t, "number")
	case 2:
		return float64(rapid.IntRange(-1000, 1000).Draw(t, "integer"))
	case 3:
		return rapid.String().Draw(t, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, anyJSON(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		object[rapid.StringMatching("[a-zé😀\"]{0,4}").Draw(t, "name")] = anyJSON(t, depth-1)
	}
	return object
}

// reencode encodes a value differently: with white space, members in any order, escaped
// strings and numbers in another notation.
func reencode(v any, r *rand.Rand) string {
	switch v := v.(type) {
	case string:
		if r.IntN(2) == 0 {
			return string(strictjson.Encode(v))
		}
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return `"` + b.String() + `"`
	case float64:
		return strconv.FormatFloat(v, 'e', -1, 64)
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, reencode(item, r))
		}
		return "[ " + strings.Join(items, " ,\n") + " ]"
	case map[string]any:
		names := slices.Collect(maps.Keys(v))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var members []string
		for _, name := range names {
			members = append(members, reencode(name, r)+" : "+reencode(v[name], r))
		}
		return "{\t" + strings.Join(members, ", ") + " }"
	}
	return string(strictjson.Encode(v))
}

// sameFingerprint reports whether two commands with one id or key count as the same: then
// the second replays the outcome of the first, else it is a conflict.
func sameFingerprint(t interface{ Fatalf(string, ...any) }, first, second string) bool {
	h := &host{}
	e := command.New(h, command.Options{Rates: unlimited})
	defer e.Close()
	c := &command.Client{Namespace: command.Namespace{Conn: 1}, Sink: h, Attached: true}
	submit(t, e, c, first)
	response := submit(t, e, c, second)
	replayed, conflict := strings.Contains(response, `"replayed":true`), strings.Contains(response, "Conflicting ")
	if replayed == conflict {
		t.Fatalf("got %s, want the second command replayed or a conflict", response)
	}
	return replayed
}

func TestAFingerprintDependsOnTheMeaningNotOnTheEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{"type": "prompt", "sessionId": "s", "message": "x", "id": "1", "idempotencyKey": "k", "more": anyJSON(t, 3)}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		plain := string(strictjson.Encode(v))
		if !sameFingerprint(t, plain, reencode(v, r)) {
			t.Fatalf("got a conflict, want the same fingerprint as of %s", plain)
		}
		other := maps.Clone(v)
		other["id"] = "2"
		if !sameFingerprint(t, plain, string(strictjson.Encode(other))) {
			t.Fatalf("another id: got a conflict, want the same fingerprint as of %s", plain)
		}
		other["id"], other["idempotencyKey"] = "1", "l"
		if !sameFingerprint(t, plain, string(strictjson.Encode(other))) {
			t.Fatalf("another key: got a conflict, want the same fingerprint as of %s", plain)
		}
		other["more"] = map[string]any{"": v["more"]}
		if sameFingerprint(t, plain, string(strictjson.Encode(other))) {
			t.Fatalf("another meaning: got the same fingerprint as of %s", plain)
		}
	})
}

func TestAFingerprintIsTheDigestOfCanonicalJSON(t *testing.T) {
	const want = `"fingerprint":"v2:sha256:329dc9ac25ef68287ca482dd8acc81ea9b9d5286f5ac9937a37afb50860a93ae"`
	const frame = `{"type":"set_session_name","sessionId":"s","name":"\u006fne","id":"1","more":{"b":1.0,"a":[1e2,-0]}}`
	h := &host{}
	e, c := newEngine(t, h, command.Options{Journal: &records{}})
	h.perform = func(x *command.Execution) command.Outcome {
		if x.Kind != "get_command_history" {
			return command.Outcome{}
		}
		return e.Journal().History(x, "")
	}
	submit(t, e, c, frame)
	if got := submit(t, e, c, `{"type":"get_command_history"}`); !strings.Contains(got, want) {
		t.Errorf("got the history %s, want %s in it", got, want)
	}
	if same := `{"more":{"a":[100,0],"b":1},"name":"one","sessionId":"s","type":"set_session_name","id":"1"}`; !sameFingerprint(t, frame, same) {
		t.Errorf("got a conflict of %s and %s, want the same fingerprint", frame, same)
	}
}
