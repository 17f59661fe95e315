// Package childenv knows which variables of this process a child process needs, where it does not
// get all of them.
package childenv
