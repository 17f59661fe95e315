package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

const (
	deploy = "../../deploy/"
	chart  = deploy + "helm/dragoman/"
)

// chartFile returns a file of the chart.
func chartFile(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(chart + name)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return all
}

// rendered returns the objects of the chart with these values, which replace those of values.yaml.
func rendered(t *testing.T, values map[string]any) (all []map[string]any) {
	t.Helper()
	about, given := chartFile(t, "Chart.yaml"), chartFile(t, "values.yaml")
	for name, v := range values {
		if _, known := given[name]; !known {
			t.Fatalf("the chart has no value %s", name)
		}
		given[name] = v
	}
	functions := template.FuncMap{ // those of Helm that the chart uses
		"default": func(otherwise, given string) string { return cmp.Or(given, otherwise) },
		"add":     func(a, b int) int { return a + b }, "int": func(n int) int { return n }, "quote": strconv.Quote,
		"until": func(n int) (all []int) {
			for i := range n {
				all = append(all, i)
			}
			return all
		},
		"toJson": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
	}
	files, err := filepath.Glob(chart + "templates/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no templates (%v)", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		form, err := template.New(file).Funcs(functions).Option("missingkey=error").Parse(string(source))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := form.Execute(&out, map[string]any{
			"Values": given, "Release": map[string]string{"Name": "hub"}, "Chart": map[string]any{"AppVersion": about["appVersion"]},
		}); err != nil {
			t.Fatal(err)
		}
		for d := yaml.NewDecoder(&out); ; {
			var object map[string]any
			err := d.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, object)
		}
	}
	return all
}

// at returns what is at a path of names and numbers in an object; nil if there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch of := v.(type) {
		case map[string]any:
			name, _ := step.(string)
			v = of[name]
		case []any:
			i, is := step.(int)
			if !is || i >= len(of) {
				return nil
			}
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

// commandsIn returns the commands of containers, hooks and probes in an object.
func commandsIn(v any) (all [][]string) {
	switch of := v.(type) {
	case map[string]any:
		for name, below := range of {
			list, is := below.([]any)
			if name != "command" || !is {
				all = append(all, commandsIn(below)...)
				continue
			}
			var words []string
			for _, word := range list {
				words = append(words, fmt.Sprint(word))
			}
			all = append(all, words)
		}
	case []any:
		for _, below := range of {
			all = append(all, commandsIn(below)...)
		}
	}
	return all
}

// inImage matches a program of the image where the release puts it.
var inImage = regexp.MustCompile(`"usr/local/bin/([^"]+)"`)

// programsOfTheImage returns the names of all programs that are in the image of a release.
func programsOfTheImage(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("../../tools/release/image.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range inImage.FindAllSubmatch(source, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// checkRuns fails unless a command runs in the image: its program is there, and takes these words.
func checkRuns(t *testing.T, words []string) {
	t.Helper()
	if programs := programsOfTheImage(t); !slices.Contains(programs, words[0]) {
		t.Errorf("%q: got %s, want one of the programs of the image, %q", words, words[0], programs)
		return
	}
	c, rest, err := command.NewRoot(command.Streams{}).Find(words[1:])
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil || !c.HasParent() {
		t.Errorf("%q: got %v, want a command with valid flags", words, err)
	}
}

func TestTheChartStartsHubsOfACluster(t *testing.T) {
	secret := func(name string) map[string]any { return map[string]any{"existingSecret": name, "seconds": 300} }
	for name, values := range map[string]map[string]any{
		"in a trusted network": {"insecure": true, "env": map[string]any{"DRAGOMAN_LIMITS_RETRIES": "3"}},
		"with tokens and TLS":  {"auth": secret("tokens"), "tls": secret("certificate"), "drain": secret("operator")},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := map[string]map[string]any{}
			for _, object := range rendered(t, values) {
				kind, _ := object["kind"].(string)
				name, _ := at(object, "metadata", "name").(string)
				kinds[kind+" "+name] = object
			}
			for _, want := range []string{"StatefulSet hub", "Service hub", "Service hub-hubs", "PodDisruptionBudget hub"} {
				if kinds[want] == nil {
					t.Errorf("got no %s, want one", want)
				}
			}
			set := kinds["StatefulSet hub"]
			if got := at(set, "spec", "replicas"); got != 3 {
				t.Errorf("got %v hubs, want 3", got)
			}
			if got, want := at(set, "spec", "serviceName"), at(kinds["Service hub-hubs"], "metadata", "name"); got != want {
				t.Errorf("the service of the hubs: got %v, want %v", got, want)
			}
			container := at(set, "spec", "template", "spec", "containers", 0)
			if got, want := at(container, "image"), fmt.Sprint("dragoman:", chartFile(t, "Chart.yaml")["appVersion"]); got != want {
				t.Errorf("got the image %v, want that of the version, %s", got, want)
			}
			env := map[string]string{}
			var environ []string
			list, _ := at(container, "env").([]any)
			for _, one := range list {
				name, _ := at(one, "name").(string)
				value, _ := at(one, "value").(string)
				env[name] = value
				environ = append(environ, name+"="+value)
			}
			if unknown := config.UnknownVariables(environ); unknown != nil {
				t.Error(unknown)
			}
			if links := at(set, "spec", "template", "spec", "enableServiceLinks"); links != false {
				t.Errorf("got the variables of Services beside the hub (%v), want none: they begin as those of settings do", links)
			}
			const peers = "hub-0.hub-hubs:6222,hub-1.hub-hubs:6222,hub-2.hub-hubs:6222"
			if got := env["DRAGOMAN_CLUSTER_PEERS"]; got != peers {
				t.Errorf("got the peers %q, want %q", got, peers)
			}
			commands := commandsIn(set)
			for _, words := range commands {
				checkRuns(t, words)
			}
			if len(commands) != 2 {
				t.Errorf("got the commands %q, want that of the container and that before its end", commands)
			}
			drain, _ := at(container, "lifecycle", "preStop", "exec", "command").([]any)
			if at(drain, 1) != "drain" || !slices.Contains(drain, any("--timeout=300s")) {
				t.Errorf("before the end of a pod: got %v, want that its hub is drained, for 300s at most", drain)
			}
			if got, want := at(set, "spec", "template", "spec", "terminationGracePeriodSeconds"), 300+60; got != want {
				t.Errorf("the time for the end of a pod: got %v, want %d", got, want)
			}
			if got := at(container, "readinessProbe", "httpGet", "path"); got != "/readyz" {
				t.Errorf("the readiness: got %v, want /readyz", got)
			}
		})
	}
}

var (
	execLine    = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/dragoman (.+)$`)
	environment = regexp.MustCompile(`(?m)^Environment=(.+)$`)
)

func TestTheUnitRunsACommandThatExists(t *testing.T) {
	unit, err := os.ReadFile(deploy + "systemd/dragoman.service")
	if err != nil {
		t.Fatal(err)
	}
	line := execLine.FindSubmatch(unit)
	if line == nil {
		t.Fatalf("got no ExecStart in\n%s", unit)
	}
	words := strings.Fields(string(line[1]))
	c, rest, err := command.NewRoot(command.Streams{}).Find(words)
	if err != nil || c.Name() != "serve" {
		t.Fatalf("%q: got %v and %v, want serve", words, c, err)
	}
	for _, word := range rest {
		if name, is := strings.CutPrefix(word, "--"); is && c.Flags().Lookup(name) == nil {
			t.Errorf("serve has no flag %s", word)
		}
	}
	more, err := os.ReadFile(deploy + "systemd/cluster.conf")
	if err != nil {
		t.Fatal(err)
	}
	var environ []string
	for _, e := range environment.FindAllSubmatch(more, -1) {
		environ = append(environ, string(e[1]))
	}
	if unknown := config.UnknownVariables(environ); unknown != nil || len(environ) == 0 {
		t.Errorf("got the variables %q and %v, want those of settings", environ, unknown)
	}
}
