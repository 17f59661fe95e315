// Package visible shows what peers say to people: control characters, those that change the direction
// of writing and those that nobody sees are shown as \u202e or \x1b, so that a text can neither control a
// terminal nor look like another.
//
// It is for text that the program composes for a person: the title of a dialog, a question, a line of a
// terminal. What a program reads, such as a member of JSON, stays as it is.
package visible
