package pi

import (
	"encoding/json"
	"testing"
)

func FuzzTranscript(f *testing.F) {
	f.Add(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"x"}],"stopReason":"stop"}}`)
	f.Add(`{"type":"extension_ui_request","requestId":"r","message":"m"}`)
	f.Fuzz(func(t *testing.T, event string) {
		var tr Transcript
		tr.Add(Frame{Type: "event", Event: json.RawMessage(event)})
	})
}
