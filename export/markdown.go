package export

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/view/markup"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Markdown writes the history that the model sees, in the shape of Roo's own export: all messages, also condensed
// ones. It differs from Roo in three points: it writes reasoning instead of "[Unexpected content type: thinking]",
// calls reasoning that only its provider can read encrypted instead of "undefined", and marks a message without
// content instead of writing "undefined". If a task has only the history that the user sees, it writes that history
// in the same shape; Roo would write nothing.
func Markdown(ctx context.Context, w io.Writer, v *store.View, o Options) (api.Exported, error) {
	var r api.Exported
	m, out := mask{by: o.Mask}, bufio.NewWriter(w)
	page := turns{w: out}
	api, rows := v.State.API(), v.State.UI()
	if len(api) > 0 {
		rows = nil
	}
	for e := range elements(ctx, v, "api", api, 0, &r) {
		page.message(m.json(e.Raw))
	}
	for e := range elements(ctx, v, "ui", rows, 0, &r) {
		it := view.UI(m.json(e.Raw), e.Number)
		text := it.Body
		if it.Title != "" {
			text = strings.TrimSuffix("["+it.Title+"]\n"+it.Body, "\n")
		}
		if text != "" {
			page.turn(it.Class == view.User, text)
		}
	}
	r.Masked = m.count
	return r, trouble(v, "Markdown", ctx.Err(), out.Flush())
}

// turns writes messages in Markdown. It keeps an error of its writer until the end.
type turns struct {
	w   io.Writer
	sep string
}

func (t *turns) message(raw []byte) {
	t.turn(esjson.TextOf(raw, "role") == "user", markdownContent(raw))
}

func (t *turns) turn(user bool, text string) {
	who := "**Assistant:**"
	if user {
		who = "**User:**"
	}
	io.WriteString(t.w, terminal.WellFormed(t.sep+who+"\n\n"+text+"\n\n")) //nolint:errcheck // see above
	t.sep = "---\n\n"
}

// markdownContent returns the content of a message in Markdown.
func markdownContent(raw []byte) string {
	content, _ := esjson.Get(raw, "content")
	if s, err := esjson.Unquote(content); err == nil {
		return s
	}
	if esjson.TypeOf(content) != esjson.TypeArray && esjson.TypeOf(raw) == esjson.TypeObject {
		if _, typed := esjson.Get(raw, "type"); !typed && (len(content) == 0 || esjson.TypeOf(content) == esjson.TypeNull) {
			return "[no content]"
		}
		return markdownBlock(raw) // reasoning of 2025 is an item without a role
	}
	return markdownBlocks(content)
}

func markdownBlocks(content []byte) string {
	var parts []string
	for block := range esjson.Array(content) {
		parts = append(parts, markdownBlock(block))
	}
	return strings.Join(parts, "\n")
}

func markdownBlock(block []byte) string {
	kind := esjson.TextOf(block, "type")
	switch kind {
	case "text":
		return esjson.TextOf(block, "text")
	case "image":
		return "[Image]"
	case "tool_use":
		return "[Tool Use: " + esjson.TextOf(block, "name") + "]\n" + markdownInput(esjson.Member(block, "input"))
	case "tool_result":
		head := "[Tool]"
		if esjson.IsTrue(block, "is_error") {
			head = "[Tool (Error)]"
		}
		content, _ := esjson.Get(block, "content")
		if s, err := esjson.Unquote(content); err == nil {
			return head + "\n" + s
		}
		if esjson.TypeOf(content) == esjson.TypeArray {
			return head + "\n" + markdownBlocks(markdownResult(content))
		}
		return head
	case "reasoning", "thinking", "redacted_thinking":
		key := map[string]string{"reasoning": "text", "thinking": "thinking"}[kind]
		if text, ok := esjson.GetString(block, key); ok && key != "" {
			return "[Reasoning]\n" + text
		}
		return "[Reasoning]\n(encrypted)"
	case "thoughtSignature":
		return ""
	}
	return "[Unexpected content type: " + kind + "]"
}

// markdownResult returns the content of a result. Parts without a type, as other tools write them, become text.
func markdownResult(content []byte) []byte {
	var parts [][]byte
	for part := range esjson.Array(content) {
		if _, typed := esjson.Get(part, "type"); typed || esjson.TypeOf(part) != esjson.TypeObject {
			parts = append(parts, part)
			continue
		}
		parts = append(parts, contextwindow.ResultParts(esjson.List([][]byte{part}))...)
	}
	return esjson.List(parts)
}

// markdownInput returns the input of a call, one member per line, in JavaScript's order. The members of an array are
// its items, named by their indexes.
func markdownInput(input []byte) string {
	var lines []string
	if esjson.TypeOf(input) == esjson.TypeArray {
		for item := range esjson.Array(input) {
			lines = append(lines, strconv.Itoa(len(lines))+": "+markup.Display(item))
		}
		return strings.Join(lines, "\n")
	}
	if esjson.TypeOf(input) != esjson.TypeObject {
		return markup.Display(input)
	}
	ordered, err := esjson.Node(nil, input)
	if err != nil {
		return string(input)
	}
	for name, val := range esjson.Members(ordered) {
		lines = append(lines, capital(name)+": "+markup.Display(val))
	}
	return strings.Join(lines, "\n")
}

// capital makes the first UTF-16 unit upper case; half of a surrogate pair stays. Some characters have several
// characters as their upper case, which package strings does not support.
func capital(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	if n == 0 || r == utf8.RuneError || r > 0xffff {
		return name
	}
	if r >= 0x1f80 && r < 0x1fb0 { // Greek, with an iota below
		return string([]rune{[...]rune{0x1f08, 0x1f28, 0x1f68}[(r-0x1f80)/16] + r%8, 0x399}) + name[n:]
	}
	if several, ok := upperCase[r]; ok {
		return several + name[n:]
	}
	return strings.ToUpper(name[:n]) + name[n:]
}

// JSON writes one object: the task document, then both histories, one element a line and byte for byte as it is stored,
// unless a secret in it was masked:
//
//	{"task":{...},"ui":[...],"api":[...],"unread":[{history,number,problem}],"masked":0}
func JSON(ctx context.Context, w io.Writer, v *store.View, o Options) (api.Exported, error) {
	var r api.Exported
	m := mask{by: o.Mask}
	out := bufio.NewWriter(w)
	head, err := api.Encode(v.Summary)
	if err != nil {
		return r, trouble(v, "JSON", err)
	}
	fmt.Fprintf(out, "{\"task\":%s", m.json(bytes.TrimSpace(head)))
	for _, h := range []struct {
		name string
		list []*task.Message
	}{{"ui", v.State.UI()}, {"api", v.State.API()}} {
		fmt.Fprintf(out, ",\n%q:[", h.name)
		sep := "\n"
		for e := range elements(ctx, v, h.name, h.list, 0, &r) {
			fmt.Fprintf(out, "%s%s", sep, m.json(e.Raw))
			sep = ",\n"
		}
		fmt.Fprint(out, "]")
	}
	unread, err := api.Encode(append([]api.Unread{}, r.Unread...))
	r.Masked = m.count
	fmt.Fprintf(out, ",\n\"unread\":%s,\"masked\":%d}\n", bytes.TrimSpace(unread), r.Masked)
	return r, trouble(v, "JSON", err, ctx.Err(), out.Flush())
}

//go:embed page.css
var pageCSS string

// policy allows a page its own style and nothing else.
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

// HTML writes one self-contained page: the conversation as the user saw it, with the results of tools, and below it,
// folded, what the model saw. The page holds the pictures, up to a size.
func HTML(ctx context.Context, w io.Writer, v *store.View, o Options) (api.Exported, error) {
	var r api.Exported
	p := newPage(w, o.Mask)
	p.begin(v.Summary.Title)
	p.facts(v.Summary)
	if ui := v.State.UI(); len(ui) > 0 {
		rows := &Items{sourceOf(v, LinesOptions{}), p.mask}
		p.happened(ctx, v)
		p.print("<details class=\"rows\"><summary>Requests, checkpoints and the like are hidden; open this to show them</summary></details>\n")
		p.print("<main>\n")
		from := 0
		for part := range slices.Chunk(ui, Together) {
			batch := slices.Collect(elements(ctx, v, "ui", part, from, &r))
			from += len(part)
			for _, items := range rows.Of(batch) {
				for _, it := range items {
					p.item(it, "ui")
				}
			}
		}
		p.print("</main>\n")
	}
	if api := v.State.API(); len(api) > 0 {
		p.day = ""
		p.print("<details class=\"api\"><summary>What the model saw: %d messages</summary>\n", len(api))
		for e := range elements(ctx, v, "api", api, 0, &r) {
			p.item(view.API(p.mask.json(e.Raw), e.Number), "api")
		}
		p.print("</details>\n")
	}
	for _, gap := range r.Unread {
		p.print("<p class=\"bad\">message %d (%s) cannot be read: %s</p>\n", gap.Number, gap.History, p.set.Plain(gap.Problem))
	}
	p.print("</body></html>\n")
	r.Masked = p.mask.count
	return r, trouble(v, "HTML", ctx.Err(), p.out.Flush())
}

// page is the page that HTML writes. It keeps the first error of its writer until the end.
type page struct {
	out  *bufio.Writer
	set  *markup.Setter
	mask *mask
	day  string // of the last written message
}

func newPage(w io.Writer, by *redact.Redactor) *page {
	p := &page{out: bufio.NewWriter(w), mask: &mask{by: by}}
	// Control and invisible characters go before text is masked: such a character inside a secret would hide the secret.
	p.set = markup.New(markup.Options{Clean: func(s string) string { return p.mask.text(redact.Terminal(s)) }})
	return p
}

func (p *page) print(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *page) begin(title string) {
	p.print(`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>%s</title><style>
%s</style></head><body>
<h1>%s</h1>
`, policy, p.set.Title(title), pageCSS, p.set.Title(title))
}

func (p *page) facts(t api.Summary) {
	facts := []string{t.ID, t.Source, t.Status}
	if t.TS != 0 {
		facts = append(facts, time.UnixMilli(t.TS).UTC().Format("2006-01-02 15:04:05 UTC"))
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
	p.print("<p class=\"facts\">%s</p>\n", p.set.Plain(strings.Join(facts, " · ")))
	for _, d := range t.Damaged {
		p.print("<p class=\"bad\">damaged: %s</p>\n", p.set.Plain(d.Text()))
	}
}

// item writes one message. anchor makes its number a link target. The first message of a day has the day above it.
func (p *page) item(it view.Item, anchor string) {
	if it.TS != 0 {
		if day := time.UnixMilli(it.TS).UTC().Format(time.DateOnly); day != p.day {
			p.day = day
			p.print("<p class=\"day\">%s</p>\n", day)
		}
	}
	id := fmt.Sprintf("%s-%d", anchor, it.Number)
	if it.Number > 0 {
		p.print("<section class=\"%s\" id=\"%s\">%s</section>\n", markup.Classes(it), id, p.set.Item(it, id))
		return
	}
	p.print("<section class=\"%s\">%s</section>\n", markup.Classes(it), p.set.Item(it, "")) // a notice between two messages
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
