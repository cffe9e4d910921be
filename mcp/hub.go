package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/shell"
)

// Options configure a Hub.
type Options struct {
	Servers   []Server // the allowed servers; a Hub never starts others
	Workspace string   // absolute
	Env       func(string) string
	// Mark is an environment entry by which the servers' processes are found. It is the same in all runs of a task.
	Mark    string
	Version string        // of this program
	Connect time.Duration // time limit of a connect; 0 = 10 s
	Masks   *redact.Redactor
	Logins  Logins
}

// Hub holds the connections of one run. It is safe for concurrent use.
type Hub struct {
	opt   Options
	conns map[string]*conn
}

// NewHub makes a hub. It connects to nothing yet.
func NewHub(o Options) *Hub {
	o.Connect = cmp.Or(o.Connect, 10*time.Second)
	h := &Hub{opt: o, conns: map[string]*conn{}}
	for _, s := range o.Servers {
		if s.State == Allowed {
			h.conns[s.Name] = &conn{server: s, hub: h}
		}
	}
	return h
}

// clean makes a server's text fit for users and models: it masks the secrets of
// definitions, removes terminal controls and limits the length.
func (h *Hub) clean(text string) string {
	if h.opt.Masks != nil {
		text, _ = h.opt.Masks.String(text)
	}
	return api.Shorten(strings.TrimSpace(redact.Terminal(text)), 2000)
}

// Server returns the definition of a server that may be called.
func (h *Hub) Server(name string) (Server, bool) {
	if c, ok := h.conns[name]; ok {
		return c.server, true
	}
	return Server{}, false
}

// Names returns the servers that may be called, in order.
func (h *Hub) Names() []string {
	return slices.Sorted(maps.Keys(h.conns))
}

// Menu lists a server's offers, or states why the list is unknown.
type Menu struct {
	Server    Server
	Tools     []Offer
	Resources []Resource
	Notes     []string // what was left out or repaired
	Err       error
}

// Open connects to every server, in parallel, and requests its offers. It returns when all have answered or the time
// limit has passed. First it ends the processes that a killed run of the task left.
func (h *Hub) Open(ctx context.Context) []Menu {
	names := h.Names()
	menus := make([]Menu, len(names))
	if len(names) == 0 {
		return nil
	}
	if _, err := shell.EndMarked(ctx, h.opt.Mark); err != nil {
		menus[0].Notes = append(menus[0].Notes, fmt.Sprintf("an MCP server process of an earlier run could not be ended: %v", err))
	}
	ctx, stop := context.WithTimeoutCause(ctx, h.opt.Connect, errNoAnswer)
	defer stop()
	var wait sync.WaitGroup
	for i, name := range names {
		wait.Go(func() { h.conns[name].fillMenu(ctx, &menus[i]) })
	}
	wait.Wait()
	return menus
}

// Bounds of what a server may offer.
const (
	maxTools     = 500
	maxResources = 200
)

func (c *conn) fillMenu(ctx context.Context, m *Menu) {
	m.Server = c.server
	s, _, err := c.session(ctx)
	if err != nil {
		m.Err = err
		return
	}
	var tools []*sdk.Tool
	err = s.run(ctx, func(ctx context.Context, s *session) (err error) {
		can := s.InitializeResult().Capabilities
		if can != nil && can.Tools != nil {
			for t, err := range s.Tools(ctx, nil) {
				if err != nil {
					return fmt.Errorf("it does not list its tools: %w", err)
				}
				if len(tools) == maxTools {
					m.Notes = append(m.Notes, fmt.Sprintf("it has more than %d tools; the others are left out", maxTools))
					break
				}
				tools = append(tools, t)
			}
		}
		if can != nil && can.Resources != nil {
			m.Resources = resources(ctx, s)
		}
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		m.Err = &CallError{Server: c.server.Name, Reason: s.describe(c.hub, err), Timeout: errors.Is(err, errNoAnswer), Err: err}
		s.end()
		return
	}
	var notes []string
	m.Tools, notes = offersOf(c.server, tools)
	m.Notes = append(m.Notes, notes...)
}

// Call calls a server's tool. Errors are *CallError, or the context's; an answer that
// reports a failure of the tool is a Result.
func (h *Hub) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (Result, error) {
	return h.call(ctx, server, func(ctx context.Context, s *session) (Result, error) {
		res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return Result{}, err
		}
		return resultOf(res), nil
	})
}

// Read reads a server's resource. Errors are as for Call.
func (h *Hub) Read(ctx context.Context, server, uri string) (Result, error) {
	return h.call(ctx, server, func(ctx context.Context, s *session) (Result, error) {
		res, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return Result{}, err
		}
		return contentsOf(res.Contents), nil
	})
}

func (h *Hub) call(ctx context.Context, server string, ask func(context.Context, *session) (Result, error)) (out Result, err error) {
	c, ok := h.conns[server]
	if !ok {
		return out, &CallError{Server: server, Reason: "there is no such server, or it is not allowed; there are: " +
			strings.Join(h.Names(), ", ")}
	}
	err = c.call(ctx, func(ctx context.Context, s *session) (err error) {
		out, err = ask(ctx, s)
		out.Text = s.login.hide(out.Text)
		return err
	})
	return out, err
}

// Close ends every connection and all processes, in parallel.
func (h *Hub) Close() {
	var wait sync.WaitGroup
	for _, c := range h.conns {
		wait.Go(c.close)
	}
	wait.Wait()
}

// Bounds of a tool's description and schema, in bytes.
const (
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
)

// Offer describes a server's tool to a model.
type Offer struct {
	Server      string
	Tool        string // the server's name for it
	Name        string // the name that the model uses
	Description string
	Schema      json.RawMessage
	ReadOnly    bool // according to the server, the tool changes nothing
	Always      bool // the definition lets it run without asking
}

// offersOf returns a server's tools by name. notes names the tools that cannot be offered, and why.
func offersOf(s Server, tools []*sdk.Tool) (list []Offer, notes []string) {
	seen := map[string]bool{}
	for _, t := range tools {
		if t == nil || slices.Contains(s.Off, t.Name) {
			continue
		}
		o := Offer{Server: s.Name, Tool: t.Name, Name: ToolName(s.Name, t.Name), Always: slices.Contains(s.Always, t.Name)}
		raw, err := json.Marshal(t.InputSchema)
		if err == nil {
			o.Schema, err = repairedSchema(raw)
		}
		switch {
		case !isPlainName(t.Name):
			err = errors.New("its name cannot be shown")
		case seen[o.Name]:
			err = errors.New("another tool has the same name, " + o.Name)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("its tool %s is left out: %v", shown(t.Name, 100), err))
			continue
		}
		if t.Annotations != nil {
			o.ReadOnly = t.Annotations.ReadOnlyHint
		}
		o.Description = shown(cmp.Or(t.Description, t.Title), maxDescription)
		seen[o.Name] = true
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Offer) int { return strings.Compare(a.Name, b.Name) })
	return list, notes
}

// propertyName matches the names of properties that Anthropic accepts.
var propertyName = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)

// repairedSchema returns a schema that every provider accepts: an object, with its properties, and without members
// that some providers refuse, because one refused schema fails every request. The server checks its input itself, so
// with a laxer schema only the model can err. Members are in a fixed order, so that the same schema gives the same
// bytes.
func repairedSchema(raw []byte) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(raw), maxSchema)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, errors.New("its schema is not a JSON object")
	}
	if kind := schema["type"]; kind != nil && kind != "object" {
		return nil, fmt.Errorf("its schema describes %q, not an object", shown(fmt.Sprint(kind), 40))
	}
	mend(schema)
	for _, name := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else", "$schema", "$id"} {
		delete(schema, name)
	}
	properties, _ := schema["properties"].(map[string]any)
	maps.DeleteFunc(properties, func(name string, _ any) bool { return !propertyName().MatchString(name) })
	out := map[string]any{"properties": map[string]any{}}
	maps.Copy(out, schema)
	out["type"] = "object"
	if required, is := schema["required"].([]any); is {
		out["required"] = slices.DeleteFunc(required, func(name any) bool { return properties[fmt.Sprint(name)] == nil })
	}
	return json.Marshal(out)
}

// mend removes from a schema, and from the schemas in it, what older drafts of JSON Schema or OpenAPI allow and draft
// 2020-12 does not. An array without items gets items that allow anything. mend returns false if value is no schema.
func mend(value any) bool {
	schema, is := value.(map[string]any)
	if !is {
		_, is = value.(bool)
		return is
	}
	for name, value := range schema {
		keep := value != nil
		switch name {
		case "properties", "patternProperties", "$defs", "definitions":
			var inner map[string]any
			inner, keep = value.(map[string]any)
			maps.DeleteFunc(inner, func(_ string, v any) bool { return !mend(v) })
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := value.([]any)
			list = slices.DeleteFunc(list, func(v any) bool { return !mend(v) })
			schema[name], keep = list, len(list) > 0
		case "items", "additionalProperties", "contains", "not", "if", "then", "else":
			keep = mend(value)
		case "required", "enum":
			_, keep = value.([]any)
		case "exclusiveMinimum", "exclusiveMaximum":
			_, keep = value.(float64)
		case "type":
			_, several := value.([]any)
			keep = several || slices.Contains([]any{"object", "array", "string", "number", "integer", "boolean", "null"}, value)
		}
		if !keep {
			delete(schema, name)
		}
	}
	several, _ := schema["type"].([]any)
	if schema["items"] == nil && slices.Contains(append(several, schema["type"]), "array") {
		schema["items"] = map[string]any{}
	}
	return true
}

// Resource is something that a server offers for reading.
type Resource struct {
	URI         string
	Name        string
	Description string
	Template    bool // URI has variables in braces
}

// resources returns the resources that a server lists, none when it does not answer.
func resources(ctx context.Context, s *session) (list []Resource) {
	add := func(uri, name, description string, template bool) {
		list = append(list, Resource{redact.Terminal(uri), shown(name, 100), shown(description, 300), template})
	}
	for r, err := range s.Resources(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		add(r.URI, r.Name, r.Description, false)
	}
	for r, err := range s.ResourceTemplates(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		add(r.URITemplate, r.Name, r.Description, true)
	}
	slices.SortFunc(list, func(a, b Resource) int { return strings.Compare(a.URI, b.URI) })
	return list
}

// Bounds of the images of one result.
const (
	maxImages = 20
	maxImage  = 5 << 20
	maxTotal  = 20 << 20
)

// Result is a server's answer.
type Result struct {
	Text   string
	Images []Image
	Failed bool // the tool reported a failure
}

// Image is a picture of a media type that models accept.
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

// image adds an image under the media type that its first bytes show: a provider refuses a request with an image
// whose named type is wrong.
func (p *resultBuilder) image(media string, data []byte) {
	kind := api.PictureOf(data)
	switch {
	case kind == "":
		p.note("[an image (%s, %d bytes) of a kind that is not shown]", shown(media, 60), len(data))
	case len(data) > maxImage || len(p.res.Images) == maxImages || p.total+len(data) > maxTotal:
		p.note("[an image (%s, %d bytes) that is over the limits and not shown]", kind, len(data))
	default:
		p.res.Images = append(p.res.Images, Image{kind, data})
		p.total += len(data)
	}
}

func (p *resultBuilder) resource(r *sdk.ResourceContents, named bool) {
	switch {
	case r == nil:
	case len(r.Blob) > 0 && (api.PictureOf(r.Blob) != "" || strings.HasPrefix(r.MIMEType, "image/")):
		p.image(r.MIMEType, r.Blob)
	case len(r.Blob) > 0 && utf8.Valid(r.Blob) && strings.HasPrefix(r.MIMEType, "text/"):
		p.text(string(r.Blob))
	case len(r.Blob) > 0:
		p.note("[%s: %s, %d bytes that are no text]", shown(r.URI, 300), shown(r.MIMEType, 60), len(r.Blob))
	case named:
		p.note("[%s]\n%s", shown(r.URI, 300), strings.ToValidUTF8(r.Text, "\uFFFD"))
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
			p.note("[a sound (%s, %d bytes) that is not passed on]", shown(c.MIMEType, 60), len(c.Data))
		case *sdk.ResourceLink:
			p.note("[resource %s: %s]", shown(c.URI, 300), shown(c.Name+" "+c.Description, 300))
		case *sdk.EmbeddedResource:
			p.resource(c.Resource, true)
		default:
			p.note("[content of a kind that is not known]")
		}
	}
	if len(p.texts) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			if len(r.Content) > 0 { // the images are in it a second time: as text they would fill the model's window
				raw = []byte(esjson.WithoutData(raw))
			}
			p.text(string(raw))
		}
	}
	p.res.Failed = r.IsError
	return p.done("(No response)")
}

func contentsOf(list []*sdk.ResourceContents) Result {
	p := resultBuilder{}
	for _, r := range list {
		p.resource(r, false)
	}
	return p.done("(Empty response)")
}
