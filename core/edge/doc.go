// Package edge takes off what people's tools add at the edges of a text: the byte order mark with which some editors
// and shells begin a file or a stream, and the line end after a word in a file or a variable.
//
// A text in another encoding than UTF-8 is named and not guessed at.
package edge
