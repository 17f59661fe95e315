// Package config holds the settings of a hub: what can be set, what it is by default,
// and what a YAML file, the environment and the command line say of it.
//
// [Load] reads them from everywhere and refuses what is not allowed, in one line that
// names the place. Config has a field for each setting.
package config
