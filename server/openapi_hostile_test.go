package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// hostile asks without a network, and gives the answer, which must be a problem.
func (g *bench) hostile(method, path, media, body string) (status int, p api.Problem) {
	g.Helper()
	r := httptest.NewRequest(method, g.url+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+g.token)
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	w := httptest.NewRecorder()
	g.srv.Handler().ServeHTTP(w, r)
	resp := w.Result()
	text := fixture.Must[[]byte](g)(io.ReadAll(resp.Body))
	if resp.StatusCode < 400 || resp.StatusCode >= 500 {
		g.Errorf("%s %s %.80s: %s\n%.300s", method, path, body, resp.Status, text)
		return resp.StatusCode, p
	}
	err := json.Unmarshal(text, &p)
	if isOlder(path) && resp.StatusCode != http.StatusMethodNotAllowed { // these have a form of their own
		var p struct {
			Error, Message, Timestamp string
			Suggestions               []string
		}
		if err := json.Unmarshal(text, &p); err != nil || p.Error == "" || p.Message == "" || p.Timestamp == "" || p.Suggestions == nil {
			g.Errorf("%s %s %.80s: %v\n%.300s", method, path, body, err, text)
		}
		return resp.StatusCode, api.Problem{}
	}
	if err != nil || p.Status != resp.StatusCode || p.Code == "" || p.Title == "" || p.Suggestions == nil || resp.Header.Get("Content-Type") != "application/problem+json" {
		g.Errorf("%s %s %.80s: no problem: %v\n%.300s", method, path, body, err, text)
	}
	return resp.StatusCode, p
}

func isOlder(path string) bool {
	return strings.HasPrefix(path, "/chat") || strings.HasPrefix(path, "/execute") || strings.HasPrefix(path, "/api/")
}

// Whatever is described is asked in each wrong way: with parameters and members of other
// kinds, twice, and ones that are not there; with bodies that are none. Each is refused as a
// client's mistake that says where it is, and nothing of it is done.
func TestEveryRouteRefusesWhatIsWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine asks a thousand times")
	}
	g := newWorkingBench(t)
	before := g.everything()
	asked := 0
	ask := func(method, path, media, body string, want ...int) api.Problem {
		asked++
		status, p := g.hostile(method, path, media, body)
		if !slices.Contains(want, status) && status >= 400 && status < 500 {
			t.Errorf("%s %s %.60s: %d %s, want %v", method, path, body, status, p.Code, want)
		}
		return p
	}
	for path, methods := range g.description().Paths {
		bogus := strings.NewReplacer("{rid}", "nothing", "{qid}", "nothing", "{c}", "99", "{name}", "nothing", "{iid}", "nothing")
		real := bogus.Replace(strings.ReplaceAll(path, "{id}", g.id))
		if strings.Contains(real, "{") {
			real = real[:strings.Index(real, "{")] + "nothing" + real[strings.Index(real, "}")+1:]
		}
		for _, method := range []string{"PUT", "TRACE", "BREW"} {
			if _, is := methods[strings.ToLower(method)]; !is {
				ask(method, real, "", "", 405, 501, 400, 403)
			}
		}
		for method, op := range methods {
			method = strings.ToUpper(method)
			if method == http.MethodHead || path == "/login" {
				continue
			}
			media := jsonMedia
			if method == http.MethodPatch {
				media = "application/merge-patch+json"
			}
			body, sent := "", ""
			if len(op.RequestBody.Content) > 0 {
				body, sent = `{}`, media
			}
			if p := ask(method, real+"?no_such=1", sent, body, 422); !isOlder(path) && (len(p.Errors) == 0 || p.Errors[0].Parameter != "no_such") {
				t.Errorf("%s %s: it is not said where: %+v", method, real, p.Errors)
			}
			ask(method, real+"?a=%zz", sent, body, 400)
			for _, q := range op.Parameters {
				if q.In != "query" {
					continue
				}
				ask(method, real+"?"+q.Name+"=1&"+q.Name+"=2", sent, body, 422)
				kind, _ := q.Schema["type"].(string)
				_, listed := q.Schema["enum"]
				for _, value := range []string{"perhaps", "-1", "1e3", "99999999999999999999", "%00", "%ff"} {
					switch {
					case q.Name == "cursor", q.Name == "after" && kind == "string":
						ask(method, real+"?"+q.Name+"="+value, sent, body, 400, 404, 422)
					case kind == "integer", kind == "boolean" && value != "1", listed:
						ask(method, real+"?"+q.Name+"="+value, sent, body, 422)
					}
				}
			}
			if body == "" {
				continue
			}
			for _, wrong := range []string{`[`, `{"a":`, `{} {}`, "{\"a\":\"\xff\"}", `nul`, strings.Repeat("[", 20_000)} {
				ask(method, real, media, wrong, 400, 422)
			}
			for _, wrong := range []string{`[]`, `1`, `"{}"`, `{"no_such":1}`, `{"":1}`} {
				ask(method, real, media, wrong, 422)
			}
			ask(method, real, "text/plain", body, 415)
			ask(method, real, "application/x-www-form-urlencoded", "a=b", 415)
			for _, content := range op.RequestBody.Content {
				for _, name := range g.members(content.Schema) {
					ask(method, real, media, `{"`+name+`":{"no":{"such":[]}}}`, 422)
					ask(method, real, media, `{"`+name+`":[[1e999]]}`, 400, 422)
				}
				break
			}
		}
	}
	if after := g.everything(); after != before {
		t.Errorf("something was done:\n%s\n%s", before, after)
	}
	t.Logf("%d questions", asked)
}

// members are those that a body may have.
func (g *bench) members(schema map[string]any) (names []string) {
	d := g.description()
	if ref, ok := schema["$ref"].(string); ok {
		schema = d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	}
	list, _ := schema["properties"].(map[string]any)
	for name := range list {
		names = append(names, name)
	}
	return names
}

// everything is a text of what lies in the root, but for what a server keeps for itself.
func (g *bench) everything() string {
	g.Helper()
	var out strings.Builder
	err := filepath.WalkDir(g.store.Root(), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, string(filepath.Separator)+"server"+string(filepath.Separator)) {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out.WriteString(path + " " + info.ModTime().Format(time.RFC3339Nano) + "\n")
		}
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	return out.String()
}
