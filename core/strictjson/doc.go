// Package strictjson reads JSON that comes from outside the program, once.
//
// It is strict: keys count in their exact case, no key stands twice in an object or
// holds a NUL, text is UTF-8, depth and size are bounded. An error names the place and
// says what to change, in one line that a peer may be told.
//
// [Parse] reads a text from its first byte to its last and notes where each value
// stands. Whoever then asks for a member, holds a message against a schema, or decodes
// a part of it into a struct, looks up places: what is between is not read again, and
// what is passed on as it came is not read at all.
//
//	message, err := strictjson.Parse(frame, strictjson.Limits{Bytes: 1_000_000})
//	if err != nil {
//		return err // not JSON: unexpected ']' in an object at byte 7 (in payload): put a comma or } there
//	}
//	kind, _ := message.Get("type").Text()
//	var task Task
//	err = message.Get("payload").Decode(&task) // timeout: want a whole number, got a string
//
// [Decode] is both in one for a text of which nothing else is wanted, [DecodeKnown]
// refuses unknown keys too, and [Check] only says whether a text is strict JSON.
//
// A value costs 24 bytes of memory beside its text for as long as the Value is held,
// which is up to twelve times the text where it is an array of digits: who holds one
// for long decodes it or takes its [Value.Raw].
package strictjson
