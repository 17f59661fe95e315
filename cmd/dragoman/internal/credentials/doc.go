// Package credentials reads the files that say who may connect and who may do what.
//
// They are YAML, read strictly: an unknown key, a key that is written twice, a value of
// another type, an alias or a second document is an error. Every error names the setting, the
// file and the line, and says what to write. All mistakes of a file are reported together.
package credentials
