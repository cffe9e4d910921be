package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/redact"
)

// What pages consist of. An element or an attribute that is not here is somebody else's.
var (
	elements = strings.Fields("html head body meta title link script a abbr article aside b blockquote br button code dd del details div dl dt em " +
		"footer form h1 h2 h3 h4 h5 h6 header hr img input label li main mark nav ol option p pre section select span strong summary " +
		"svg rect g line text desc figure figcaption caption table tbody td th thead time tr ul datalist noscript output textarea")
	attributes = strings.Fields("action alt aria-current aria-hidden aria-label aria-labelledby aria-live autocomplete charset checked " +
		"class content data-current data-cursor data-device data-event data-first data-from data-hash data-hunk data-index data-kind data-label data-last data-n data-name " +
		"data-new data-old data-page data-path data-prompts " +
		"data-question data-restore data-source data-status data-task data-to data-total data-ts data-view datetime dir disabled download for height hidden " +
		"href id inputmode lang loading media method name open placeholder preserveaspectratio preserveAspectRatio rel role scope selected src " +
		"dy focusable rx tabindex text-anchor x1 x2 y1 y2 " +
		"start title type value viewbox viewBox width x y align data-act data-also data-folder data-form data-key data-list data-provider " +
		"data-query data-server data-setting list pattern required rows spellcheck")
	own     = regexp.MustCompile(`^(/|#|\?)`)
	outward = regexp.MustCompile(`^(https?://|mailto:)`)
	picture = regexp.MustCompile(`^(data:image/(png|jpeg|gif|webp);base64,|/v1/tasks/[^/]+/messages/\d+/images/\d+|/static/)`)
)

// inert reports each part of a page that could run, load or send something that is not ours.
func inert(t *testing.T, path, body string) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range page.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(elements, n.Data) {
			t.Errorf("%s: got the element %s", path, n.Data)
		}
		if n.Data == "script" && (attr(n, "src") != "/static/live.js" || text(n) != "") {
			t.Errorf("%s: got a script that is not ours: %v", path, n.Attr)
		}
		if n.Data == "link" && !strings.HasPrefix(attr(n, "href"), "/static/") {
			t.Errorf("%s: got a link element to %v", path, n.Attr)
		}
		if n.Data == "meta" && attr(n, "http-equiv") != "" {
			t.Errorf("%s: got %v", path, n.Attr)
		}
		for _, a := range n.Attr {
			switch {
			case !slices.Contains(attributes, a.Key):
				t.Errorf("%s: got the attribute %s of %s", path, a.Key, n.Data)
			case a.Key == "href" && own.MatchString(a.Val) && !strings.HasPrefix(a.Val, "//") && !strings.HasPrefix(a.Val, "/\\"):
			case a.Key == "href" && outward.MatchString(a.Val) && strings.Contains(attr(n, "rel"), "noopener"):
			case a.Key == "href", a.Key == "src" && n.Data != "script" && !picture.MatchString(a.Val), a.Key == "action" && !own.MatchString(a.Val):
				t.Errorf("%s: got the address %q in %s of %s", path, a.Val, a.Key, n.Data)
			}
		}
	}
	for _, c := range "\x00\x07\x1b\u202e\u2066\u200b\ufeff\u2028" {
		if strings.ContainsRune(body, c) {
			t.Errorf("%s: got the character U+%04X, want it named", path, c)
		}
	}
}

var hostile = []string{
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", `"><svg onload=alert(1)>`, "'><a href=javascript:alert(1)>x</a>",
	"</title></pre></details></main><script>1</script>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,<script>)",
	"![x](https://evil.example/p.png)", "<javascript:alert(1)>", "[x](//evil.example)", "[x](/tasks/t1)", "<https://a.example/\"onclick=1>",
	"```\"><script>\nx\n```", "```html\n<script>alert(1)</script>\n```", "<iframe src=//evil.example></iframe>", "<style>*{color:red}</style>",
	"<form action=//evil.example><button>go</button></form>", "<base href=//evil.example>", "<meta http-equiv=refresh content=0>",
	"\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "\u202ereversed\u202c \u2066isolate\u2069", "zero\u200bwidth\ufeff", "line\u2028end",
	"{{.}} {% x %} ${y} <%= 1 %>", "| <b> | x |\n|---|---|\n| <script> | y |", "a\x00b\x07c",
}

// hostileStorage holds the texts wherever a text can stand, and bytes that are none.
func hostileStorage(t *testing.T) string {
	t.Helper()
	dir := storage(t, nil)
	tasks := map[string][]map[string]any{}
	for i, s := range hostile {
		rows := said(s, s)
		row := func(kind, name string, more map[string]any) {
			r := map[string]any{"ts": 1760000000000 + len(rows)*1000, "type": kind, kind: name, "text": s}
			maps.Copy(r, more)
			rows = append(rows, r)
		}
		row("say", "user_feedback", map[string]any{"images": []string{s, "data:image/svg+xml;base64,PHN2Zz4=", "javascript:alert(1)"}})
		row("say", "reasoning", nil)
		row("ask", "command", nil)
		row("say", "command_output", nil)
		row("ask", "tool", map[string]any{"text": fmt.Sprintf(`{"tool":%q,"path":%q,"diff":%q,"content":%q}`, "appliedDiff", s, s, s)})
		row("ask", "tool", map[string]any{"text": fmt.Sprintf(`{"tool":%q,"path":%q}`, s, s)})
		row("ask", "followup", map[string]any{"text": fmt.Sprintf(`{"question":%q,"suggest":[{"answer":%q}]}`, s, s)})
		row("say", "completion_result", nil)
		row("say", "api_req_started", map[string]any{"text": fmt.Sprintf(`{"request":%q,"cost":1,"cancelReason":%q}`, s, s)})
		row("say", s, nil)
		row(s, s, nil)
		tasks[fmt.Sprintf("t%02d", i)] = rows
	}
	for id, rows := range tasks {
		one := storage(t, map[string][]map[string]any{id: rows})
		if err := os.Rename(filepath.Join(one, "tasks", id), filepath.Join(dir, id)); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(hostile, func(s string) bool { return s == rows[0]["text"] })
		item := fmt.Sprintf(`{"id":%q,"task":%q,"workspace":%q,"mode":%q,"apiConfigName":%q,"ts":1760000000000}`, id, hostile[i], hostile[i], hostile[i], hostile[i])
		message := fmt.Sprintf(`[{"role":"user","content":[{"type":"text","text":%q}]},{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":{%q:%q}}]}]`,
			hostile[i], hostile[i], hostile[i], hostile[i], hostile[i])
		for name, text := range map[string]string{"history_item.json": item, "api_conversation_history.json": message} {
			text = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, `\a`, `\u0007`), `\x`, `\u00`), `\v`, `\u000b`)
			if err := os.WriteFile(filepath.Join(dir, id, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	broken := filepath.Join(dir, "broken")
	if err := os.MkdirAll(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	odd := "[{\"ts\":1760000000000,\"type\":\"say\",\"say\":\"text\",\"text\":\"half \xff\xc3\x28 \\ud800 <script>\"},{\"ts\":1,\"type\":\"say\",\"say\":\"text\",\"text\":\"cut <b"
	if err := os.WriteFile(filepath.Join(broken, "ui_messages.json"), []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whatever stands in a task, in its title, its files, its tools or its messages, no page holds markup of it.
func TestHostileTasksRunNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes one request after another, and the race detector takes ten times as long")
	}
	t.Parallel()
	g := newBench(t, hostileStorage(t))
	tasks := document[api.Page[api.Summary]](g, "/v1/tasks?limit=100")
	if len(tasks.Items) != len(hostile)+1 {
		t.Fatalf("got %d tasks, want %d", len(tasks.Items), len(hostile)+1)
	}
	paths := []string{"/", "/?tree=true", "/?q=alert", "/?q=%3Cscript%3E", "/?workspace=%3Cscript%3E", "/?q=%E2%80%AE", "/usage?days=0", "/usage?days=%3Cb%3E",
		"/sources", "/trash", "/nothing%22%3E%3Cscript%3E", "/?since=%3Cscript%3E", "/?status=%3Cscript%3E", "/?cursor=%3Cscript%3E"}
	for _, one := range tasks.Items {
		path := "/tasks/" + one.Source + ":" + one.ID
		paths = append(paths, path, path+"?raw=1", path+"?view=effective", path+"?view=api", path+"?find=alert", path+"/changes",
			path+"/changes?by=turn", path+"/compare?with=t01", path+"/compare?with=%22%3E%3Cscript%3E",
			path+"?find=%22%3E%3Cscript%3E", path+"?view=%22%3E%3Cscript%3E", "/v1"+path+"/messages", "/v1"+path+"/history?view=raw")
	}
	for _, path := range paths {
		resp, body := g.ask(path)
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || resp.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: got %s %s, want a page\n%.400s", path, resp.Status, resp.Header.Get("Content-Type"), body)
		}
		inert(t, path, body)
	}
}

// The stored rows of a task are all on its pages, in their order and with their bytes, whatever kinds they have.
func checkRaw(t *testing.T, g *bench, task api.Summary) (rows int) {
	t.Helper()
	path := "/v1/tasks/" + task.Source + ":" + task.ID + "/messages?limit=1000"
	var stored []string
	for next := ""; ; {
		w := document[api.Window](g, path+next)
		var part []string
		for _, raw := range w.Items {
			part = append(part, string(raw))
		}
		stored = append(part, stored...)
		if w.Before == nil {
			break
		}
		next = fmt.Sprintf("&before=%d", *w.Before)
	}
	var shown []string
	for link := "/tasks/" + task.Source + ":" + task.ID + "?raw=1"; link != ""; {
		page := g.page(link)
		var part []string
		for _, li := range all(one(page, "messages"), tag("li")) {
			kind := all(li, tag("b"))
			if len(kind) != 1 || text(kind[0]) == "" {
				t.Errorf("%s: got a row without a kind", link)
			}
			part = append(part, text(all(li, tag("pre"))[0]))
		}
		shown = append(part, shown...)
		link = ""
		if older := one(page, "older"); older != nil {
			link = attr(older, "href")
		}
	}
	if len(shown) != len(stored) {
		t.Errorf("%s: got %d rows, want the %d stored ones", task.ID, len(shown), len(stored))
		return 0
	}
	for i := range stored {
		want := redact.Marked(stored[i])
		if got := shown[i]; got != want && !(len(got) >= 60<<10 && strings.HasPrefix(want, strings.TrimRight(got, "\ufffd"))) {
			t.Errorf("%s: row %d: got %.200q, want %.200q", task.ID, i+1, got, want)
		}
	}
	return len(stored)
}

func TestStoredRowsAreAllShown(t *testing.T) {
	t.Parallel()
	g := newBench(t, hostileStorage(t))
	rows := 0
	for _, one := range document[api.Page[api.Summary]](g, "/v1/tasks?limit=100").Items {
		rows += checkRaw(t, g, one)
	}
	if rows < len(hostile)*10 {
		t.Errorf("got %d rows, want those of %d tasks", rows, len(hostile))
	}
}

// The same over all tasks of the corpus; and none of their pages holds markup of theirs.
func TestCorpusRowsAreAllShown(t *testing.T) {
	t.Parallel()
	list := conformance.CorpusFolders(t, func(dir string) bool {
		for _, name := range []string{"ui_messages.json", "api_conversation_history.json"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
		return false
	})
	conformance.CorpusTally(t, list, func(t *testing.T, dir string) {
		g := newBench(t, filepath.Dir(dir))
		for _, one := range document[api.Page[api.Summary]](g, "/v1/tasks?limit=1000").Items {
			if filepath.Base(one.Path) != filepath.Base(dir) {
				continue
			}
			checkRaw(t, g, one)
			for _, view := range []string{"", "?view=effective", "?view=api"} {
				path := "/tasks/" + one.Source + ":" + one.ID + view
				_, body := g.ask(path)
				inert(t, path, body)
			}
		}
	})
}
