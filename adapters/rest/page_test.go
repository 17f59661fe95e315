package rest

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/core"
)

func TestTheExamplesOfThePageAreValid(t *testing.T) {
	page, err := os.ReadFile("../../docs/rest.md")
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]func() any{
		"/v1/tasks": func() any { return &taskBody{} }, "/v1/notices": func() any { return &noticeBody{} },
		"/v1/tasks/{id}/cancel": func() any { return &cancelBody{} }, "/v1/tasks/{id}/inject": func() any { return &injectBody{} },
		"/v1/tasks/{id}/decisions": func() any { return &decideBody{} }, "/v1/questions/{id}/answer": func() any { return &answerBody{} },
	}
	router := (&api{opts: Options{}.withDefaults()}).routes()
	commands := regexp.MustCompile(`(?m)^curl.*? '?http://127\.0\.0\.1:8080(/[^\s'?]*)\S*$`).FindAllStringSubmatch(string(page), -1)
	if len(commands) < 10 {
		t.Fatalf("got %d commands, want the examples", len(commands))
	}
	for _, c := range commands {
		method := "GET"
		body := regexp.MustCompile(`--json '([^']*)'`).FindStringSubmatch(c[0])
		if body != nil {
			method = "POST"
		}
		found := chi.NewRouteContext()
		if !router.Match(found, method, c[1]) {
			t.Errorf("%s: no route %s %s", c[0], method, c[1])
			continue
		}
		if body == nil {
			continue
		}
		v := bodies[found.RoutePattern()]()
		if err := decode([]byte(body[1]), DefaultMaxBodyBytes, v); err != nil {
			t.Errorf("%s: got %v, want no error", c[0], err)
		}
	}
}

func TestThePageListsTheStatusOfEveryCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/rest.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[core.Code][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([45]\d\d[, \d]*) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1) {
		numbers, codes := strings.Split(row[1], ", "), regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[2], -1)
		for i, c := range codes {
			// A row with as many statuses as codes lists them in the same order.
			if len(numbers) == len(codes) {
				documented[core.Code(c[1])] = append(documented[core.Code(c[1])], numbers[i])
			} else {
				documented[core.Code(c[1])] = append(documented[core.Code(c[1])], numbers...)
			}
		}
	}
	for code, status := range statuses {
		if !slices.Contains(documented[code], strconv.Itoa(status)) {
			t.Errorf("the page has %v for %s, want %d", documented[code], code, status)
		}
	}
}
