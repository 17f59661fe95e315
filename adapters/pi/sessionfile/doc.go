// Package sessionfile reads and writes the session files of pi: JSON Lines, format
// version 3.
//
// The first line is a [Header], every other an [Entry]. Entries are a tree: each
// names its parent, and the last of a file is where the conversation stands. Files
// are only ever appended to, so that a torn last line is what a crash leaves behind
// and no more is lost.
//
// The codec is pure: it opens no file. An entry keeps its line as it stands, with
// all that this program does not know in it.
package sessionfile
