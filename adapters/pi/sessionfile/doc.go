// Package sessionfile reads and writes the session files of pi: JSON Lines, format
// version 3.
//
// The first line is a [Header], every other an [Entry]. Entries form a tree: each names its
// parent, and the last of a file is the current end of the conversation. Files are only
// appended to, so that a crash leaves at most a torn last line.
//
// The codec is pure: it opens no file. An entry keeps its line unchanged, with members that
// this program does not know.
package sessionfile
