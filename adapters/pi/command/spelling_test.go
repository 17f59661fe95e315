package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

func TestAKnownKeyInAnotherCaseIsNamed(t *testing.T) {
	for _, tt := range []struct{ frame, want string }{
		{`{"Type":"health_check"}`, "Type: Unknown key, did you mean 'type'?; type: Command must have a string 'type' field"},
		{
			`{"type":"prompt","SessionID":"s","message":"x"}`,
			"SessionID: Unknown key, did you mean 'sessionId'?; sessionId: Session commands must have a non-empty string 'sessionId'",
		},
		{
			`{"type":"prompt","sessionId":"s","MESSAGE":"x","Message":"y","message":"z"}`,
			"MESSAGE: Unknown key, did you mean 'message'?; Message: Unknown key, did you mean 'message'?",
		},
		{`{"type":"prompt","sessionId":"s","message":"x","streamingbehavior":"steer"}`, "streamingbehavior: Unknown key, did you mean 'streamingBehavior'?"},
		{
			`{"type":"steer","sessionId":"s","message":"x","images":[7,{"data":"","mimeType":"a/b"},{"Data":"","mimetype":"a/b"}]}`,
			"images[2].Data: Unknown key, did you mean 'data'?; images[2].mimetype: Unknown key, did you mean 'mimeType'?",
		},
		{
			`{"type":"extension_ui_response","sessionId":"s","requestId":"r","response":{"method":"confirm","Confirmed":true}}`,
			"response.Confirmed: Unknown key, did you mean 'confirmed'?",
		},
		{`{"type":"navigate_tree","sessionId":"s","targetId":"t","options":{"Label":"l"}}`, "options.Label: Unknown key, did you mean 'label'?"},
		{`{"type":"nope","Id":"1"}`, "Id: Unknown key, did you mean 'id'?; type: Unknown command type 'nope'"},
		{"{\"type\":\"delete_session\",\"\u017fe\u017f\u017fionId\":\"s\"}", "\u017fe\u017f\u017fionId: Unknown key, did you mean 'sessionId'?; sessionId: Required non-empty string"},
		// What no key of the command comes near is anybody's own.
		{`{"type":"health_check","Message":"x","session_id":"s","x-trace":{"Type":1}}`, ""},
		{`{"type":"prompt","sessionId":"s","message":"x","images":"none","Provider":"p"}`, ""},
		{`{"type":"extension_ui_response","sessionId":"s","requestId":"r","response":{"method":"interview","responses":{"Method":1}}}`, ""},
	} {
		c, err := Decode([]byte(tt.frame), 1<<20)
		if err != nil {
			t.Fatalf("decode(%s): %v", tt.frame, err)
		}
		if got := strings.TrimPrefix(validate(c), "Validation failed: "); got != tt.want {
			t.Errorf("validate(%s):\n got %q\nwant %q", tt.frame, got, tt.want)
		}
	}
}

func TestEveryKeyOfEveryCommandHasOneSpelling(t *testing.T) {
	var kinds []string
	for kind := range Table {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		var known []string
		for _, f := range Table[kind].fields {
			if f.name != "type" {
				known = append(known, f.name)
			}
		}
		key := rapid.SampledFrom(known).Draw(t, "key")
		other := []rune(key)
		i := rapid.IntRange(0, len(other)-1).Draw(t, "letter")
		if other[i] = unicode.ToUpper(other[i]); string(other) == key {
			other[i] = unicode.ToLower(other[i])
		}
		c, err := Decode(wire.Encode(map[string]any{"type": kind, string(other): 1}), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := validate(c), string(other)+": Unknown key, did you mean '"+key+"'?"; !strings.Contains(got, want) {
			t.Fatalf("%s with %s: got %q, want among it %q", kind, string(other), got, want)
		}
	})
}

func TestAnExtraKeyIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Filter(func(s string) bool {
			return !strings.Contains(s, "\x00") && !slices.ContainsFunc([]string{"message", "images", "streamingBehavior", "type", "id", "sessionId", "dependsOn", "ifSessionVersion", "idempotencyKey"}, func(known string) bool {
				return strings.EqualFold(s, known)
			})
		}).Draw(t, "key")
		frame := wire.Encode(map[string]any{"type": "prompt", "sessionId": "s", "message": "x", key: json.RawMessage(`{"Type":[1]}`)})
		c, err := Decode(frame, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		if got := validate(c); got != "" {
			t.Fatalf("%s: got %q, want it valid", frame, got)
		}
	})
}
