package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzDecode checks that the response, the lifecycle events and the history of any command
// are JSON.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"type":"prompt","id":"1","sessionId":"s","message":"hi"}`, `[]`, `{"type":5}`, `{"type":"x","dependsOn":[1]}`, `{"type":"get_state","sessionId":5,"ifSessionVersion":{},"idempotencyKey":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		c, err := Decode(frame, 1<<20)
		if err != nil {
			return
		}
		r := appendResponse(nil, c, response{err: validate(c)})
		if !json.Valid(r) {
			t.Fatalf("the response to %q is not JSON: %s", frame, r)
		}
		if !json.Valid([]byte("{" + string(appendIdentity(nil, c, "x")) + "}")) {
			t.Fatalf("the lifecycle event of %q is not JSON", frame)
		}
		k := tracked{commandInfo: commandInfo{name: "x", kind: c.Kind, lane: c.lane(), identity: appendIdentity(nil, c, "x"), fingerprint: fingerprintOf(c)}}
		if e := appendEntry(nil, entry{of: &k.commandInfo, phase: PhaseAccepted}); !json.Valid(e) {
			t.Fatalf("the history of %q is not JSON: %s", frame, e)
		}
	})
}

// FuzzFingerprint checks that the canonical form of a command has the same fingerprint.
func FuzzFingerprint(f *testing.F) {
	for _, text := range []string{
		`{"type":"prompt","message":"\ud83d\ude00 \u2028","images":[{"data":"","x":{"b":1,"a":[null,true]}}]}`, `{"a":1e400,"b":-0.0,"c":1e-7,"d":123456789012345678901}`,
		`{"":"","id":{"a":1},"idempotencyKey":[]}`, `{"a":"\u0000\b\f"}`, `[]`, `{}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		c, err := Decode(frame, 1<<20)
		if err != nil {
			return
		}
		var reversed []string
		for key, v := range c.object.Members() {
			value := appendCanonical(nil, v)
			if !json.Valid(value) {
				t.Fatalf("%s: got %s, want JSON", v.Raw(), value)
			}
			reversed = append([]string{string(strictjson.AppendString(nil, string(key))) + ":" + string(value)}, reversed...)
		}
		canonical := strictjson.ParseValid([]byte("{" + strings.Join(reversed, ",") + "}"))
		if got, want := fingerprintOf(Command{object: canonical}), fingerprintOf(c); got != want {
			t.Errorf("got %s, want %s of %s", got, want, frame)
		}
	})
}

// FuzzReadRecord checks that a record is refused or has a history entry that is JSON.
func FuzzReadRecord(f *testing.F) {
	j := Journal{engine: &Engine{startedAt: 1}}
	c := Command{Kind: "get_state", object: strictjson.ParseValid([]byte(`{"dependsOn":["a"]}`))}
	a := &commandInfo{name: "1", kind: "get_state", identity: appendIdentity(nil, c, "1")}
	f.Add(j.encodeRecord(pendingRecord{of: a, phase: phaseFinished, response: response{err: "no", timedOut: true}}))
	f.Add([]byte(`{"v":1,"is":{"commandId":"x"},"print":""}`))
	f.Add([]byte(`{"v":1,"is":"{}"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRecord(data)
		if err != nil || r.Version != RecordVersion {
			return
		}
		k := r.command()
		h := entry{of: &k.commandInfo, phase: r.Phase, response: response{err: r.Error}, recovered: r.Recovered}
		if told := appendEntry(nil, h); !json.Valid(told) {
			t.Errorf("the history of %q is not JSON: %s", data, told)
		}
	})
}
