// Package redact takes secrets out of what is stored and shown to others: texts that match a
// pattern, and secrets that the hub knows. Each becomes [redacted].
//
// A [Redactor] takes them out of a whole text, of JSON and of an event. [Tasks] takes them out
// of the events of tasks, where an agent may split a secret over pieces of text: pieces that
// may be a part of one are held back until it is known. What is held back:
//
//   - the end of the text that begins a known secret;
//   - from the literal text on with which a pattern begins (sk- in sk-[a-z]{20}), as much as
//     the longest match has, or [LongMatch] bytes of a pattern without a bound;
//   - for a pattern that begins with anything else, always as much as its longest match has,
//     or [ShortMatch] bytes.
//
// So a match of an unbounded pattern that is longer than that is found only as far as it was
// there at once. Nothing is held back for longer than [HoldTime]: then the text passes, and
// what of the secret comes later is redacted. The same secret in the foreign fields of events
// is found only in one piece.
package redact
