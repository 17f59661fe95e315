package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestEscapedTextDecodesToTheOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkEscaped(t, rapid.String().Draw(t, "text")) })
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n\x00\u2028😀\xff<&>")
	f.Fuzz(func(t *testing.T, s string) { checkEscaped(t, s) })
}

func checkEscaped(t interface{ Fatalf(string, ...any) }, s string) {
	b := strictjson.AppendString(nil, s)
	var got string
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("AppendString(%q) = %s: %v", s, b, err)
	}
	if want := strings.ToValidUTF8(s, "\ufffd"); got != want && s == want {
		t.Fatalf("AppendString(%q) decodes to %q", s, got)
	}
	if strings.ContainsAny(string(b), "\n\r") {
		t.Fatalf("AppendString(%q) contains a line break: %q", s, b)
	}
}
