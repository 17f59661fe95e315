// Package plant builds tests with a fault in the program, which they have to find: it tests the tests.
package plant
