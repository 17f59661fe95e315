// Package wire has what every end of MCP knows: the names and shapes of the messages of the
// versions 2024-11-05 to 2026-07-28. The hub's server (package mcp) and its client of servers
// (package pack) use it. It keeps no state and opens no socket; package jsonrpc reads and
// writes the messages themselves.
//
// Sources are the pages of modelcontextprotocol.io/specification, named as version, page and
// section.
package wire
