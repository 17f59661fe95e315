package render

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Compaction is the reason for an automatic compaction, one that no client requested
// (section 19.4).
type Compaction string

// The reasons for an automatic compaction.
const (
	CompactionThreshold Compaction = "threshold"
	CompactionOverflow  Compaction = "overflow"
)

// CompactionStart returns the frame that announces an automatic compaction.
func (e Envelope) CompactionStart(reason Compaction) []byte {
	return e.Event(eventSize, func(b []byte) []byte {
		return append(strictjson.AppendString(append(b, `{"type":"auto_compaction_start","reason":`...), string(reason)), '}')
	})
}

// CompactionEnd returns the frame that reports the end of an automatic compaction: its
// result, or the fault that made it fail. A result after an overflow means that the prompt
// is sent to the agent again.
func (e Envelope) CompactionEnd(reason Compaction, result json.RawMessage, why *core.Fault) []byte {
	return e.Event(len(result)+compactionSize, func(b []byte) []byte {
		b = append(b, `{"type":"auto_compaction_end"`...)
		if result != nil {
			b = append(append(b, `,"result":`...), result...)
		}
		aborted := why != nil && why.Code == core.CodeCancelled
		b = strconv.AppendBool(append(b, `,"aborted":`...), aborted)
		b = strconv.AppendBool(append(b, `,"willRetry":`...), why == nil && reason == CompactionOverflow)
		if why != nil && !aborted {
			text := "Auto-compaction failed: "
			if reason == CompactionOverflow {
				text = "Context overflow recovery failed: "
			}
			b = strictjson.AppendString(append(b, `,"errorMessage":`...), text+why.Message)
		}
		return append(b, '}')
	})
}
