package render

import (
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Envelope is the beginning of every event frame of a session (section 19). Its methods
// return frames that share no memory.
type Envelope []byte

// NewEnvelope returns the Envelope of a session.
func NewEnvelope(sessionID string) Envelope {
	b := strictjson.AppendString([]byte(`{"type":"event","sessionId":`), sessionID)
	return append(b, `,"event":`...)
}

// Event returns the frame of an event whose JSON, of about size bytes, fill appends.
func (e Envelope) Event(size int, fill func(dst []byte) []byte) []byte {
	return append(fill(append(make([]byte, 0, len(e)+size+1), e...)), '}')
}

// Opening returns the frames that begin a turn with these messages of the user. They begin
// with agent_start if the turn is the first of a run.
func (e Envelope) Opening(prompts []conversation.Message, runBegins bool) [][]byte {
	events := 2 + 2*len(prompts)
	frames := make([][]byte, 0, events)
	buf := make([]byte, 0, events*(len(e)+eventSize)+2*conversation.JSONSize(prompts))
	add := func(fill func([]byte) []byte) {
		from := len(buf)
		buf = append(fill(append(buf, e...)), '}')
		frames = append(frames, buf[from:len(buf):len(buf)])
	}
	if runBegins {
		add(func(b []byte) []byte { return append(b, `{"type":"agent_start"}`...) })
	}
	add(appendTurnStart)
	for _, m := range prompts {
		add(func(b []byte) []byte { return appendMessageEvent(b, "start", m.JSON) })
		add(func(b []byte) []byte { return appendMessageEvent(b, "end", m.JSON) })
	}
	return frames
}

// AgentEnd returns the frame that ends a run, with all of its messages.
func (e Envelope) AgentEnd(messages []conversation.Message) []byte {
	return e.Event(conversation.JSONSize(messages)+eventSize, func(b []byte) []byte {
		return append(conversation.AppendMessages(append(b, `{"type":"agent_end","messages":`...), messages), '}')
	})
}

// The kinds of notices.
const (
	NoticeInfo    = "info"
	NoticeWarning = "warning"
	NoticeError   = "error"
)

// Notice returns the frame that asks the client to show a line of text (section 18;
// facts, section 7.1).
func (e Envelope) Notice(at time.Time, kind, text string) []byte {
	return e.Event(noticeSize+len(text), func(b []byte) []byte { return appendNotice(b, at, kind, text) })
}

// RetryStart returns the frame that announces a retry: its number, the maximum, the delay
// until it begins and the reason.
func (e Envelope) RetryStart(attempt, most int, delay time.Duration, problem string) []byte {
	return e.Event(retrySize+len(problem), func(b []byte) []byte { return appendRetryStart(b, attempt, most, delay, problem) })
}

// RetryEnd returns the frame that ends a retry: a success if problem is "".
func (e Envelope) RetryEnd(attempt int, problem string) []byte {
	return e.Event(retrySize+len(problem), func(b []byte) []byte { return appendRetryEnd(b, attempt, problem) })
}

// Queue returns the frame with the queued messages: steering ones for the next turn,
// following ones for the turns after it. It is an additional event (section 14), which
// later versions of pi have.
func (e Envelope) Queue(steering, following []string) []byte {
	return e.Event(queueSize, func(b []byte) []byte {
		b = appendStrings(append(b, `{"type":"queue_update","steering":`...), steering)
		return append(appendStrings(append(b, `,"followUp":`...), following), '}')
	})
}

// ThinkingLevel returns the frame that announces a new thinking level.
func (e Envelope) ThinkingLevel(level string) []byte {
	return e.Event(eventSize, func(b []byte) []byte {
		return append(strictjson.AppendString(append(b, `{"type":"thinking_level_change","thinkingLevel":`...), level), '}')
	})
}

// BashOutput returns the frame with a piece of the output of a bash command; skipped is
// the number of bytes dropped before the piece. It is an additional event (section 14).
func (e Envelope) BashOutput(commandID, piece string, skipped int64) []byte {
	return e.Event(bashSize+len(piece), func(b []byte) []byte {
		b = strictjson.AppendString(append(b, `{"type":"bash_output","commandId":`...), commandID)
		b = strictjson.AppendString(append(b, `,"delta":`...), piece)
		if skipped > 0 {
			b = strconv.AppendInt(append(b, `,"skippedBytes":`...), skipped, 10)
		}
		return append(b, '}')
	})
}

// ServerEvent returns the frame of an event of the server, which belongs to no session
// (section 16). data is JSON.
func ServerEvent(kind string, data []byte) []byte {
	b := strictjson.AppendString([]byte(`{"type":`), kind)
	return append(append(append(b, `,"data":`...), data...), '}')
}
