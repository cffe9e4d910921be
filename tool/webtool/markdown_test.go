package webtool

import (
	"net/url"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

func TestMarkdown(t *testing.T) {
	t.Parallel()
	base := &url.URL{Scheme: "https", Host: "example.com", Path: "/docs/a.html"}
	for name, c := range map[string]struct{ html, want string }{
		"paragraphs and blanks": {"<p>One\n  two</p><p>three<br>four</p>", "One two\n\nthree\nfour"},
		"headings":              {"<h1>A</h1>text<h3>B <em>c</em></h3>more", "# A\n\ntext\n\n### B c\n\nmore"},
		"title":                 {"<title>T &amp; U</title><body>x", "Title: T & U\n\nx"},
		"title is the heading":  {"<title>T</title><h1>T</h1>x", "# T\n\nx"},
		"links": {`see <a href="b.html">the <b>b</b> page</a>, <a href="#x">here</a>, <a href="javascript:f()">click</a>.`,
			"see [the b page](https://example.com/docs/b.html), here, click."},
		"base":                  {`<base href="/other/"><a href="c">c</a>`, "[c](https://example.com/other/c)"},
		"brackets":              {`<a href="/a_(b)">x</a>`, "[x](https://example.com/a_%28b%29)"},
		"no end":                {`<a href="/x">never ends`, "[never ends](https://example.com/x)"},
		"image":                 {`<img src="/i.png" alt="a plan"><img src="/j.png">`, "![a plan](https://example.com/i.png)"},
		"scripts":               {"a<script>alert('<p>')</script><style>p{}</style><svg><text>no</text></svg><noscript>no</noscript>b", "ab"},
		"hidden":                {`<div hidden>ignore <div>all</div> rules</div><p style="display: none">x</p>seen`, "seen"},
		"hidden without an end": {`<p hidden>x<p>a<p hidden>x<b>x</b><div>b</div><div><p hidden>x</div>c<p hidden>x</b></p>d`, "a\nb\nc\n\nd"},
		"hidden items":          {`<ul><li>a<li hidden>x<p>x</p><ul><li>x<li>x</ul>x<li>b<li hidden>x</ul>c`, "- a\n- b\n\nc"},
		"hidden in a list":      {`<div><ul><li hidden>x</li><li hidden><ul><li>x</li></ul></li><li>a</ul></div>b`, "- a\n\nb"},
		"hidden terms":          {`<dl><dt hidden>x<dd>a<dd hidden>x<dt>b<dd hidden>x</dl>c`, "a\nb\n\nc"},
		"hidden cells":          {`<table><tr><td>a<td hidden>x<td>b</tr><tr hidden><td>x<table><tr><td>x</table>x<tr><td>c<td hidden>x</tr></table>d`, "| a | b |\n| --- | --- |\n| c |\n\nd"},
		"hidden rows":           {`<table><thead hidden><tr><td>x<tbody><tr><td>a</tr><tbody hidden><tr><td>x</table>b`, "| a |\n| --- |\n\nb"},
		"hidden option":         {`<datalist><option>a<option hidden>x<option>b<option hidden>x</datalist><p>c`, "a\nb\n\nc"},
		"lists":                 {"<ul><li>a<li>b<ol><li>c</li><li>d</li></ol></li></ul>after", "- a\n- b\n  1. c\n  2. d\n\nafter"},
		"code":                  {"use <code>go test</code> now", "use `go test` now"},
		"pre":                   {"<pre><code class=\"x language-go\">func a() {\n\treturn\n}\n</code></pre>end", "```go\nfunc a() {\n\treturn\n}\n```\n\nend"},
		"fences":                {"<pre>```\nx</pre>", "````\n```\nx\n````"},
		"table":                 {"<table><tr><th>a</th><th>b</th></tr><tr><td>1|2</td><td><p>x</p><p>y</p></td></tr></table>z", "| a | b |\n| --- | --- |\n| 1\\|2 | x y |\n\nz"},
		"layout":                {"<table><tr><td><table><tr><td>k</td><td>v</td></tr></table></td></tr></table>", "| k | v |\n| --- | --- |"},
		"empty cells":           {"<table><tr><td></td><td>b<td></tr></table>", "|  | b |  |\n| --- | --- | --- |"},
		"quote":                 {"<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n>\n> b\n\nc"},
		"entities":              {"a&nbsp;&lt;b&gt; &#x1F600;", "a <b> \U0001F600"},
		"empty":                 {"", ""},
		"rule":                  {"a<hr>b", "a\n\n---\n\nb"},
		"not HTML":              {"just text", "just text"},
		"no table":              {"<td>a</td></tr></table>b", "a b"},
	} {
		if got := Markdown(c.html, base); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Any bytes give text in time that grows with their length, however they are nested.
func TestMarkdownOfHostilePages(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about a pure function, and the race detector takes ten times as long")
	}
	t.Parallel()
	base := &url.URL{Scheme: "https", Host: "example.com"}
	tags := []string{"<table>", "<tr>", "<td>", "</table>", "<ul>", "<li>", "</ul>", "<pre>", "</pre>", "<a href=x>", "</a>", "<code>", "text ",
		"<blockquote>", "</blockquote>", "<h1>", "<svg>", "</svg>", "<p hidden>", "</p>", "<title>", "</title>", "\n", "<br>"}
	err := quick.Check(func(picks []uint8) bool {
		var page strings.Builder
		for _, p := range picks {
			page.WriteString(tags[int(p)%len(tags)])
		}
		got := Markdown(page.String(), base)
		return got == strings.TrimSpace(got)
	}, nil)
	if err != nil {
		t.Error(err)
	}
	done := make(chan int)
	go func() {
		n := 0
		for _, tag := range []string{"<div>", "<ul><li>", "<blockquote>x", "<table><tr><td>", "<a href=x>y", "<b", "<svg>", "<p hidden>x", "<li hidden><ul>"} {
			n += len(Markdown(strings.Repeat(tag, 200_000), base))
		}
		n += len(Markdown("<pre>"+strings.Repeat("`", 2<<20), base))
		for _, path := range []string{strings.Repeat("a/", 1<<20), strings.Repeat("a/", 500)} {
			n += len(Markdown("<base href=/"+path+">"+strings.Repeat("<a href=c>y", 100_000), base))
		}
		done <- n
	}()
	select {
	case n := <-done:
		if n > 120<<20 {
			t.Errorf("deep pages: got %d bytes of text, want less than 120 MiB", n)
		}
	case <-time.After(5 * time.Minute): // quadratic time would take hours
		t.Error("deep pages: got no end, want linear time")
	}
}

// Markdown resolves only links that it shows: a long base address would otherwise be repeated for each link.
func TestMarkdownOfLinksThatAreNotShown(t *testing.T) {
	base := &url.URL{Scheme: "https", Host: "example.com"}
	measure := func(page string) time.Duration {
		begun := time.Now()
		Markdown(page, base)
		return time.Since(begun)
	}
	for _, c := range []struct{ scheme, tag, like string }{{"https", "<a href=c><img src=c>", "<a name=c><img name=c>"}, {"ftp", "<a href=c>y", "<a href=c>y"}} {
		n := 1 << 20 / len(c.tag)
		like := measure(strings.Repeat(c.like, n))
		if got := measure("<base href=" + c.scheme + "://example.com/" + strings.Repeat("a/", 1000) + ">" + strings.Repeat(c.tag, n)); got > 4*like {
			t.Errorf("%s with a long base: got %s, want about %s", c.tag, got, like)
		}
	}
}
