// Package tool says what a tool is, who may call it and what a call comes to.
//
// The tools of the hub, of packs and of people share it. It has no state.
package tool
