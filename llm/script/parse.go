package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// ErrScript is wrapped by every error about a script's text.
var ErrScript = errors.New("not a valid script")

// maxTimes bounds one error entry: a script is read into memory.
const maxTimes = 100_000

// Parse reads a script. It is strict: an unknown key, a wrong type or a turn that
// both fails and replies is an error that wraps ErrScript and names the line.
func Parse(src []byte) (s *Script, err error) {
	defer func() {
		if r := recover(); r != nil { // a defect of the YAML library must not end the program
			s, err = nil, fmt.Errorf("%w: it cannot be read as YAML: %v", ErrScript, r)
		}
	}()
	if strings.ContainsRune(string(src), 0) {
		return nil, fmt.Errorf("%w: it holds a NUL byte", ErrScript)
	}
	lines, err := turnLines(src)
	if err != nil {
		return nil, err
	}
	var turns []*turn
	if err := yaml.UnmarshalWithOptions(src, &turns, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return nil, wrap(err)
	}
	if len(turns) != len(lines) {
		return nil, fmt.Errorf("%w: it has %d turns, but the parser read %d", ErrScript, len(lines), len(turns))
	}
	s = &Script{}
	groups := &s.groups
	var g group
	for i, t := range turns {
		if t == nil {
			return nil, fmt.Errorf("%w: line %d: the turn is empty; write {} for a reply with nothing in it", ErrScript, lines[i])
		}
		t = new(*t) // the parser gives all aliases of an entry the same pointer
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrScript, lines[i], err)
		}
		t.line = lines[i]
		switch {
		case t.Task != nil:
			*groups = append(*groups, g)
			g = group{}
			s.tasks = append(s.tasks, &taskPart{text: *t.Task})
			groups = &s.tasks[len(s.tasks)-1].groups
		case t.Summary != "":
			s.summaries = append(s.summaries, t)
		case t.Error == nil:
			g.reply = t
			*groups = append(*groups, g)
			g = group{}
		default:
			times := 1
			if t.Error.Times != nil {
				times = *t.Error.Times
			}
			g.failures = append(g.failures, slices.Repeat([]*turn{t}, times)...)
		}
	}
	*groups = append(*groups, g)
	return s, nil
}

// checkHeading checks an entry that precedes the turns of a task: it is no turn itself.
func (t *turn) checkHeading() error {
	rest := *t
	rest.Task = nil
	switch {
	case strings.TrimSpace(*t.Task) == "":
		return errors.New("task is empty; it needs a text of the task's first message")
	case !reflect.DeepEqual(rest, turn{}):
		return errors.New("an entry with task must hold no turn: the turns of that task follow it")
	}
	return nil
}

// wrap keeps the parser's message, which shows line, column and the text there.
func wrap(err error) error { return fmt.Errorf("%w: %s", ErrScript, strings.TrimSpace(err.Error())) }

// turnLines returns the line of each turn.
func turnLines(src []byte) ([]int, error) {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, wrap(err)
	}
	var lines []int
	docs := 0
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if _, ok := d.Body.(*ast.CommentGroupNode); ok {
			continue
		}
		if docs++; docs > 1 {
			return nil, fmt.Errorf("%w: line %d: a second document begins; a script has only one", ErrScript, d.Body.GetToken().Position.Line)
		}
		switch body := d.Body.(type) {
		case *ast.SequenceNode:
			lines = append(lines, api.Each(body.Values, firstLine)...)
		case *ast.NullNode:
		default:
			return nil, fmt.Errorf("%w: line %d: a script is a list of turns, each beginning with \"- \"", ErrScript,
				body.GetToken().Position.Line)
		}
	}
	return lines, nil
}

// firstLine returns the line on which a node begins. The token of a mapping is its first colon.
func firstLine(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return m.Key.GetToken().Position.Line
	}
	if n == nil || n.GetToken() == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// check checks an entry, and reads its delay and the inputs of its calls.
func (t *turn) check() error {
	if t.Task != nil {
		return t.checkHeading()
	}
	if t.Delay != "" {
		d, err := time.ParseDuration(t.Delay)
		if err != nil || d < 0 {
			return fmt.Errorf("delay %q is not a duration; try: 50ms", t.Delay)
		}
		t.delay = d
	}
	if t.Summary != "" {
		if t.Text != "" || t.Reasoning != "" || len(t.Tools) > 0 || t.Error != nil {
			return errors.New("a summary is no turn; it has neither text nor tools nor an error")
		}
		t.Text = t.Summary
	}
	if e := t.Error; e != nil {
		switch {
		case t.Text != "" || t.Reasoning != "" || len(t.Tools) > 0 || t.Usage != nil:
			return errors.New("a turn either fails or replies; make two turns of it")
		case e.Times != nil && (*e.Times < 0 || *e.Times > maxTimes):
			return fmt.Errorf("times is %d; it must be between 0 and %d", *e.Times, maxTimes)
		case e.Status != 0 && (e.Status < 400 || e.Status > 599):
			return fmt.Errorf("status %d is not an HTTP error; leave it out for a broken connection", e.Status)
		}
		return nil
	}
	if u := t.Usage; u != nil && (u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0) {
		return errors.New("usage must not be negative")
	}
	for i := range t.Tools {
		if err := t.Tools[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) check() error {
	if c.Name == "" {
		return errors.New("a tool has no name")
	}
	if c.json = json.RawMessage("{}"); c.Input == nil {
		return nil
	}
	m, ok := c.Input.(yaml.MapSlice)
	if !ok {
		return fmt.Errorf("the input of %s is not a mapping", c.Name)
	}
	var err error
	c.json, err = toJSON(m)
	return api.Failed(err, "the input of %s", c.Name)
}

// toJSON encodes a YAML value, keys in the order of the file.
func toJSON(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return []byte("null"), nil
	case string:
		return esjson.Quote(nil, v), nil
	case bool, int64, uint64, int:
		return fmt.Append(nil, v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("a JSON number must be finite")
		}
		return esjson.Number(nil, v), nil
	case yaml.MapSlice:
		var out esjson.Object
		for _, m := range v {
			value, err := toJSON(m.Value)
			if err != nil {
				return nil, err
			}
			out.Raw(fmt.Sprint(m.Key), value)
		}
		return out.Bytes(), nil
	case []any:
		out, err := api.TryEach(v, toJSON)
		return esjson.List(out), err
	}
	return nil, fmt.Errorf("%T has no form in JSON", v)
}
