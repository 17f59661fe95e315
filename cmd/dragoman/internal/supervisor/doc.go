// Package supervisor runs the agents and packs of the settings: it starts their processes or
// connects to them, starts them again with a growing delay when they are lost, and ends them with
// the hub.
//
//	settings ──▶ Supervisor ── unit ──▶ agent.Agent or pack ──▶ child process or remote
//	                 │                        │
//	                 └── hub.Session ◀────────┘
//
// A unit is one entry: its session with the hub stays while its process comes and goes, so that
// tasks wait for it. A Launcher starts processes; a guard, a process of its own, ends them if the
// hub is killed.
package supervisor
