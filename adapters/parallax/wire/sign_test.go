package wire

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// vector is a message and its signature, for authors of agents.
type vector struct{ TaskRef, Secret, Message, Canonical, Signature string }

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("../../../schemas/parallax/signatures/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		t.Fatalf("got %d vectors and %v, want some", len(all), err)
	}
	return all
}

func TestSignaturesMatchTheVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.TaskRef, func(t *testing.T) {
			text, err := canonical([]byte(v.Message), "signature")
			if err != nil || string(text) != v.Canonical {
				t.Errorf("canonical: got %s and %v, want %s", text, err, v.Canonical)
			}
			if got, err := signatureOf([]byte(v.Message), []byte(v.Secret)); err != nil || got != v.Signature {
				t.Errorf("signature: got %s and %v, want %s", got, err, v.Signature)
			}
			if !Verify([]byte(v.Message), v.Signature, []byte(v.Secret)) || Verify([]byte(v.Message), v.Signature, []byte("another")) {
				t.Error("want the signature valid with its secret and no other")
			}
		})
	}
}

func TestASignatureIsValidUntilTheMessageChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		frame, err := Encode("task_result", "1", time.Time{}, map[string]any{"taskId": "t", "result": text, "n": rapid.Float64().Draw(t, "n")})
		if err != nil {
			t.Fatal(err)
		}
		signed, err := Sign(frame, []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(signed)
		if err != nil || !Verify(m.Frame, m.Signature, []byte("k")) {
			t.Fatalf("got %v of %s, want it verified", err, signed)
		}
		forged := strings.Replace(string(signed), `"taskId":"t"`, `"taskId":"u"`, 1)
		if Verify([]byte(forged), m.Signature, []byte("k")) {
			t.Fatalf("got %s verified, want it refused", forged)
		}
	})
}

func TestCanonicalFormIsIdempotent(t *testing.T) {
	for _, v := range vectors(t) {
		if again, err := canonical([]byte(v.Canonical), "signature"); err != nil || string(again) != v.Canonical {
			t.Errorf("got %s and %v, want %s again", again, err, v.Canonical)
		}
	}
	if _, err := canonical([]byte(`{"n":1e999}`), ""); err == nil {
		t.Error("a number too large for a double: got no error, want one")
	}
}

func FuzzCanonical(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Message))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if strictjson.Check(text, Limits) != nil {
			return
		}
		once, err := canonical(text, "signature")
		if err != nil {
			return
		}
		if again, err := canonical(once, "signature"); err != nil || string(again) != string(once) {
			t.Errorf("got %s and %v, want %s again", again, err, once)
		}
	})
}
