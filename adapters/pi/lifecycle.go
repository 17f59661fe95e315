package pi

import (
	"slices"
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// appendOutcome appends what a command came to; a response has more to say of it
// than command_finished.
func appendOutcome(dst []byte, r response, full bool) []byte {
	dst = strconv.AppendBool(append(dst, `,"success":`...), r.err == "")
	if r.err != "" {
		dst = wire.AppendString(append(dst, `,"error":`...), r.err)
	}
	if full && r.data != nil {
		dst = append(append(dst, `,"data":`...), r.data...)
	}
	if r.hasV {
		dst = strconv.AppendInt(append(dst, `,"sessionVersion":`...), int64(r.version), 10)
	}
	if r.replayed {
		dst = append(dst, `,"replayed":true`...)
	}
	if full && r.timedOut {
		dst = append(dst, `,"timedOut":true`...)
	}
	return dst
}

// appendIdentity appends what all lifecycle events of a command say of it (facts,
// section 2.1). name is its id, or the synthetic one.
func appendIdentity(dst []byte, c command, name string) []byte {
	session, inSession := c.fields.get("sessionId")
	depends, dependent := c.fields.get("dependsOn")
	dst = slices.Grow(dst, 64+len(name)+len(c.kind)+len(session)+len(depends))
	dst = wire.AppendString(append(dst, `"commandId":`...), name)
	dst = wire.AppendString(append(dst, `,"commandType":`...), c.kind)
	if inSession {
		dst = append(append(dst, `,"sessionId":`...), session...)
	}
	dst = append(dst, `,"dependsOn":`...)
	if dependent {
		dst = append(dst, depends...)
	} else {
		dst = append(dst, '[', ']')
	}
	for _, name := range []string{"ifSessionVersion", "idempotencyKey"} {
		if raw, ok := c.fields.get(name); ok {
			dst = append(append(append(dst, ',', '"'), name...), '"', ':')
			dst = append(dst, raw...)
		}
	}
	return dst
}

// lifecycle returns the frame of a lifecycle event of the command; r is nil but for the
// last. The frames of a command share their memory.
func (x *execution) lifecycle(phase string, r *response) []byte {
	identity := x.known.identity
	if x.phases == nil {
		x.phases = make([]byte, 0, 3*(len(identity)+48)+64)
	}
	b := x.phases
	b = append(b, `{"type":"command_`...)
	b = append(append(append(b, phase...), `","data":{`...), identity...)
	if r != nil {
		b = appendOutcome(b, *r, false)
	}
	b = append(b, '}', '}')
	if cap(b) == cap(x.phases) { // it did not outgrow them
		x.phases = b[len(b):]
	}
	return b[:len(b):len(b)]
}

// serverEvent returns the frame of an event of the server itself (section 16).
func serverEvent(kind string, data any) []byte {
	b := wire.AppendString([]byte(`{"type":`), kind)
	return append(append(append(b, `,"data":`...), wire.Encode(data)...), '}')
}
