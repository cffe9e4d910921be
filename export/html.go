package export

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"html"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

//go:embed page.css
var pageCSS string

// policy allows a page its own style and nothing else.
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

// HTML writes one self-contained page: the conversation as the user saw it, with the results of tools, and folded below
// it what the model saw. It holds the pictures, up to a size.
func HTML(ctx context.Context, w io.Writer, v *store.View, o Options) (Report, error) {
	var r Report
	p := &page{out: bufio.NewWriter(w), set: newTypesetter(o.Mask)}
	if err := p.begin(v.Summary.Title); err != nil {
		return r, trouble(v, "HTML", err)
	}
	p.facts(v)
	if ui := v.State.UI(); len(ui) > 0 {
		results, answers, notices := resultsByRow(v.State), answersTo(v), view.ByRow(view.Notices(v.State))
		p.print("<main>\n")
		for batch := range together(elements(ctx, v, "ui", ui, &r)) {
			known := answers(batch)
			for i, e := range batch {
				it := view.UI(p.set.mask.json(e.Raw), e.Number)
				answer, ok := p.result(results[e.Message.ID])
				if !ok {
					answer, ok = known[i]
				}
				if ok {
					it.Parts = append(it.Parts, answer)
				}
				p.item(it, "ui")
				for _, n := range notices[e.Number] {
					p.item(n.Item(), "ui")
				}
			}
		}
		p.print("</main>\n")
	}
	if api := v.State.API(); len(api) > 0 {
		p.print("<details class=\"api\"><summary>What the model saw: %d messages</summary>\n", len(api))
		for e := range elements(ctx, v, "api", api, &r) {
			p.item(view.API(p.set.mask.json(e.Raw), e.Number), "api")
		}
		p.print("</details>\n")
	}
	for _, gap := range r.Unread {
		p.print("<p class=\"bad\">message %d (%s) cannot be read: %s</p>\n", gap.Number, gap.History, p.set.plain(gap.Problem))
	}
	p.print("</body></html>\n")
	r.Masked = p.set.mask.count
	return r, trouble(v, "HTML", ctx.Err(), p.out.Flush())
}

// together yields elements in groups: the answer to a row may come behind it.
func together(list iter.Seq[Element]) iter.Seq[[]Element] {
	return func(yield func([]Element) bool) {
		var batch []Element
		for e := range list {
			if batch = append(batch, e); len(batch) == Together {
				if !yield(batch) {
					return
				}
				batch = nil
			}
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// page is a page that is being written. Its writer keeps the first error until the end.
type page struct {
	out   *bufio.Writer
	set   *typesetter
	shown int // bytes of pictures
}

func (p *page) print(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *page) begin(title string) error {
	p.print(`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>%s</title><style>
%s`, policy, p.set.title(title), pageCSS)
	if err := p.set.format.WriteCSS(p.out, onLight()); err != nil {
		return err
	}
	p.print("@media (prefers-color-scheme: dark) {\n")
	if err := p.set.format.WriteCSS(p.out, onDark()); err != nil {
		return err
	}
	p.print("}\n</style></head><body>\n<h1>%s</h1>\n", p.set.title(title))
	return nil
}

// short is a title that fits above a page; the first message has the whole text.
func short(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if r := []rune(title); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return title
}

func (p *page) facts(v *store.View) {
	t := v.Summary
	facts := []string{t.ID, t.Source, t.Status}
	if t.TS != 0 {
		facts = append(facts, clock(t.TS))
	}
	if t.Provider+t.Model != "" {
		facts = append(facts, strings.Trim(t.Provider+"/"+t.Model, "/"))
	}
	if t.Usage.Cost != nil {
		facts = append(facts, "$"+t.Usage.Cost.String())
	}
	facts = append(facts, view.Count(t.Usage.TokensIn)+" tokens in, "+view.Count(t.Usage.TokensOut)+" out")
	if t.Workspace != "" {
		facts = append(facts, t.Workspace)
	}
	p.print("<p class=\"facts\">%s</p>\n", p.set.plain(strings.Join(facts, " · ")))
	for _, d := range t.Damaged {
		p.print("<p class=\"bad\">damaged: %s</p>\n", p.set.plain(d.Text()))
	}
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// item writes one message. anchor makes its number a link target.
func (p *page) item(it view.Item, anchor string) {
	p.print("<section class=\"%s\" id=\"%s-%d\"><header><a href=\"#%s-%d\">#%d</a> %s", it.Class, anchor, it.Number, anchor,
		it.Number, it.Number, p.headline(it))
	if it.TS != 0 {
		p.print(" <time>%s</time>", clock(it.TS))
	}
	p.print("</header>\n")
	p.body(it)
	p.print("</section>\n")
}

// headline is the first line of an item; a command of many lines is shown whole.
func (p *page) headline(it view.Item) string {
	it.Images = 0 // they come below
	first, rest, more := strings.Cut(view.Headline(it), "\n")
	text := "<b>" + p.set.plain(first) + "</b>"
	if more {
		text += "<pre>" + p.set.plain(rest) + "</pre>"
	}
	return text
}

// long is the number of lines from which text is folded.
const long = 12

// body writes the text of an item and its parts.
func (p *page) body(it view.Item) {
	switch lines := strings.Count(it.Body, "\n"); {
	case it.Body == "":
	case it.Diff && lines > 8*long:
		p.print("<details><summary>%d lines</summary>", lines+1)
		p.diff(it.Body)
		p.print("</details>\n")
	case it.Diff:
		p.diff(it.Body)
	case it.Class == view.User || it.Class == view.Model || it.Class == view.Result || it.Class == view.Question:
		p.print("%s\n", p.set.markdown(it.Body))
	case it.Class == view.Reasoning:
		p.print("<details><summary>reasoning</summary>%s</details>\n", p.set.markdown(it.Body))
	case it.Class == view.Tool && esjson.Valid([]byte(it.Body)):
		p.print("<pre class=\"chroma\">%s</pre>\n", p.set.code(p.set.clean(display([]byte(it.Body))), "json"))
	case lines >= long, it.Class == view.Appended:
		p.print("<details><summary>%d lines</summary><pre>%s</pre></details>\n", lines+1, p.set.plain(it.Body))
	default:
		p.print("<pre>%s</pre>\n", p.set.plain(it.Body))
	}
	p.pictures(it)
	for _, choice := range it.Choices {
		p.print("<p class=\"choice\">%s</p>\n", p.set.plain(choice))
	}
	for _, part := range it.Parts {
		if part.Class == it.Class && part.Title == "" && !part.Partial {
			p.body(part) // the same speaker continues
			continue
		}
		p.print("<div class=\"%s\"><header>%s</header>\n", part.Class, p.headline(part))
		p.body(part)
		p.print("</div>\n")
	}
}

func (p *page) diff(text string) {
	p.print("<pre class=\"diff\">")
	for line := range strings.Lines(p.set.clean(text)) {
		p.print("<span class=\"%s\">%s</span>", view.DiffStyle(strings.TrimSuffix(line, "\n")), html.EscapeString(line))
	}
	p.print("</pre>\n")
}

// result is the result of a tool for the row that called it.
func (p *page) result(c *task.Call) (view.Item, bool) {
	if c == nil {
		return view.Item{}, false
	}
	raw, err := c.Result()
	if err != nil {
		return view.Item{Class: view.Failure, Title: "its result cannot be read", Body: err.Error()}, true
	}
	it := view.ToolResult(p.set.mask.json(raw))
	if c.Finished.Outcome != "ok" {
		it.Class, it.Title = view.Failure, c.Finished.Outcome
	}
	return it, true
}

// resultsByRow returns the calls whose results belong below a row.
func resultsByRow(s *task.State) map[uint64]*task.Call {
	out := map[uint64]*task.Call{}
	for _, c := range s.Calls() {
		if c.UI != 0 && c.Finished != nil {
			out[c.UI] = c
		}
	}
	return out
}
