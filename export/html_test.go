package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
)

// pageOf is the page of a task whose rows and messages say the given words.
func pageOf(t *testing.T, texts ...string) string {
	t.Helper()
	var ui, api []map[string]any
	for i, text := range texts {
		ui = append(ui, map[string]any{"ts": i, "type": "say", "say": "text", "text": text})
		api = append(api, map[string]any{"role": "assistant", "ts": i, "content": []any{
			map[string]any{"type": "text", "text": text}, map[string]any{"type": "thinking", "thinking": text},
			map[string]any{"type": "tool_use", "id": text, "name": text, "input": map[string]any{text: text}},
			map[string]any{"type": "tool_result", "tool_use_id": text, "content": text}, map[string]any{"type": text},
		}})
	}
	u, err := json.Marshal(ui)
	fixture.NoError(t, err)
	a, err := json.Marshal(api)
	fixture.NoError(t, err)
	var out bytes.Buffer
	_, err = HTML(t.Context(), &out, newStorage(t, folder(string(u), string(a))).open("t1"), Options{Mask: redact.New()})
	fixture.NoError(t, err)
	return out.String()
}

var (
	tags     = regexp.MustCompile(`<(/?)([a-zA-Z!][a-zA-Z0-9]*)([^<>]*)>`)
	allowed  = strings.Fields("html head meta title style body h1 h2 h3 h4 h5 h6 p main section header a time div img b pre code span details summary ul ol li strong em del table thead tbody tr td th br hr blockquote input")
	harmless = regexp.MustCompile(`^(\s(class|id|lang|charset|name|content|http-equiv|start|rel|align|style|disabled|checked|type|alt|datetime)(="[^"<>]*")?|\shref="(#|https?://|mailto:)[^"<>]*"|\ssrc="data:image/(png|jpeg|gif|webp);base64,([A-Za-z0-9+/=]|&#43;)*")*\s*/?$`)
)

// inert fails for a page in which anything but our own tags stands.
func inert(t interface{ Errorf(string, ...any) }, page string) {
	body := page[strings.Index(page, "<body>"):]
	for _, m := range tags.FindAllStringSubmatch(body, -1) {
		if !slices.Contains(allowed, strings.ToLower(m[2])) || !harmless.MatchString(m[3]) {
			t.Errorf("the page holds %q", m[0])
		}
	}
	if strings.Count(body, "<") != len(tags.FindAllString(body, -1)) {
		t.Errorf("a < stands alone")
	}
	if strings.Count(page, "<style>") != 1 || strings.Count(page, "</style>") != 1 {
		t.Errorf("the style was left or entered")
	}
}

var hostile = []string{
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</style></title></pre><script>1</script>", `"><svg onload=alert(1)>`,
	"[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,<script>)", "[x](vbscript:x)", "![x](https://evil.example/p.png)", "![a](x \"t\" onerror=1)",
	"<javascript:alert(1)>", "<https://a.example/\"onclick=1>", "[x](https://a.example/\"onclick=alert(1))", "[x](<https://a.example/ onmouseover=1>)",
	"<div>\n\n<iframe src=//evil.example>\n\n</div>", "<!-- <b> -->", "<![CDATA[ <b> ]]>", "<?php <b> ?>", "a <b onclick=x>bold</b>",
	"```\"><script>\nx\n```", "```html\n<script>alert(1)</script>\n```", "```js onload=x\n</code></pre><script>\n```", "`<b>`", "    <b>indented</b>",
	"| <b> | x |\n|---|---|\n| <script> | y |", "- [ ] <b>", "&lt;script&gt;", "&#60;script&#62;", "\x00<\x00script>", "[r]\n\n[r]: javascript:1 '<b>'", "# <h1 onclick=1>", "<details open ontoggle=alert(1)>",
	"\u202e\x1b[31m<red>", "~~<s>~~", "https://auto.example/<b>",
}

func TestPageIsInert(t *testing.T) {
	for i, text := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) { inert(t, pageOf(t, text)) })
	}
	page := pageOf(t, hostile...)
	inert(t, page)
	if !strings.Contains(page, `<meta http-equiv="Content-Security-Policy" content="default-src 'none';`) {
		t.Error("the page has no policy")
	}
	if strings.ContainsAny(page, "\x00\x1b\u202e") {
		t.Error("a control character got into the page")
	}
}

func TestNoTextIsMarkup(t *testing.T) {
	pieces := append([]string{"\n", "\n\n", " ", "<", ">", "\"", "'", "`", "```", "[", "](", ")", "!", "(", "javascript:", "https://", "x", "onload=", "|", "---", "&", "#", "\\"}, hostile...)
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(r, "text"), "")
		set := newPage(io.Discard, nil).set
		inert(r, "<style></style><body>"+set.Markdown(text)+"<pre>"+set.Plain(text)+"</pre>")
	})
}

// What a text says is to be read on the page, also where it looked like markup.
func TestPageShowsWhatIsThere(t *testing.T) {
	page := pageOf(t, "a <b>bold</b> move\n\n<div>\nblock\n</div>\n\n**strong** [site](https://a.example/x?y=1&z) ![pic](p.png) [bad](javascript:1)\n\n```go\nfunc main() {}\n```\n")
	for _, want := range []string{
		"&lt;b&gt;bold&lt;/b&gt; move", "&lt;div&gt;\nblock\n&lt;/div&gt;", "<strong>strong</strong>",
		`href="https://a.example/x?y=1&amp;z">site</a>`, "[image: pic p.png]", "bad (javascript:1)", `<span class="k">func</span>`,
		"What the model saw: 1 messages", `id="ui-1"`, `id="api-1"`, "<summary>reasoning</summary>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestPageLoadsNothing(t *testing.T) {
	page := pageOf(t, hostile...)
	if m := regexp.MustCompile(`url\(|@import|<link|<base|<script`).FindString(page[:strings.Index(page, "<body>")]); m != "" {
		t.Errorf("its head loads something: %s", m)
	}
}

func TestPageMasks(t *testing.T) {
	// An invisible character within a key would hide it.
	page := pageOf(t, secret, "sk-ant-"+keyBody[:10]+"\u200b"+keyBody[10:], "```\n"+secret+"\n```", "`"+secret+"`")
	if strings.Contains(page, keyBody) || strings.Contains(page, keyBody[10:]) {
		i := strings.Index(page, keyBody[10:])
		t.Errorf("a key is on the page: %q", page[max(0, i-100):i+60])
	}
	if !strings.Contains(page, masked) {
		t.Error("no mask is on the page")
	}
}

// Text that is made to cost more than its size must not.
func TestPageOfTextMadeToHurt(t *testing.T) {
	const n = 60000
	for _, text := range []string{
		strings.Repeat(">", n), strings.Repeat("> ", n/2), strings.Repeat("[", n), strings.Repeat("![", n/2), strings.Repeat("*a_ ", n/4), strings.Repeat("`a``", n/4), strings.Repeat("- ", n/2),
		strings.Repeat("a|", n/2) + "\n" + strings.Repeat("-|", n/2), strings.Repeat("<a ", n/3), strings.Repeat("[a](", n/4), strings.Repeat("**a ", n/4), strings.Repeat("\\", n), strings.Repeat("<!--", n/4),
		"```js\n" + strings.Repeat("/*", n/2) + "\n```", strings.Repeat("[x]: y\n", n/7), strings.Repeat("a\n", 3<<20),
	} {
		begun := time.Now()
		inert(t, "<style></style><body>"+newPage(io.Discard, redact.New()).set.Markdown(text))
		if d := time.Since(begun); d > 15*time.Second {
			t.Errorf("%.20q... took %v", text, d)
		}
	}
}

func TestPageFoldsLongOutputAndColoursDiffs(t *testing.T) {
	var out bytes.Buffer
	p := newPage(&out, nil)
	p.item(view.Item{Number: 3, Class: view.Output, Body: strings.Repeat("line\n", 40)}, "ui")
	p.item(view.Item{Number: 4, Class: view.Tool, Diff: true, Body: "@@ -1 +1 @@\n-old <b>\n+new\n"}, "ui")
	p.item(view.Item{Number: 5, Class: view.Question, Body: "which?", Choices: []string{"<one>", "two"}, Images: 2}, "ui")
	fixture.NoError(t, p.out.Flush())
	for _, want := range []string{"<details><summary>41 lines</summary>", `<span class="removed">-old &lt;b&gt;`, `<span class="added">+new`, `<p class="choice">&lt;one&gt;</p>`, "[image]", `id="ui-5"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}

func TestIndexOfPages(t *testing.T) {
	var out bytes.Buffer
	masks, err := Index(&out, []Page{
		{File: "a b.html", Task: api.Summary{ID: "a", Title: "<b>first</b> " + secret, Damaged: []api.Damage{{File: "ui", Problem: "cut"}}}},
		{File: "c.html", Task: api.Summary{ID: "untitled"}},
	}, Options{Mask: redact.New()})
	fixture.NoError(t, err)
	for _, want := range []string{`href="a%20b.html">&lt;b&gt;first&lt;/b&gt; [REDACTED`, "damaged: ui: cut", ">untitled</a>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in the index", want)
		}
	}
	if masks != 1 || strings.Contains(out.String(), keyBody) {
		t.Errorf("%d masked", masks)
	}
	var one bytes.Buffer
	fixture.Must[int](t)(Index(&one, []Page{{File: "a.html", Task: api.Summary{ID: "a"}}}, Options{}))
	if !strings.Contains(one.String(), "<h1>1 task</h1>") || !strings.Contains(out.String(), "<h1>2 tasks</h1>") {
		t.Errorf("got\n%s\nwant the heading 1 task, and 2 tasks for two", one.String())
	}
}

// A title is cut to fit above its page, and a key that the cut would go through is masked
// whole: half of a key is half a secret.
func TestAKeyInATitleIsMaskedBeforeItIsCut(t *testing.T) {
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(keyBody+"\n", 8) + "-----END PRIVATE KEY-----"
	for name, title := range map[string]string{
		"cut in the key":              strings.Repeat("word ", 36) + "uses " + secret + " for it",
		"lines of a key":              "use " + pem,
		"cut within an invisible one": strings.Repeat("word ", 36) + "key " + secret[:20] + "\u200b" + secret[20:],
	} {
		var page, index bytes.Buffer
		v := newStorage(t, folder(`[{"ts":1,"type":"say","say":"text","text":"x"}]`, `[]`)).open("t1")
		v.Summary.Title = title
		r, err := HTML(t.Context(), &page, v, Options{Mask: redact.New()})
		fixture.NoError(t, err)
		_, err = Index(&index, []Page{{File: "a.html", Task: api.Summary{ID: "a", Title: title}}}, Options{Mask: redact.New()})
		fixture.NoError(t, err)
		for where, text := range map[string]string{"page": page.String(), "index": index.String()} {
			if strings.Contains(text, keyBody[:6]) {
				t.Errorf("%s: the %s shows a part of it", name, where)
			}
			if !strings.Contains(text, "[REDACTED:") {
				t.Errorf("%s: the %s has no mask", name, where)
			}
		}
		if r.Masked == 0 {
			t.Errorf("%s: nothing was counted", name)
		}
	}
}

// A link whose words name another address than it leads to says where it leads: a phone
// does not.
func TestALinkThatMisleadsSaysWhereItLeads(t *testing.T) {
	for text, want := range map[string]string{
		"[bank.example](https://evil.example/x)":                 `">bank.example</a> (https://evil.example/x)</p>`,
		"[https://bank.example/login](https://evil.example 'a')": `">https://bank.example/login</a> (https://evil.example) &#34;a&#34;</p>`,
		"[**www.bank.example**](http://evil.example)":            `"><strong>www.bank.example</strong></a> (http://evil.example)</p>`,
		"[a@bank.example](mailto:b@evil.example)":                `">a@bank.example</a> (mailto:b@evil.example)</p>`,
		"[bank.example](https://bank.example.evil.example)":      `">bank.example</a> (https://bank.example.evil.example)</p>`,
		"[bank.example](https://www.bank.example/)":              `">bank.example</a></p>`,
		"[https://a.example/b](https://a.example/b/)":            `">https://a.example/b</a></p>`,
		"[the manual](https://a.example)":                        `">the manual</a></p>`,
		"[See it. Here](https://a.example)":                      `">See it. Here</a></p>`,
		"[etc.](https://a.example)":                              `">etc.</a></p>`,
	} {
		if page := newPage(io.Discard, nil).set.Markdown(text); !strings.Contains(page, want) {
			t.Errorf("%s is shown as %s", text, page)
		}
	}
}
