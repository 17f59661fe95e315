// Package config holds the settings of a hub: their names, defaults and limits, and how a YAML
// file, the environment and the command line set them.
//
// [Load] reads them from all sources and refuses invalid ones in one line that names the
// origin. Config has a field for each setting.
package config
