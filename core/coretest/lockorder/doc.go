// Package lockorder finds locks that are taken in two orders, which may stop the program for good. A test puts its
// [Mutex] in the place of those of package sync, and runs other tests with it: see [Overlay]. Each field that is a lock
// is one place in the order, whatever value it belongs to. Two locks of one field may be held at once.
package lockorder
