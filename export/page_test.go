package export

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/roofmt"
)

// foreignTask is a task of Roo's with a file that was read, a change that was refused, and
// a call by tags.
var foreignTask = folder(
	`[{"ts":1000000,"type":"say","say":"text","text":"do it"},{"ts":1000020,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a.go\"}"},`+
		`{"ts":1001030,"type":"ask","ask":"tool","text":"{\"tool\":\"appliedDiff\",\"path\":\"a.go\",\"diff\":\"<<<<<<< SEARCH\\nx <b>\\n=======\\ny\\n>>>>>>> REPLACE\"}"},`+
		`{"ts":1002000,"type":"say","say":"text","text":""}]`,
	`[{"role":"user","content":"<task>\ndo it\n</task>\n<environment_details>\nall of it\n</environment_details>","ts":1000005},`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a.go"}}],"ts":1000021},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"`+secret+` <script>of a.go"}],"ts":1001000},`+
		`{"role":"assistant","content":"<apply_diff>\n<path>a.go</path>\n<diff>\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n</diff>\n</apply_diff>","ts":1001031},`+
		`{"role":"user","content":[{"type":"text","text":"[apply_diff for 'a.go'] Result:"},{"type":"text","text":"The user denied this operation."}],"ts":1001990}]`)

// What came back of a call stands below the row that asked for it, as it does on a
// terminal, and is masked and made harmless like all else.
func TestPageShowsResultsBelowTheirRows(t *testing.T) {
	s := newStorage(t, foreignTask)
	before := tree(t, s.dir)
	var out bytes.Buffer
	_, err := HTML(t.Context(), &out, s.open("t1"), Options{Mask: redact.New()})
	fixture.NoError(t, err)
	page := out.String()
	inert(t, page)
	main := page[strings.Index(page, "<main>"):strings.Index(page, "</main>")]
	for _, want := range []string{
		`id="ui-2"`, `<b>tool read</b> <code>a.go</code>`, `<div class="output"><header><b>output</b> </header>`, masked + " &lt;script&gt;of a.go",
		`<b>tool edit</b> <code>a.go</code>`, `<span class="removed">-x &lt;b&gt;`, `<span class="added">+y`, `<b>denied</b>`, "The user denied this operation.", "<b>model (no words)</b>",
	} {
		if !strings.Contains(main, want) {
			t.Errorf("the conversation lacks %s:\n%s", want, main)
		}
	}
	if i, j := strings.Index(main, `id="ui-2"`), strings.Index(main, "of a.go"); i < 0 || j < i || j > strings.Index(main, `id="ui-3"`) {
		t.Error("the result does not stand in the section of its row")
	}
	api := page[strings.Index(page, `<details class="api">`):]
	for _, want := range []string{"<p>do it</p>", "<b>· environment details</b>", "<details><summary>1 lines</summary><pre>all of it</pre>", "<b>tool apply_diff</b> <code>a.go</code>", `id="api-5"`} {
		if !strings.Contains(api, want) {
			t.Errorf("what the model saw lacks %s:\n%s", want, api)
		}
	}
	if strings.Contains(api, "&lt;apply_diff&gt;") || strings.Contains(page, keyBody) {
		t.Error("a raw tag or a secret is on the page")
	}
	for name, was := range before {
		if now := tree(t, s.dir)[name]; now != was {
			t.Errorf("%s changed", name)
		}
	}
}

// Every number is an anchor, once, and nothing links to a place that is not there.
func TestAnchorsOfAPage(t *testing.T) {
	page := pageOf(t, "one", "two", "three")
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			t.Errorf("%s is there twice", m[1])
		}
		seen[m[1]] = true
	}
	for n := 1; n <= 3; n++ {
		if !seen[fmt.Sprint("ui-", n)] || !seen[fmt.Sprint("api-", n)] {
			t.Errorf("message %d has no place: %v", n, seen)
		}
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !seen[m[1]] {
			t.Errorf("a link to #%s leads nowhere", m[1])
		}
	}
}

// The page is made for a small screen and for both kinds of light: its own style says so.
func TestPageFitsAPhone(t *testing.T) {
	page := pageOf(t, "x")
	head := page[:strings.Index(page, "<body>")]
	for _, want := range []string{
		`<meta name="viewport" content="width=device-width, initial-scale=1">`, "color-scheme: light dark", "@media (prefers-color-scheme: dark)", "overflow-wrap: anywhere",
		"white-space: pre-wrap", "img { max-width: 100%", `<meta name="referrer" content="no-referrer">`, `lang="en"`,
	} {
		if !strings.Contains(head, want) {
			t.Errorf("the head lacks %s", want)
		}
	}
	if m := regexp.MustCompile(`(?:min-)?width: *\d{3,}px`).FindString(head); m != "" {
		t.Errorf("something is wider than a phone: %s", m)
	}
}

// Nothing on any page is fetched: the only addresses are links that a person follows, and
// pictures that are in the page.
func TestPagesFetchNothing(t *testing.T) {
	var index bytes.Buffer
	_, err := Index(&index, []Page{{File: "a.html", Task: api.Summary{ID: "a", Title: `"><img src=https://evil.example/x>`}}}, Options{})
	fixture.NoError(t, err)
	texts := append([]string{"![p](https://evil.example/p.png)", "<link rel=stylesheet href=https://evil.example/s.css>", "<img src=//evil.example>"}, hostile...)
	for name, page := range map[string]string{"a task": pageOf(t, texts...), "the index": index.String(), "pictures": picturePage(t, "https://evil.example/p.png", address("image/png", pngBytes))} {
		for _, m := range regexp.MustCompile(`<([a-zA-Z]+)[^<>]*?\s(src|href|srcset|action|data|poster|background)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			link := strings.EqualFold(m[1], "a") && m[2] == "href"
			if !link && !strings.HasPrefix(m[3], "data:image/") {
				t.Errorf("%s: %s fetches %q", name, m[1], m[3])
			}
		}
		if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"`) {
			t.Errorf("%s has another policy", name)
		}
	}
}

// Bytes that are no UTF-8 and templates of other programs are text like any other.
func TestPagesOfOddText(t *testing.T) {
	files := folder("", `[]`)
	files[roofmt.UIName] = `[{"ts":1,"type":"say","say":"text","text":"half ` + "\xff\xc3\x28" + ` \ud800 {{.}} {% x %} ${y} #{z} <%= 1 %>"},` +
		`{"ts":2,"type":"ask","ask":"command","text":"cat <<E\n<b>\nE"},{"ts":9e15,"type":"say","say":"` + "\xff" + `\"><b>","text":"{\"a\":\"<i>\"}"}]`
	var out bytes.Buffer
	_, err := HTML(t.Context(), &out, newStorage(t, files).open("t1"), Options{Mask: redact.New()})
	fixture.NoError(t, err)
	inert(t, out.String())
	for _, want := range []string{"{{.}} {% x %} ${y} #{z} &lt;%= 1 %&gt;", "<b>tool $</b> <code>cat &lt;&lt;E</code> <pre>&lt;b&gt;\nE</pre>", "a: &lt;i&gt;"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if !strings.Contains(out.String(), "half ") || strings.Contains(out.String(), "\xff") {
		t.Error("bytes that are no text are on the page")
	}
}

// What a task says of its own size does not matter: a page can be written of one whose
// folder is gone in the middle, and says what it lacks.
func TestPageOfATaskThatGoesAway(t *testing.T) {
	s := newStorage(t, foreignTask)
	v := s.open("t1")
	fixture.NoError(t, os.Truncate(filepath.Join(s.task, roofmt.APIName), 10))
	var out bytes.Buffer
	r, err := HTML(t.Context(), &out, v, Options{})
	fixture.NoError(t, err)
	inert(t, out.String())
	if !strings.Contains(out.String(), "</html>") || !strings.Contains(out.String(), "do it") {
		t.Error("the page is not whole")
	}
	if len(r.Unread) == 0 && !strings.Contains(out.String(), "of a.go") {
		t.Error("it lacks messages and does not say so")
	}
}

// Above a page stands what is known of its task, and nothing of what is not.
func TestFactsAboveAPage(t *testing.T) {
	facts := func(sum api.Summary) string {
		var out bytes.Buffer
		p := newPage(&out, redact.New())
		p.facts(sum)
		fixture.NoError(t, p.out.Flush())
		return out.String()
	}
	cost := money.USD(1_500_000)
	for want, sum := range map[string]api.Summary{
		"<p class=\"facts\">t1 · roo · idle · 0 tokens in, 0 out</p>\n": {ID: "t1", Source: "roo", Status: "idle"},
		"<p class=\"facts\">t1 · roo · completed · 2026-04-14 20:53:20 UTC · anthropic/big · $1.50 · 1.2k tokens in, 3 out · /w/&lt;b&gt;</p>\n": {
			ID: "t1", Source: "roo", Status: "completed", TS: 1776200000000, Provider: "anthropic", Model: "big", Workspace: "/w/<b>",
			Usage: api.Usage{Cost: &cost, TokensIn: 1234, TokensOut: 3},
		},
		"<p class=\"facts\">t1 · roo · idle · big · 0 tokens in, 0 out</p>\n": {ID: "t1", Source: "roo", Status: "idle", Model: "big"},
		"<p class=\"facts\">t1 · roo · idle · 0 tokens in, 0 out</p>\n<p class=\"bad\">damaged: ui.json: cut at " + masked + "; recovered: 3 messages</p>\n": {
			ID: "t1", Source: "roo", Status: "idle", Damaged: []api.Damage{{File: "ui.json", Problem: "cut at " + secret, Recovered: "3 messages"}},
		},
	} {
		if got := facts(sum); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}

// The head of a page lists what happened, and links to the person's prompts; rows that only serve looking for a fault are
// marked, and the page's style hides them until the reader opens a fold. There is no script, and no markup of a text.
func TestHeadOfAPage(t *testing.T) {
	const day = 1776200000000 // 2026-04-14 20:53:20 UTC
	row := func(after int64, kind, text string) string {
		typ, name, _ := strings.Cut(kind, ":")
		return fmt.Sprintf(`{"ts":%d,"type":%q,%q:%q,"text":%q}`, day+after*1000, typ, typ, name, text)
	}
	files := folder("["+strings.Join([]string{
		row(0, "say:text", "paint the <b>fence</b>"), row(1, "say:api_req_started", `{"cost":1.25,"tokensIn":1500,"tokensOut":20}`),
		row(60, "ask:command", "make <paint>\nsecond line"), row(61, "say:checkpoint_saved", "abc"), row(4000, "say:user_feedback", "now "+secret),
		row(90000, "say:completion_result", "done"),
	}, ",")+"]", "[]")
	var out bytes.Buffer
	r, err := HTML(t.Context(), &out, newStorage(t, files).open("t1"), Options{Mask: redact.New()})
	fixture.NoError(t, err)
	page := out.String()
	inert(t, page)
	for _, want := range []string{
		"<th>Time</th><td>2026-04-14 20:53 to 2026-04-15 21:53 UTC (1 day 1 h)</td>", `<th>Commands</th><td><ul><li><a href="#ui-3"><code>make &lt;paint&gt;</code></a></li></ul></td>`,
		"<th>Cost</th><td>$1.25, 1.5k tokens in, 20 out</td>", "<b>2 prompts</b>", `<li><a href="#ui-1">paint the &lt;b&gt;fence&lt;/b&gt;</a></li>`,
		`<li><a href="#ui-5">now ` + masked, `<section class="request noise" id="ui-2">`, `<section class="note noise" id="ui-4">`, `<p class="day">2026-04-14</p>`, `<p class="day">2026-04-15</p>`,
		"22:00</time>", "details.rows:not([open]) ~ main section.noise", `<details class="rows"><summary>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("got a page without %s:\n%s", want, page[strings.Index(page, "<body>"):])
		}
	}
	if r.Masked != 1 || strings.Contains(page, keyBody) {
		t.Errorf("got %d masked, want the one secret counted once, and not on the page", r.Masked)
	}
}

func TestDollars(t *testing.T) {
	for usd, want := range map[money.USD]string{0: "$0.00", 1: "$0.000001", 9_999: "$0.009999", 10_000: "$0.01", 14_999: "$0.01", 15_000: "$0.02", 1_999_999: "$2.00", 75_047_291: "$75.05"} {
		if got := dollars(usd); got != want {
			t.Errorf("%d: got %s, want %s", usd, got, want)
		}
	}
}
