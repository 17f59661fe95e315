// Package tool defines what a tool is, who may call it, and the result of a call.
//
// The tools of the hub, of packs and of people share it. It has no state.
package tool
