package render

import (
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The approximate sizes of events without their largest variable part.
const (
	eventSize  = 48
	noticeSize = 160
	retrySize  = 160
	queueSize  = 128
	bashSize   = 256

	compactionSize = 256
	toolSize       = 128
)

func appendTurnStart(dst []byte) []byte { return append(dst, `{"type":"turn_start"}`...) }

// appendMessageEvent appends the message_start or message_end of an encoded message.
func appendMessageEvent(dst []byte, phase string, json []byte) []byte {
	dst = append(append(dst, `{"type":"message_`...), phase...)
	return append(append(append(dst, `","message":`...), json...), '}')
}

func appendTurnEnd(dst, reply []byte, results []conversation.Message) []byte {
	dst = append(append(dst, `{"type":"turn_end","message":`...), reply...)
	return append(conversation.AppendMessages(append(dst, `,"toolResults":`...), results), '}')
}

// appendTool appends a tool_execution event of a call: phase is the suffix of its type, and
// rest, unless nil, appends the members that only this phase has.
func appendTool(dst []byte, phase string, c *toolCall, rest func([]byte) []byte) []byte {
	dst = append(append(dst, `{"type":"tool_execution_`...), phase...)
	dst = strictjson.AppendString(append(dst, `","toolCallId":`...), c.id)
	dst = strictjson.AppendString(append(dst, `,"toolName":`...), c.name)
	if phase != "end" {
		dst = append(append(dst, `,"args":`...), c.args...)
	}
	if rest != nil {
		dst = rest(dst)
	}
	return append(dst, '}')
}

func appendNotice(dst []byte, at time.Time, kind, text string) []byte {
	dst = strconv.AppendInt(append(dst, `{"type":"extension_ui_request","requestId":"notify-`...), at.UnixMilli(), 10)
	dst = strictjson.AppendString(append(dst, `","method":"notify","message":`...), text)
	return append(strictjson.AppendString(append(dst, `,"notifyType":`...), kind), '}')
}

func appendRetryStart(dst []byte, attempt, most int, delay time.Duration, problem string) []byte {
	w := strictjson.Writer{B: append(dst, `{"type":"auto_retry_start"`...)}
	w.Number("attempt", int64(attempt))
	w.Number("maxAttempts", int64(most))
	w.Number("delayMs", delay.Milliseconds())
	w.Text("errorMessage", problem)
	return append(w.B, '}')
}

func appendRetryEnd(dst []byte, attempt int, problem string) []byte {
	w := strictjson.Writer{B: append(dst, `{"type":"auto_retry_end"`...)}
	w.Bool("success", problem == "")
	w.Number("attempt", int64(attempt))
	w.Some("finalError", problem)
	return append(w.B, '}')
}

func appendStrings(dst []byte, all []string) []byte {
	dst = append(dst, '[')
	for i, s := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendString(dst, s)
	}
	return append(dst, ']')
}
