package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of the images of one result.
const (
	maxImages = 20
	maxImage  = 5 << 20
	maxTotal  = 20 << 20
)

// Result is what a server answered.
type Result struct {
	Text   string
	Images []Image
	Failed bool // the tool reported a failure
}

// Image is a picture of a kind that models take.
type Image struct {
	Media string
	Data  []byte
}

// resultBuilder collects the parts of a result.
type resultBuilder struct {
	texts []string
	res   Result
	total int
}

func (p *resultBuilder) note(format string, args ...any) {
	p.texts = append(p.texts, fmt.Sprintf(format, args...))
}

func (p *resultBuilder) text(text string) {
	if text != "" {
		p.texts = append(p.texts, strings.ToValidUTF8(text, "\uFFFD"))
	}
}

// image adds an image under the media type that its first bytes show: a provider refuses a
// request with an image of another type than its name.
func (p *resultBuilder) image(media string, data []byte) {
	kind := pictureOf(data)
	switch {
	case kind == "":
		p.note("[an image (%s, %d bytes) of a kind that is not shown]", cut(printable(media), 60), len(data))
	case len(data) > maxImage || len(p.res.Images) == maxImages || p.total+len(data) > maxTotal:
		p.note("[an image (%s, %d bytes) that is over the limits and not shown]", kind, len(data))
	default:
		p.res.Images = append(p.res.Images, Image{kind, data})
		p.total += len(data)
	}
}

func pictureOf(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF8")):
		return "image/gif"
	case len(data) > 12 && bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

func (p *resultBuilder) resource(r *sdk.ResourceContents, named bool) {
	switch {
	case r == nil:
	case len(r.Blob) > 0 && (pictureOf(r.Blob) != "" || strings.HasPrefix(r.MIMEType, "image/")):
		p.image(r.MIMEType, r.Blob)
	case len(r.Blob) > 0 && utf8.Valid(r.Blob) && strings.HasPrefix(r.MIMEType, "text/"):
		p.text(string(r.Blob))
	case len(r.Blob) > 0:
		p.note("[%s: %s, %d bytes that are no text]", cut(printable(r.URI), 300), cut(printable(r.MIMEType), 60), len(r.Blob))
	case named:
		p.note("[%s]\n%s", cut(printable(r.URI), 300), strings.ToValidUTF8(r.Text, "\uFFFD"))
	default:
		p.text(r.Text)
	}
}

func (p *resultBuilder) done(empty string) Result {
	p.res.Text = strings.Join(p.texts, "\n\n")
	if p.res.Text == "" && len(p.res.Images) == 0 {
		p.res.Text = empty
	}
	return p.res
}

func resultOf(r *sdk.CallToolResult) Result {
	p := resultBuilder{}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			p.text(c.Text)
		case *sdk.ImageContent:
			p.image(c.MIMEType, c.Data)
		case *sdk.AudioContent:
			p.note("[a sound (%s, %d bytes) that is not passed on]", cut(printable(c.MIMEType), 60), len(c.Data))
		case *sdk.ResourceLink:
			p.note("[resource %s: %s]", cut(printable(c.URI), 300), cut(printable(c.Name+" "+c.Description), 300))
		case *sdk.EmbeddedResource:
			p.resource(c.Resource, true)
		default:
			p.note("[content of a kind that is not known]")
		}
	}
	if len(p.texts) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			p.text(withoutData(raw, len(r.Content) > 0))
		}
	}
	p.res.Failed = r.IsError
	return p.done("(No response)")
}

// dataSize is the length in bytes from which a string without blanks counts as data.
const dataSize = 1 << 10

// withoutData is structured content as text. When the result has other content too, the
// images are in it a second time: as text they would fill the model's window.
func withoutData(raw []byte, beside bool) string {
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if !beside || len(raw) <= dataSize || dec.Decode(&value) != nil {
		return string(raw)
	}
	short, err := json.Marshal(shortenStrings(value))
	if err != nil {
		return string(raw)
	}
	return string(short)
}

func shortenStrings(value any) any {
	switch v := value.(type) {
	case string:
		if len(v) > dataSize && !strings.ContainsAny(v, " \t\n") {
			return fmt.Sprintf("[%d bytes of data]", len(v))
		}
	case []any:
		for i := range v {
			v[i] = shortenStrings(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = shortenStrings(v[key])
		}
	}
	return value
}

func contentsOf(list []*sdk.ResourceContents) Result {
	p := resultBuilder{}
	for _, r := range list {
		p.resource(r, false)
	}
	return p.done("(Empty response)")
}
