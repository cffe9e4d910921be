package web_test

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/web"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types roost"

// Every page, also one that says why there is no other, may load from its own server alone.
func TestEveryPageIsProtected(t *testing.T) {
	t.Parallel()
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": said("paint the fence", "done")}))
	for path, want := range map[string]int{
		"/": 200, "/?q=fence": 200, "/?since=soon": 200, "/?cursor=x": 400, "/tasks/t1": 200, "/tasks/t1?raw=1": 200,
		"/tasks/t1?view=effective": 200, "/tasks/t1?view=api": 200, "/tasks/t1?at=x": 422, "/tasks/t1?find=fence": 200,
		"/tasks/t1/changes": 200, "/usage": 200, "/trash": 200, "/sources": 200, "/tasks/nothing": 404, "/tasks/-": 400, "/nothing": 404,
		"/static/page.css": 200, "/static/roost.svg": 200, "/static/nothing.css": 404, "/login?key=used": 401,
	} {
		for _, token := range []string{"Authorization: Bearer " + g.token, "Authorization: "} {
			resp, body := g.ask(path, token)
			if token == "Authorization: " && !strings.HasPrefix(path, "/static/") {
				want = http.StatusUnauthorized
			}
			h := resp.Header
			if resp.StatusCode != want || h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
				t.Errorf("%s with %q: got %s %v, want %d and the protecting headers", path, token, resp.Status, h, want)
			}
			if want == http.StatusUnauthorized && (!strings.Contains(body, "roost open") || strings.Contains(body, "fence")) {
				t.Errorf("%s: got\n%s\nwant the page that says how to log in, and nothing of a task", path, body)
			}
			if strings.HasPrefix(h.Get("Content-Type"), "text/html") && (strings.Contains(body, " style=") || strings.Contains(body, "<style")) {
				t.Errorf("%s: got a style in the page, want classes alone", path)
			}
		}
	}
	for _, path := range []string{"/v1/nothing", "/v1/tasks/nothing"} {
		if resp, _ := g.ask(path); resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %s, want a problem as JSON", path, resp.Header.Get("Content-Type"))
		}
	}
}

// The page of an id that fits several tasks leads to each of them.
func TestAnAmbiguousIDLeadsToItsTasks(t *testing.T) {
	t.Parallel()
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": said("paint the fence")}),
		storage(t, map[string][]map[string]any{"t1": said("<b>mow</b> the lawn")}))
	resp, body := g.ask("/tasks/t1")
	if resp.StatusCode != http.StatusConflict {
		t.Fatalf("got %s, want 409\n%s", resp.Status, body)
	}
	var titles []string
	for _, a := range all(fixture.Must[*html.Node](t)(html.Parse(strings.NewReader(body))), tag("a")) {
		if to := attr(a, "href"); strings.HasPrefix(to, "/tasks/") {
			titles = append(titles, text(a))
			if title := text(one(g.page(to), "content")); !strings.Contains(title, text(a)) {
				t.Errorf("%s: got %q, want the task %q", to, title, text(a))
			}
		}
	}
	slices.Sort(titles)
	if want := []string{"<b>mow</b> the lawn", "paint the fence"}; !slices.Equal(titles, want) {
		t.Errorf("got links to %q, want %q", titles, want)
	}
}

// largeTask is a task with many messages in both histories that are each as large as a page shows; a page has no room for all.
func largeTask(t *testing.T) (dir string, messages int) {
	t.Helper()
	var texts []string
	var sent []map[string]any
	for i := range 25 {
		texts = append(texts, fmt.Sprintf("words %d. %s", i+1, strings.Repeat("paint the fence ", 2500)))
		sent = append(sent, map[string]any{"role": []string{"user", "assistant"}[i%2], "content": texts[i], "ts": 1760000000000 + i*1000})
	}
	dir = storage(t, map[string][]map[string]any{"t1": said(texts...)})
	fixture.WriteFile(t, filepath.Join(dir, "tasks", "t1", "api_conversation_history.json"), string(fixture.Must[[]byte](t)(json.Marshal(sent))))
	return dir, len(texts)
}

// The page that a link to a message leads to has the message, also behind large ones.
func TestALinkLeadsToItsMessage(t *testing.T) {
	t.Parallel()
	dir, messages := largeTask(t)
	g := newBench(t, dir)
	for n := 1; n <= messages; n++ {
		for view, id := range map[string]string{"": "ui-", "&view=api": "api-"} {
			path := "/tasks/t1?at=" + strconv.Itoa(n) + view
			if got := one(g.page(path), id+strconv.Itoa(n)); got == nil || !strings.Contains(text(got), fmt.Sprintf("words %d.", n)) {
				t.Errorf("%s: the page lacks the message", path)
			}
		}
	}
}

// The aligned view has each message of the next request, or leads to it.
func TestTheAlignedViewHasEachLargeMessage(t *testing.T) {
	t.Parallel()
	dir, _ := largeTask(t)
	g := newBench(t, dir)
	for i, pair := range all(one(g.page("/tasks/t1?view=aligned"), "messages"), func(n *html.Node) bool { return strings.HasPrefix(attr(n, "class"), "pair ") }) {
		for _, side := range all(pair, tag("section")) {
			shown, from := side, ""
			for _, a := range all(side, func(n *html.Node) bool { return strings.Contains(attr(n, "href"), "at=") }) {
				from = attr(a, "href")
				_, anchor, _ := strings.Cut(from, "#")
				if shown = one(g.page(from), anchor); shown == nil {
					t.Fatalf("%s: the page lacks the message", from)
				}
			}
			if want := fmt.Sprintf("words %d.", i+1); !strings.Contains(text(shown), want) {
				t.Errorf("%s of pair %d, link %q: got %.120q, want %q", attr(side, "class"), i+1, from, strings.Join(strings.Fields(text(shown)), " "), want)
			}
		}
	}
}

// A static file comes with its type, is sent once, and packed to who takes that.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	g := newBench(t)
	resp, plain := g.ask("/static/page.css")
	tag := resp.Header.Get("ETag")
	if resp.Header.Get("Content-Type") != "text/css; charset=utf-8" || tag == "" {
		t.Errorf("got %v, want a style sheet with an ETag", resp.Header)
	}
	if resp, _ := g.ask("/static/page.css", "If-None-Match: "+tag); resp.StatusCode != http.StatusNotModified {
		t.Errorf("got %s, want 304", resp.Status)
	}
	for _, path := range []string{"/static/page.css", "/"} {
		resp, packed := g.ask(path, "Accept-Encoding: br, gzip")
		z := fixture.Must[*gzip.Reader](t)(gzip.NewReader(strings.NewReader(packed)))
		body := string(fixture.Must[[]byte](t)(io.ReadAll(z)))
		if resp.Header.Get("Content-Encoding") != "gzip" || len(packed) >= len(body) || path != "/" && body != plain {
			t.Errorf("%s: got %d bytes packed as %q of %d, want fewer, of the same file", path, len(packed),
				resp.Header.Get("Content-Encoding"), len(body))
		}
	}
	if resp, _ := g.ask("/", "Accept-Encoding: gzip;q=0"); resp.Header.Get("Content-Encoding") != "" {
		t.Errorf("got a packed page, want a plain one for who refuses gzip")
	}
}

// numbers are the messages of a page, as they are shown.
func numbers(t *testing.T, page *html.Node) (out []int) {
	t.Helper()
	for _, li := range all(one(page, "messages"), tag("li")) {
		if n := attr(li, "data-index"); n != "" {
			out = append(out, fixture.Must[int](t)(strconv.Atoi(n)))
		}
	}
	return out
}

// Pages of a task hold each message once, whichever way they are turned, and say which ones they hold.
func TestPagesOfATask(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 203 {
		texts = append(texts, fmt.Sprintf("words %d", i+1))
	}
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": said(texts...)}))
	for _, view := range []string{"", "?raw=1"} {
		for _, way := range []string{"older", "newer"} {
			path := "/tasks/t1" + view
			if way == "newer" {
				path = "/tasks/t1?at=1" + strings.Replace(view, "?", "&", 1)
			}
			var got []int
			for path != "" {
				page := g.page(path)
				shown := numbers(t, page)
				main := one(page, "task")
				if attr(main, "data-first") != strconv.Itoa(shown[0]) || attr(main, "data-last") != strconv.Itoa(shown[len(shown)-1]) ||
					attr(main, "data-total") != "203" || attr(main, "data-cursor") == "" {
					t.Errorf("%s: got %v for messages %d to %d of 203", path, main.Attr, shown[0], shown[len(shown)-1])
				}
				if way == "older" {
					got = append(slices.Clone(shown), got...)
				} else {
					got = append(got, shown...)
				}
				path = ""
				if link := one(page, way); link != nil {
					path = attr(link, "href")
				}
			}
			for i := range max(len(got), 203) {
				if i >= len(got) || got[i] != i+1 {
					t.Fatalf("%s %s: got %v, want 1 to 203", view, way, got)
				}
			}
		}
	}
	page := g.page("/tasks/t1?at=100#ui-100")
	if li := one(page, "ui-100"); li == nil || !strings.Contains(text(li), "words 100") {
		t.Error("got a page without message 100, want it there")
	}
	for _, address := range []string{"?at=900#ui-900", "?after=900"} { // links to what was taken back
		if page = g.page("/tasks/t1" + address); one(page, "ui-203") == nil {
			t.Errorf("%s: got a page without the newest message where the one that the address names is gone, want it there", address)
		}
	}
}

// The fragments of the API are the elements of the page, and lead to earlier and later ones.
func TestFragmentsAreThePagesElements(t *testing.T) {
	t.Parallel()
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": said("do it", "**one** <b>two</b>", "three")}))
	resp, body := g.ask("/v1/tasks/t1/messages?limit=2", "Accept: text/html")
	if resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || resp.Header.Get("Link") != `</v1/tasks/t1/messages?before=2&limit=2>; rel="prev"` {
		t.Errorf("got %v, want HTML and a link to what is before", resp.Header)
	}
	if resp, _ := g.ask("/v1/tasks/t1/messages?after=0&limit=2", "Accept: text/html"); resp.Header.Get("Link") != `</v1/tasks/t1/messages?after=2&limit=2>; rel="next"` {
		t.Errorf("got %v, want a link to what is after", resp.Header)
	}
	_, whole := g.ask("/tasks/t1")
	for part := range strings.SplitSeq(strings.TrimSpace(body), "<li ") {
		if !strings.Contains(whole, strings.TrimSpace(part)) {
			t.Errorf("the page lacks\n%s", part)
		}
	}
	if !strings.HasPrefix(body, `<li id="ui-2" data-index="2"`) || !strings.Contains(body, "<strong>one</strong> &lt;b&gt;two&lt;/b&gt;") {
		t.Errorf("got\n%s", body)
	}
	if resp, _ := g.ask("/v1/tasks/t1/messages", "Accept: text/html, application/json"); resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s, want JSON for who takes it", resp.Header.Get("Content-Type"))
	}
}

// The history pages forth and back, and keeps what narrows it.
func TestPagesOfTheHistory(t *testing.T) {
	t.Parallel()
	tasks := map[string][]map[string]any{}
	for i := range 120 {
		tasks[fmt.Sprintf("t%03d", i)] = said(fmt.Sprintf("task %d", i), "needle")
	}
	g := newBench(t, storage(t, tasks))
	for _, a := range all(g.page("/"), tag("a")) {
		if strings.TrimSpace(text(a)) == "" {
			t.Errorf("got a link to %s without words", attr(a, "href"))
		}
	}
	names := func(page *html.Node) (out []string) {
		for _, row := range all(page, func(n *html.Node) bool { return attr(n, "role") == "row" && attr(n, "data-task") != "" }) {
			out = append(out, attr(row, "data-task"))
		}
		return out
	}
	way := func(page *html.Node, rel string) string {
		for _, a := range all(page, func(n *html.Node) bool { return attr(n, "rel") == rel && n.Data == "a" }) {
			return attr(a, "href")
		}
		return ""
	}
	var pages [][]string
	path := "/?sort=oldest"
	var last *html.Node
	for path != "" {
		last = g.page(path)
		pages = append(pages, names(last))
		path = way(last, "next")
		if path != "" && !strings.Contains(path, "sort=oldest") {
			t.Errorf("got the next page %s, want it in the same order", path)
		}
	}
	if len(pages) != 3 || len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(pages...))))) != 120 {
		t.Errorf("got pages of %v, want each of 120 tasks once on 3 pages", pages)
	}
	for i := len(pages) - 2; i >= 0; i-- {
		last = g.page(way(last, "prev"))
		if !slices.Equal(names(last), pages[i]) {
			t.Errorf("back on page %d: got %v, want %v", i+1, names(last), pages[i])
		}
	}
	if way(last, "prev") != "" {
		t.Error("got a page before the first one")
	}
	found := g.page("/?q=needle")
	marks := all(found, tag("mark"))
	if len(marks) == 0 || text(marks[0]) != "needle" {
		t.Errorf("got %d marks, want the hits marked", len(marks))
	}
	hit := all(found, func(n *html.Node) bool { return n.Data == "a" && strings.Contains(attr(n, "href"), "at=2#ui-2") })
	if len(hit) == 0 {
		t.Fatal("got no link to the message with the word")
	}
	to := fixture.Must[*url.URL](t)(url.Parse(attr(hit[0], "href")))
	if li := one(g.page(to.RequestURI()), to.Fragment); li == nil || !strings.Contains(text(li), "needle") {
		t.Errorf("%s: got no message with the word there", to)
	}
	for path, want := range map[string]string{
		"/?since=soon": "want a day such as", "/?min_cost=much": "US dollars", "/?status=odd": "no task has the status",
		"/?q=nowhere+to+be+found": "Nothing fits", "/?workspace=/none": "Nothing fits", "/?cursor=odd": "cursor",
	} {
		if _, body := g.ask(path); !strings.Contains(body, want) {
			t.Errorf("%s: got\n%s\nwant %q", path, body, want)
		}
	}
	for query, want := range map[string]string{"": "newest oldest cost tokens", "?workspace=/w&sort=cost": "newest oldest cost tokens",
		"?q=needle": "relevance newest", "?tool=execute_command&sort=cost": "relevance newest", "?file=a.txt": "relevance newest"} {
		for _, list := range all(g.page("/"+query), func(n *html.Node) bool { return attr(n, "name") == "sort" }) {
			var orders []string
			for _, o := range all(list, tag("option")) {
				orders = append(orders, text(o))
			}
			if got := strings.Join(orders, " "); got != want {
				t.Errorf("/%s: got the orders %s, want %s", query, got, want)
			}
		}
	}
	for _, status := range api.Statuses {
		if resp, body := g.ask("/?status=" + status); resp.StatusCode != http.StatusOK || !strings.Contains(body, "Nothing fits") && !strings.Contains(body, "/tasks/") {
			t.Errorf("/?status=%s: got %s\n%s\nwant a list", status, resp.Status, body)
		}
	}
}

// A picture of more than 8 KB is loaded by its own address, with the type that its bytes have, and runs nothing when it is
// opened by itself.
func TestPicturesHaveAddresses(t *testing.T) {
	t.Parallel()
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 9000)
	address := func(s string) string { return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(s)) }
	rows := said("look", "more")
	rows[1]["images"] = []string{address("\x89PNG\r\n\x1a\nsmall"), address(picture), address("<svg onload='alert(1)'>" + strings.Repeat(" ", 9000))}
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": rows}))
	var sources []string
	for _, img := range all(g.page("/tasks/t1"), tag("img")) {
		sources = append(sources, attr(img, "src"))
	}
	if len(sources) != 3 || !strings.HasPrefix(sources[0], "data:image/png;base64,") || !strings.HasSuffix(sources[1], "/messages/2/images/1?ts=1760000001000") {
		t.Fatalf("got pictures from %.80v, want a small one in the page and others by their addresses", sources)
	}
	resp, body := g.ask(sources[1], "Accept: image/avif,image/webp,*/*;q=0.8")
	if again, _ := g.ask(sources[1], "If-None-Match: "+resp.Header.Get("ETag")); again.StatusCode != http.StatusNotModified || resp.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("got %s for the same picture, %v, want 304, and that a browser asks each time", again.Status, resp.Header)
	}
	if body != picture || resp.Header.Get("Content-Type") != "image/png" || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("got %s %v and %d bytes, want the picture", resp.Status, resp.Header, len(body))
	}
	for _, path := range []string{sources[2], "/v1/tasks/t1/messages/2/images/7", "/v1/tasks/t1/messages/9/images/0", "/v1/tasks/t1/messages/x/images/0"} {
		if resp, body := g.ask(path, "Accept: image/*,*/*"); resp.StatusCode != http.StatusNotFound || strings.Contains(body, "<svg") {
			t.Errorf("%s: got %s\n%s\nwant 404", path, resp.Status, body)
		}
	}
}

// What waits for a person stands on top of the history and in its task, and what a run changed is reviewed.
func TestARunOnThePages(t *testing.T) {
	t.Parallel()
	g := newBench(t)
	id := g.run(`
- text: I write it.
  tools: [{name: write_to_file, input: {path: "a.txt", content: "one <b>\n"}}]
- tools: [{name: ask_followup_question, input: {question: "Which <i>colour</i>?", follow_up: [{text: "red & blue", mode: null}]}}]
`, "paint the fence")
	for _, path := range []string{"/", "/tasks/" + id} {
		asked := all(g.page(path), func(n *html.Node) bool { return n.Data == "article" && attr(n, "data-question") != "" })
		if len(asked) != 1 || attr(asked[0], "data-kind") != "followup" || !strings.Contains(text(asked[0]), "Which <i>colour</i>?") ||
			!strings.Contains(text(asked[0]), "red & blue") {
			t.Errorf("%s: got %d questions, want the open one", path, len(asked))
		}
	}
	review := g.page("/tasks/" + id + "/changes")
	added := all(review, func(n *html.Node) bool {
		return n.Data == "div" && attr(n, "class") == "added" && attr(n, "data-new") == "1"
	})
	if len(added) != 1 || text(added[0]) != "+one <b>" {
		t.Errorf("got %d added lines, want the one of a.txt\n%s", len(added), text(review))
	}
	if steps := all(review, func(n *html.Node) bool { return n.Data == "a" && strings.Contains(attr(n, "href"), "changes?from=") }); len(steps) == 0 {
		t.Error("got no step, want the checkpoints")
	}
	if got := g.page("/usage?days=0"); len(all(got, tag("td"))) == 0 || len(all(got, tag("rect"))) > 0 {
		t.Errorf("got %s, want the run in the table, and no bars for its 0 tokens", text(got))
	}
	if calls := g.page("/?tool=write_to_file"); len(all(calls, func(n *html.Node) bool { return n.Data == "a" && strings.Contains(attr(n, "href"), "?at=") })) == 0 {
		t.Error("got no task that called the tool")
	}
	if none := g.page("/?tool=browser_action"); !strings.Contains(text(none), "Nothing fits") {
		t.Error("got tasks that called a tool that none called")
	}
	prompts := document[api.Prompts](g, "/v1/tasks/"+id+"/prompts")
	if prompts.Total != 1 || len(prompts.Items) != 1 || prompts.Items[0].Text != "paint the fence" {
		t.Errorf("got the prompts %+v, want the one", prompts)
	}
}

// A page of large texts stays small, and names what it leaves out.
func TestLargeTextsAreCut(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes one request after another, and the race detector takes ten times as long")
	}
	t.Parallel()
	var rows []map[string]any
	for range 30 {
		rows = append(rows, said(strings.Repeat("word ", 200_000))...)
	}
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": rows}))
	for _, path := range []string{"/tasks/t1", "/tasks/t1?raw=1"} {
		_, body := g.ask(path)
		if len(body) > 4<<20 || !strings.Contains(body, "left out here") || !strings.Contains(body, `id="older"`) {
			t.Errorf("%s: got %d bytes, want a cut page that says so", path, len(body))
		}
	}
}

// A folder or a tag whose name has characters that pages name is a filter as every other one: by its link in the list, and
// by the form as it is shown then. The form offers each tool once.
func TestFilterWithNamedCharacters(t *testing.T) {
	dir := storage(t, map[string][]map[string]any{"t1": said("one")})
	item := "{\"id\":\"t1\",\"task\":\"one\",\"workspace\":\"/w/\u200fgate\",\"ts\":1760000000000}"
	fixture.WriteFile(t, filepath.Join(dir, "tasks", "t1", "history_item.json"), item)
	g := newBench(t, dir)
	listed := g.page("/")
	link := attr(all(listed, func(n *html.Node) bool { return n.Data == "a" && text(n) == "⟦U+200F⟧gate" })[0], "href")
	for _, query := range []string{link, "/?workspace=" + url.QueryEscape("/w/⟦U+200F⟧gate"), "/?q=one&workspace=" + url.QueryEscape("/w/⟦U+200F⟧gate")} {
		page := g.page(query)
		field := all(page, func(n *html.Node) bool { return n.Data == "input" && attr(n, "name") == "workspace" })[0]
		if rows := all(page, func(n *html.Node) bool { return strings.HasSuffix(attr(n, "data-task"), "t1") }); len(rows) != 1 || attr(field, "value") != "/w/⟦U+200F⟧gate" {
			t.Errorf("%s: got %d tasks and the field %q, want the task and the named character", query, len(rows), attr(field, "value"))
		}
	}
	tools := all(all(listed, func(n *html.Node) bool { return attr(n, "name") == "source" })[0], tag("option"))
	for i, one := range tools {
		if slices.ContainsFunc(tools[:i], func(n *html.Node) bool { return text(n) == text(one) }) {
			t.Errorf("the tool %s is offered twice", text(one))
		}
	}
}

// Pages offer what their reader may do.
func TestPagesOfferWhatTheReaderMay(t *testing.T) {
	t.Parallel()
	g := newBench(t, storage(t, map[string][]map[string]any{"t1": said("paint the fence", "done")}))
	w := web.New(web.Options{Reader: g.all, Devices: func(context.Context) ([]api.Device, error) { return nil, nil }})
	for _, c := range []struct {
		scopes       []accounts.Scope
		path         string
		want, refuse string
	}{
		{[]accounts.Scope{accounts.Read}, "/trash", ">Trash</a>", ">Devices</a>"},
		{[]accounts.Scope{accounts.Read, accounts.Admin}, "/trash", ">Devices</a>", "class=\"notice refused\""},
		{[]accounts.Scope{accounts.Read, accounts.Admin}, "/tasks/t1", "You cannot change this task: the token lacks the scope act.", "Not Found"},
		{[]accounts.Scope{accounts.Read, accounts.Act, accounts.Admin}, "/tasks/t1", "paint the fence", "class=\"notice refused\""},
	} {
		got := fetch(service.As(t.Context(), accounts.Caller{Account: "ann", Scopes: c.scopes}, accounts.Read), w, c.path)
		if body := got.Body.String(); got.Code != http.StatusOK || !strings.Contains(body, c.want) || strings.Contains(body, c.refuse) {
			t.Errorf("%s for %v: got %d\n%s\nwant %q, and not %q", c.path, c.scopes, got.Code, body, c.want, c.refuse)
		}
	}
}
