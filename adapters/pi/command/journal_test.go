package command

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzReadRecord holds that a record is refused, or can be told again.
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
