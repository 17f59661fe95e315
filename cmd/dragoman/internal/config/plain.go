package config

import (
	"fmt"
	"strings"
	"time"
)

// Plain returns the settings in the structure of a settings file.
func (c Config) Plain() map[string]any {
	root := map[string]any{}
	for key, value := range c.flat() {
		groups := strings.Split(key, ".")
		m := root
		for _, name := range groups[:len(groups)-1] {
			if m[name] == nil {
				m[name] = map[string]any{}
			}
			m = m[name].(map[string]any)
		}
		m[groups[len(groups)-1]] = value
	}
	return root
}

// Values returns the values of all settings as text, by key.
func (c Config) Values() map[string]string {
	all := map[string]string{}
	for _, s := range *c.settings().all {
		all[s.Key] = s.text()
	}
	return all
}

// flat returns the values of all settings by key, in the types of a settings file.
func (c Config) flat() map[string]any {
	all := map[string]any{}
	for _, s := range *c.settings().all {
		all[s.Key] = s.plain()
	}
	return all
}

// text returns the value of the field as somebody writes it.
func (s *Setting) text() string {
	switch field := s.field.(type) {
	case *int:
		return s.amount(int64(*field))
	case *int64:
		return s.amount(*field)
	}
	return fmt.Sprint(s.plain())
}

// plain returns the value of the field, in a type of a settings file.
func (s *Setting) plain() any {
	switch field := s.field.(type) {
	case *string:
		return *field
	case *bool:
		return *field
	case *int:
		return *field
	case *int64:
		return *field
	case *float64:
		return *field
	case *time.Duration:
		return FormatTime(*field)
	case *[]string:
		return append([]string{}, *field...)
	case list:
		return field.plain()
	}
	return nil
}
