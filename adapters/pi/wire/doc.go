// Package wire writes the JSON text of pi-server's frames and messages.
package wire
