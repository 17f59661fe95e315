// Package strictjson reads JSON from outside the program, in one pass.
//
// It is strict: keys are case-sensitive and unique in an object, without NUL; text is
// UTF-8; depth and size are bounded. An error names the position and says what to change,
// in one line that may be sent to the peer.
//
// [Parse] reads a text once and builds an index of its values. Getting a member, checking
// a message against a schema and decoding a part into a struct use the index: the text in
// between is not read again, and a value that is passed on unchanged is not read at all.
//
//	message, err := strictjson.Parse(frame, strictjson.Limits{Bytes: 1_000_000})
//	if err != nil {
//		return err // not JSON: unexpected ']' in an object at byte 7 (in payload): put a comma or } there
//	}
//	kind, _ := message.Get("type").Text()
//	var task Task
//	err = message.Get("payload").Decode(&task) // timeout: want a whole number, got a string
//
// [Decode] does both for a text that is decoded as a whole, [DecodeKnown] also refuses
// unknown keys, and [Check] only checks that a text is strict JSON.
//
// A [Writer] writes objects member by member, [AppendString] text, and [Marshal] and [Encode]
// any value.
//
// The index takes 24 bytes for each value as long as a Value is held, up to twelve times
// the text for an array of digits. To hold a value for long, decode it or take its
// [Value.Raw].
package strictjson
