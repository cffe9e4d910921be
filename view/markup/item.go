package markup

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

// put renders a template into memory.
func put(out *bytes.Buffer, c templ.Component) {
	if err := c.Render(context.Background(), out); err != nil {
		panic("markup: " + err.Error()) // memory takes all, and the templates are of this package
	}
}

// shown is the data of an item's templates.
type shown struct {
	Class, Anchor      string
	Time, Moment       string
	Number             int
	Lead, Object, Rest string
	Body               string // HTML
	Fold               bool
}

// Classes returns the classes of an item's element: the item's class, and noise for rows that a page hides until the
// reader asks for them.
func Classes(it view.Item) string {
	if isNoise(it) {
		return string(it.Class) + " noise"
	}
	return string(it.Class)
}

// noisy are the beginnings of kinds of rows that only help to find a fault.
var noisy = []string{"say:api_req", "ask:api_req", "say:checkpoint", "say:deleted_api_reqs", "say:shell_integration", "say:too_many_tools",
	"say:task_progress", "say:conditional_rules", "say:hook_status", "say:browser_session", "ask:completion_result", "ask:resume"}

func isNoise(it view.Item) bool {
	return it.Class == view.Request || it.Class == view.Note && it.TS != 0 &&
		slices.ContainsFunc(noisy, func(kind string) bool { return strings.HasPrefix(it.Kind, kind) })
}

// Item returns the content of an item's element: a header and a body. The header links to anchor, the id of that
// element.
func (t *Setter) Item(it view.Item, anchor string) string {
	var out bytes.Buffer
	seen := t.head(it)
	seen.Anchor, seen.Number = anchor, it.Number
	if it.TS != 0 {
		at := time.UnixMilli(it.TS).In(t.opt.Zone)
		seen.Time, seen.Moment = at.Format("15:04"), at.Format(time.RFC3339)
	}
	t.place = place{number: it.Number}
	seen.Body = t.body(it)
	seen.Fold = t.folds(it)
	put(&out, itemContent(seen))
	return out.String()
}

// Element renders a message of a history as an element of a list, followed by its notices. newDay: the message before
// is of another day.
func (t *Setter) Element(items []view.Item, history string, newDay bool) string {
	var out bytes.Buffer
	it := items[0]
	e := element{ID: history + "-" + strconv.Itoa(it.Number), Number: it.Number, TS: it.TS, Class: Classes(it)}
	if newDay && it.TS != 0 {
		e.Day = time.UnixMilli(it.TS).In(t.opt.Zone).Format("Monday, 2 January 2006")
	}
	e.Body = t.Item(it, e.ID)
	for _, item := range items[1:] {
		one := notice{Class: Classes(item), HTML: t.Item(item, "")}
		if item.Checkpoint > 0 && t.opt.Checkpoint != nil {
			one.Name, one.Class = "c"+strconv.Itoa(item.Checkpoint), string(item.Class)+" checkpoint"
			one.Address = t.opt.Checkpoint(item.Checkpoint)
		}
		e.Notices = append(e.Notices, one)
	}
	put(&out, listElement(e))
	return out.String()
}

// element is the data of a message's template.
type element struct {
	ID, Class, Day string
	Number         int
	TS             int64  // events identify the message by it
	Body           string // HTML
	Notices        []notice
}

// notice is what a task recorded behind a message. A checkpoint has a name and the address of the changes since then.
type notice struct{ Class, HTML, Name, Address string }

// place is the position of the next picture: pictures of a message and its parts are counted from 0.
type place struct{ number, pictures int }

// folds reports whether an item is folded into one line that opens.
func (t *Setter) folds(it view.Item) bool {
	if !t.opt.Fold || it.Images > 0 {
		return false
	}
	switch it.Class {
	case view.Tool, view.Output, view.Reasoning, view.Appended, view.Request, view.Note, view.Unknown:
		return true
	}
	return false
}

// head returns the first line of an item, or a whole command of many lines. For a tool, it separates the act from its
// object.
func (t *Setter) head(it view.Item) shown {
	seen := shown{Class: string(it.Class)}
	it.Images = 0 // the body shows the images
	first, rest, _ := strings.Cut(view.Headline(it), "\n")
	seen.Lead, seen.Rest = t.opt.Clean(first), t.cut(t.opt.Clean(rest), nil)
	if verb, object := view.Verb(it.Title); it.Class == view.Tool && object != "" {
		if lead, after, ok := strings.Cut(first, verb+" "); ok {
			seen.Lead, seen.Object = t.opt.Clean(lead+verb), t.opt.Clean(after)
		}
	}
	return seen
}

// long is the number of lines from which text is folded.
const long = 12

// body returns the text of an item and its parts.
func (t *Setter) body(it view.Item) string {
	var out bytes.Buffer
	lines := strings.Count(it.Body, "\n")
	it.Body = t.cut(it.Body, &out)
	note := out.String()
	out.Reset()
	text := func(class, html string) { put(&out, textBlock(class, html)) }
	fold := func(name string, inner func()) {
		var whole bytes.Buffer
		whole, out = out, whole
		inner()
		whole, out = out, whole
		put(&out, folded(name, whole.String()))
	}
	count := strconv.Itoa(lines+1) + " lines"
	switch {
	case it.Body == "":
	case it.Diff && lines > 8*long:
		fold(count, func() { text("diff", t.Diff(it.Body)) })
	case it.Diff:
		text("diff", t.Diff(it.Body))
	case it.Class == view.User || it.Class == view.Model || it.Class == view.Result || it.Class == view.Question:
		out.WriteString(t.Markdown(it.Body) + "\n")
	case it.Class == view.Reasoning && t.folds(it):
		out.WriteString(t.Markdown(it.Body) + "\n")
	case it.Class == view.Reasoning:
		fold("reasoning", func() { out.WriteString(t.Markdown(it.Body)) })
	case it.Class == view.Tool && esjson.Valid([]byte(it.Body)):
		text("code", t.code(t.opt.Clean(Display([]byte(it.Body))), "json"))
	case !t.folds(it) && (lines >= long || it.Class == view.Appended):
		fold(count, func() { text("", t.Plain(it.Body)) })
	default:
		text("", t.Plain(it.Body))
	}
	out.WriteString(note)
	t.pictures(&out, it)
	for _, text := range it.Choices {
		put(&out, choice(t.opt.Clean(text)))
	}
	for _, part := range it.Parts {
		if part.Class == it.Class && part.Title == "" && !part.Partial {
			out.WriteString(t.body(part)) // the same speaker continues
			continue
		}
		seen := t.head(part)
		seen.Body, seen.Fold = t.body(part), t.folds(part)
		put(&out, itemPart(seen))
	}
	return out.String()
}

// cut returns the beginning of a text that is too long for the page, and writes to note how much is left out.
func (t *Setter) cut(s string, note *bytes.Buffer) string {
	if t.opt.Most == 0 || len(s) <= t.opt.Most {
		return s
	}
	shown := view.Cut(s, t.opt.Most)
	left := api.SizeText(int64(len(s)-len(shown))) + " more are left out here"
	if note == nil {
		return shown + "\n… " + left
	}
	put(note, leftOut("… "+left+": the stored rows and the exports have them"))
	return shown
}

// Display returns a JSON value in a form for people: a string unquoted, objects and arrays as indented JSON.
func Display(val []byte) string {
	if s, err := esjson.Unquote(val); err == nil {
		return s
	}
	switch esjson.TypeOf(val) {
	case esjson.TypeObject, esjson.TypeArray:
		var out bytes.Buffer
		if err := json.Indent(&out, val, "", "  "); err == nil {
			return out.String()
		}
	case esjson.TypeInvalid:
		return "undefined"
	}
	return string(val)
}

// Diff returns a difference by lines, each with its class.
func (t *Setter) Diff(text string) string {
	var out strings.Builder
	for line := range strings.Lines(t.opt.Clean(text)) {
		out.WriteString(`<span class="` + string(view.DiffStyle(strings.TrimSuffix(line, "\n"))) + `">` + html.EscapeString(line) + "</span>")
	}
	return out.String()
}

// Bounds on the pictures in a page, in bytes. A phone could not open a page with more. A picture larger than smallPicture is
// loaded from an address of its own, if it has one.
const (
	maxPicture   = 4 << 20
	maxPictures  = 32 << 20
	smallPicture = 8 << 10
)

// pictures shows the pictures of an item, or describes them.
func (t *Setter) pictures(out *bytes.Buffer, it view.Item) {
	for n := range it.Images {
		at := t.place
		t.place.pictures++
		name := "image"
		if n < len(it.Pictures) && it.Pictures[n] != "" {
			name = "image: " + it.Pictures[n]
		}
		if n < len(it.Data) && it.Data[n] != "" {
			address, lazy, err := t.address(it.Data[n], at)
			if err == nil {
				put(out, picture(t.opt.Clean(name), address, lazy))
				continue
			}
			name += " (not shown: " + err.Error() + ")"
		}
		put(out, lostPicture(t.opt.Clean(name)))
	}
}

// address returns the address from which the page loads a picture.
func (t *Setter) address(given string, at place) (address string, lazy bool, err error) {
	if t.opt.Picture != nil && len(given) > smallPicture*4/3 && at.number > 0 {
		return t.opt.Picture(at.number, at.pictures), true, nil
	}
	address, err = t.data(given)
	return address, false, err
}

// data returns a data: address that is built from the bytes of a picture, or an error with the reason why there is
// none.
func (t *Setter) data(address string) (fresh string, err error) {
	media, raw, err := Picture(address)
	if err != nil {
		return "", err
	}
	if t.shown+len(raw) > maxPictures {
		return "", fmt.Errorf("the page holds %s of pictures", api.SizeText(maxPictures))
	}
	t.shown += len(raw)
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(raw), nil
}

// Picture returns the media type and the bytes of the picture in a data: address. It detects the type from the bytes.
// The error is the reason why a page does not show the picture.
func Picture(address string) (media string, raw []byte, err error) {
	_, data, _ := strings.Cut(address, ";base64,")
	if len(data) > maxPicture*4/3+4 {
		return "", nil, fmt.Errorf("more than %s", api.SizeText(maxPicture))
	}
	raw, err = base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil {
		return "", nil, errors.New("it is damaged")
	}
	if media = api.PictureOf(raw); media == "" {
		return "", nil, errors.New("it is not a picture that is known")
	}
	return media, raw, nil
}

// Data returns the data: addresses of the pictures of an item and its parts, in the order in which the page counts
// them; "" for a picture without bytes.
func Data(it view.Item) (out []string) {
	for n := range it.Images {
		data := ""
		if n < len(it.Data) {
			data = it.Data[n]
		}
		out = append(out, data)
	}
	for _, part := range it.Parts {
		out = append(out, Data(part)...)
	}
	return out
}
