package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// The document keeps the rules that linters of OpenAPI check, so that generators and catalogues
// take it as it is.
func TestTheDescriptionKeepsLintersRules(t *testing.T) {
	g := newWorkingBench(t)
	var d struct {
		Info struct {
			Title, Version, Description string
			License                     struct{ Name, Identifier string }
		}
		Servers []struct{ URL string }
		Tags    []struct{ Name, Description string }
		Paths   map[string]map[string]struct {
			Summary, Description, OperationID string
			Tags                              []string
			Parameters                        []struct{ Name, In, Description string }
			Responses                         map[string]struct{ Description string }
		}
		Components struct {
			Schemas         map[string]any
			SecuritySchemes map[string]struct{ Type, In, Name string }
		}
	}
	text := g.get("/openapi.json")
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Info.Title == "" || d.Info.Version == "" || d.Info.Description == "" || d.Info.License.Name == "" || d.Info.License.Identifier == "" {
		t.Errorf("info: %+v", d.Info)
	}
	if len(d.Servers) != 1 || d.Servers[0].URL == "" {
		t.Errorf("servers: %+v", d.Servers)
	}
	used := map[string]bool{}
	for _, tag := range d.Tags {
		used[tag.Name] = false
		if tag.Description == "" {
			t.Errorf("the tag %s is not described", tag.Name)
		}
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			at := method + " " + path
			if op.Summary == "" || len(op.Description) <= len(op.Summary) || op.OperationID == "" || len(op.Tags) != 1 {
				t.Errorf(`%s: got %+v, want op.Summary != "" and len(op.Description) > len(op.Summary) and op.OperationID != "" and len(op.Tags) = 1`,
					at, op)
			}
			for _, tag := range op.Tags {
				if _, told := used[tag]; !told {
					t.Errorf("%s: the tag %q is not listed", at, tag)
				}
				used[tag] = true
			}
			classes := map[byte]bool{}
			for status, r := range op.Responses {
				classes[status[0]] = true
				if r.Description == "" {
					t.Errorf("%s: %s is not described", at, status)
				}
			}
			if !classes['2'] || !classes['4'] {
				t.Errorf("%s: it has no response of success, or none of failure", at)
			}
			var names []string
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s: the parameter %s is not described", at, p.Name)
				}
				if p.In == "path" {
					names = append(names, p.Name)
				}
			}
			if want := placesOf(path); !slices.Equal(names, want) {
				t.Errorf("%s: path parameters %v, want %v", at, names, want)
			}
		}
	}
	for tag, is := range used {
		if !is {
			t.Errorf("no operation has the tag %q", tag)
		}
	}
	named := map[string]bool{}
	g.eachSchema(decoded(t, string(text)), named)
	for name := range d.Components.Schemas {
		if !named["#/components/schemas/"+name] {
			t.Errorf("nothing uses the schema %s", name)
		}
		delete(named, "#/components/schemas/"+name)
	}
	for ref := range named {
		t.Errorf("nothing is at %s", ref)
	}
	// What is said of the log-in is what it does.
	resp := g.ask("GET", fixture.Must[string](t)(g.srv.LoginPath(context.Background())), "Authorization: ", "Accept: application/json")
	if c := resp.Cookies(); resp.StatusCode != http.StatusNoContent || len(c) != 1 || c[0].Name != d.Components.SecuritySchemes["cookie"].Name {
		t.Errorf("log-in: %s, %v, want %+v", resp.Status, c, d.Components.SecuritySchemes)
	}
}

// eachSchema collects the references of a document, and finds choices between anything and something.
func (g *bench) eachSchema(v any, refs map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			g.eachSchema(one, refs)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			refs[ref] = true
		}
		for _, key := range []string{"anyOf", "oneOf", "allOf"} {
			list, _ := v[key].([]any)
			for _, one := range list {
				if schema, is := one.(map[string]any); is && len(schema) == 0 {
					g.Errorf("%s has a schema that takes anything: %v", key, v)
				}
			}
		}
		for _, one := range v {
			g.eachSchema(one, refs)
		}
	}
}

// A scraper that names only the newer format gets the older one, as Prometheus' own libraries give it.
func TestMetricsForAnyScraper(t *testing.T) {
	g := newBench(t)
	for _, accept := range []string{"application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8", "text/plain", "*/*"} {
		resp := g.ask("GET", "/metrics", "Accept: "+accept)
		body := string(fixture.Must[[]byte](t)(io.ReadAll(resp.Body)))
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") || !strings.Contains(body, "# TYPE ") {
			t.Errorf(`%s: got %s %s, want resp.StatusCode = http.StatusOK and strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") and strings.Contains(body, "# TYPE ")`,
				accept, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
	if resp := g.ask("GET", "/metrics", "Accept: image/png"); resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("a picture: %s", resp.Status)
	}
}
