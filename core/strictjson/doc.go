// Package strictjson reads JSON that comes from outside the program: exact-case
// keys, no key twice, no NUL in a key, bounded depth and size, and errors that name
// the place and say what to change.
package strictjson
