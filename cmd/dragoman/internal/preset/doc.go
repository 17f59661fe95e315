// Package preset lists the coding agents that people have on their machines, each as the settings of a hub run it. The
// list is what 'dragoman add' offers, what 'dragoman check' knows of programs, and what the tests install and run.
package preset
